"""Grids: the configs of a sweep, by name or from a file."""

import csv
import dataclasses
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from lantm.errors import require_one_of
from lantm.machines.models import MODELS, ModelConfig
from lantm.settings import UNSET, canonical, plain_type, reader, type_hints
from lantm.spaces import CATALOGUE
from lantm.studies.entries import paper, parse
from lantm.studies.results import Row
from lantm.tasks import TASKS
from lantm.tasks.chomsky import ChomskyTask
from lantm.tasks.streams import REGIMES
from lantm.training.config import TrainConfig, configure
from lantm.training.kinds import PAPER_MODELS, paper_axes

LIE_MODELS = tuple(name for name, design in MODELS.items() if "space" in design.takes)
CELL = ("task", "model", "regime")
with (Path(__file__).parent / "best_hyperparameters.csv").open(newline="") as file:
    BEST = list(csv.DictReader(file))
"""The authors' best settings, a row for each cell, as text."""
PAPER_TASKS = tuple(dict.fromkeys(row["task"] for row in BEST))

Settings: TypeAlias = dict[str, Any]


class Grid(NamedTuple):
    """Settings for every cell of a table of tasks, models and regimes, each with some seeds."""

    name: str
    recipe: str
    settings: Callable[[str, str, str], Iterable[Settings]]
    """Of a task, a model and a regime: what to try there."""
    tasks: Sequence[str] = PAPER_TASKS
    models: Sequence[str] = PAPER_MODELS
    regimes: Sequence[str] = tuple(REGIMES)
    seeds: Sequence[int] = (1, 2, 3)
    select: Callable[[list[TrainConfig], Sequence[Row]], list[TrainConfig]] = lambda runs, rows: (
        runs
    )
    """Of these runs the ones that the results so far ask for."""

    def configs(
        self, overrides: Settings | None = None, rows: Sequence[Row] = ()
    ) -> list[TrainConfig]:
        """Every run of the grid once; overrides hold for all of them, `rows` are results so far."""
        for name in (*CELL, "seed"):
            if name in (overrides or {}):
                raise ValueError(f"{name} is chosen by a list of its own, not for every run")
        found = [
            self.config(cell, settings | {"seed": seed} | (overrides or {}))
            for cell in product(self.tasks, self.models, self.regimes)
            for settings in self.settings(*cell)
            for seed in self.seeds
        ]
        return self.select(list({config.digest: config for config in found}.values()), rows)

    def config(self, cell: tuple[str, ...], settings: Settings) -> TrainConfig:
        """Of a cell; the settings may name another recipe."""
        named: Settings = dict(zip(CELL, cell, strict=True))
        return configure(**{"recipe": self.recipe} | named | settings)


def vary(**axes: Iterable[Any]) -> list[Settings]:
    """All combinations.

    >>> vary(lr=[0.1, 0.2], layers=[1])
    [{'lr': 0.1, 'layers': 1}, {'lr': 0.2, 'layers': 1}]
    """
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


# ---- grids by name


def paper_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The paper's grid (table A.1), the same for every task and regime."""
    return vary(**paper_axes(model))


def best_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The authors' best setting of a cell."""
    cell = (task, model, regime)
    for name, value, known in zip(CELL, cell, (PAPER_TASKS, PAPER_MODELS, REGIMES), strict=True):
        require_one_of(f"{name} of the grid best", value, known)
    return [read_best()[cell]]


@cache
def read_best() -> dict[tuple[str, ...], Settings]:
    """The table of the authors' best settings, by task, model and regime."""
    return {
        tuple(row[name] for name in CELL): {
            name: parse_setting(name, text)
            for name, text in row.items()
            if text and name not in CELL
        }
        for row in BEST
    }


def cell_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The authors' best setting of a cell of table 1b, and for table A.2, of whose best settings
    nothing is known, the same with interpolated actions.
    """
    plain = best_settings(task, model, regime)
    mixed = [settings | {"action_interpolation": True} for settings in plain]
    return plain + mixed if model in LIE_MODELS else plain


def behind(configs: list[TrainConfig], rows: Sequence[Row]) -> list[TrainConfig]:
    """Those of cells whose run with the first seed is more than ten points below the paper's coarse
    accuracy, or failed. The first seed alone decides, so that a sweep which goes on does not
    stop at the first success. A cell without that run is left out.
    """
    ended = {row["digest"]: row for row in rows}

    def is_behind(config: TrainConfig) -> bool:
        row = ended.get(first_seed(config))
        if row is None:
            return False
        (result,) = parse([row])
        told = float(paper()[result.cell].coarse) if result.cell in paper() else 0.0
        return (float(result.twice.coarse) if result.twice else 0.0) < told - BEHIND

    return [config for config in configs if is_behind(config)]


BEHIND = 0.1
"""How far below the paper's accuracy a run has to be to count as behind."""

PEERS = ("lantm", "lstm", "gru", "ntm", "dnc", "stack_rnn", "tape_rnn", "transformer")
PEER_TASKS = ("copy", "reverse", "interleaved_add", "priority_sort", "repeat_copy")
SUITE = tuple(name for name, task in TASKS.items() if isinstance(task, ChomskyTask))


BUDGET: Settings = {"batches": 2000, "validate_from": 500, "test_examples": 320}
"""The same for all of them; a run ends early where there is nothing left to learn."""
PLAIN_TRAINING: Settings = BUDGET | {"optimiser": "adam", "decay_delay": None, "solved": 0.99}
OUR_TRAINING: Settings = BUDGET | {"recipe": "default", "starts": 1}
"""As much of our recipe as a model can take, with one start."""
TRIAL = "priority_sort"
"""The task on which the way to train a model is selected."""
WHOLE_RECIPE: Settings = {"recipe": "default", "test_far": True}
"""With as many starts and batches as it takes."""


def peer_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The ways to train a model: two learning rates, and our training. How far machines go is
    measured where problems stay short; those of the trial grow with the square of the size.
    """
    low, high, ours = (0.0003, 0.001, 0.001) if model == "transformer" else (0.001, 0.003, 0.005)
    ways = [
        PLAIN_TRAINING | {"lr": low},
        PLAIN_TRAINING | {"lr": high},
        OUR_TRAINING | {"lr": ours},
    ]
    return [way | {"test_far": task != TRIAL} for way in ways]


def rival_settings(task: str, model: str, regime: str) -> list[Settings]:
    """These ways, and of Lie-access models the whole recipe, outside the budget."""
    return peer_settings(task, model, regime) + [WHOLE_RECIPE] * (model in LIE_MODELS)


def selected(configs: list[TrainConfig], rows: Sequence[Row]) -> list[TrainConfig]:
    """Those trained in the way of a model that is best on the validation problems of the trial,
    and what is outside its budget.
    """
    known = zip((row["digest"] for row in rows), parse(rows), strict=True)
    promise = {digest: result.promise for digest, result in known}

    def trial(config: TrainConfig) -> str:
        return dataclasses.replace(config, task=TRIAL, seed=1, test_far=False).digest

    ways: dict[str, dict[str, None]] = {}
    for config in configs:
        if config.starts == 1:
            ways.setdefault(config.model.model, {})[trial(config)] = None
    untried = [model for model, way in ways.items() if not way.keys() <= promise.keys()]
    if untried:
        raise ValueError(
            f"lantm sweep trial comes first; not tried in all ways: {', '.join(untried)}"
        )
    best = {max(way, key=lambda digest: promise[digest]) for way in ways.values()}
    return [config for config in configs if config.starts > 1 or trial(config) in best]


def first_seed(config: TrainConfig) -> str:
    """The digest of the run with the first seed."""
    return dataclasses.replace(config, seed=1).digest


def as_it_is(task: str, model: str, regime: str) -> list[Settings]:
    """The recipe alone."""
    return [{}]


def tested_far(task: str, model: str, regime: str) -> list[Settings]:
    """The recipe alone; how far its machines go is measured as well."""
    return [{"test_far": True}]


HARD_TASKS = ("odd_first", "interleaved_add", "priority_sort", "bigram_flip")
"""Of those that the default recipe learns."""
SIZES_FIRST = ("interleaved_add", "bigram_flip")
"""Tasks of which single starts learn more often from small problems than from short answers."""
INGREDIENTS: tuple[Settings, ...] = (
    {"output": "linear"},
    {"weighting": "inverse_square"},
    {"blank": False, "initial_strength_bias": -10.0},
    {"anchored": False},
    {"homing": False},
    {"blended": False},
    {"gate": "sigmoid"},
    {"read_heads": 1},
    {"strength_floor": 0.0},
    {"slow_cells": 0},
    {"sizes_per_batch": 1},
    {"noise": 0.0},
    {"rate_by": "clock"},
    {"steady": None},
    {"go_back": False},
)
"""What takes each ingredient out of the default recipe, but for growth and starts."""


def ablation_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The default recipe with one start, which shows more than eight do, and without each
    ingredient; problems grow in the way that suits the task, and in the other one.
    """
    suits, other = ("sizes", "answers") if task in SIZES_FIRST else ("answers", "sizes")
    base: Settings = {"starts": 1, "batches": 3000, "growth_of": suits}
    return [base, base | {"growth_of": other}, *(base | less for less in INGREDIENTS)]


SPACE_TASKS = ("copy", "reverse", "priority_sort", "repeat_copy")


SPACE_BUDGET: Settings = {"batches": 2500, "starts": 1}
"""The same for all: a single start shows more than eight do, and costs less where it fails."""


def space_settings(task: str, model: str, regime: str) -> list[Settings]:
    """The default recipe in every key space of the catalogue, within one budget."""
    return [space_budget(task) | {"space": space} for space in CATALOGUE]


def space_budget(task: str) -> Settings:
    """What grows suits the task, as for the ablations."""
    return SPACE_BUDGET | ({"growth_of": "answers"} if task == "repeat_copy" else {})


GRIDS = {
    grid.name: grid
    for grid in (
        Grid("paper", "paper", paper_settings),
        Grid("best", "paper", best_settings),
        Grid("plain", "plain", as_it_is),
        Grid(
            "default",
            "default",
            tested_far,
            models=("lantm",),
            regimes=("small",),
            seeds=tuple(range(1, 11)),
        ),
        Grid("ablations", "default", ablation_settings, HARD_TASKS, ("lantm",), ("small",)),
        Grid("spaces", "default", space_settings, SPACE_TASKS, ("lantm",), ("small",)),
        Grid("cells", "paper", cell_settings, seeds=(1,)),
        Grid("behind", "paper", cell_settings, models=LIE_MODELS, seeds=(2, 3), select=behind),
        Grid(
            "lantm_s", "paper", paper_settings, ("double", "bigram_flip"), ("lantm_s",), ("small",)
        ),
        Grid("trial", "plain", peer_settings, (TRIAL,), PEERS, ["small"], (1,)),
        Grid("peers", "plain", rival_settings, PEER_TASKS, PEERS, ["small"], select=selected),
        Grid("chomsky", "plain", rival_settings, SUITE, PEERS, ["small"], select=selected),
    )
}


# ---- grids of one's own


def find_grid(name: str) -> Grid:
    """A grid by name, or the one in a TOML file."""
    if not name.endswith(".toml"):
        require_one_of("grid", name, [*GRIDS, "FILE.toml"])
        return GRIDS[name]
    try:
        return read_grid(Path(name))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def read_grid(path: Path) -> Grid:
    """The grid of a file: `base` are settings of every run, each list of `grid` is varied."""
    content = tomllib.loads(path.read_text("utf-8"))
    for key, table in content.items():
        require_one_of("table", key, ["base", "grid"])
        if not isinstance(table, dict):
            raise ValueError(f"{key} must be a table of settings, got {table!r}")
    base, axes = content.get("base", {}), content.get("grid", {})
    recipe = base.pop("recipe", "default")
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"grid.{name} must be a list of values, got {values!r}")
    base = {name: checked(name, value) for name, value in base.items()}
    axes = {name: [checked(name, value) for value in values] for name, values in axes.items()}
    usual = TrainConfig().flat()
    cell = {name: axes.pop(name, [base.pop(name, usual[name])]) for name in (*CELL, "seed")}
    tried = [base | settings for settings in vary(**axes)]
    tasks, models, regimes, seeds = cell.values()
    grid = Grid(path.stem, recipe, lambda t, m, r: tried, tasks, models, regimes, seeds)
    grid.configs()  # a value that cannot be is refused here, with the file's name
    return grid


# ---- settings as text


def parse_settings(texts: Iterable[str]) -> Settings:
    """Settings from words such as `lr=0.02`."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"a setting must be NAME=VALUE, got {name!r}")
    return {name: parse_setting(name, value) for name, _, value in pairs}


def parse_setting(name: str, text: str) -> Any:
    """The value of a setting that is given as text.

    >>> parse_setting("lr", "0.02"), parse_setting("sharpen", "true")
    (0.02, True)
    >>> parse_setting("decay_delay", "none") is None
    True
    """
    hint = type_hint(name)
    try:
        return {"true": True, "false": False}[text] if hint is bool else reader(hint)(text)
    except (KeyError, ValueError):
        wanted = plain_type(hint).__name__
        raise ValueError(f"{name} must be of type {wanted}, got {text!r}") from None


def checked(name: str, value: Any) -> Any:
    """The value of a setting, if it is of its field's type."""
    hint = type_hint(name)
    unset = value == UNSET and plain_type(hint) is not hint
    return canonical(name, None if unset else value, hint)


def type_hint(name: str) -> Any:
    """Of a field of `TrainConfig` or of its model."""
    hints = type_hints(TrainConfig) | type_hints(ModelConfig)
    require_one_of("setting", name, sorted(hints))
    return hints[name]
