"""Tables that cross settings with tasks: the recipe without each ingredient and in each space, and
the paper's whole grid for one model.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from lantm.spaces import CATALOGUE
from lantm.studies.entries import EMPTY, SOLVED, Result, count
from lantm.studies.report.counts import middle
from lantm.studies.report.table import CHECKPOINT, Table
from lantm.studies.report.tables import NOT_RUN
from lantm.studies.sweep.grids import (
    GRIDS,
    HARD_TASKS,
    SPACE_BUDGET,
    Settings,
    ablation_settings,
    space_budget,
)
from lantm.training.config import configure, option
from lantm.training.evaluation import percent
from lantm.training.kinds import paper_axes

ENTRIES = (
    f"Entries: runs with at least {SOLVED:.0%} of the answers right on test problems of twice the "
    "training size, of all runs; then the medians of that percentage at the training size and at "
    "twice that."
)


def rate(runs: Sequence[Result]) -> str:
    """How many succeeded, and the medians at once and twice the training size."""
    shares = [[float(r.accuracy[m].coarse) for r in runs if m in r.accuracy] for m in (1, 2)]
    return f"{count(runs)}: {' / '.join(map(middle, shares))}"


def ablations_table(results: Sequence[Result], checkpoint: str) -> Table:
    """A line for each ingredient that was taken away."""
    labels = ablation_labels()
    shown = [result for result in results if result.settings in labels]
    caption = (
        "Single starts of the default recipe, without each of its ingredients. "
        f"{ENTRIES} {CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    lines = list(dict.fromkeys(labels.values()))
    rows = crossed(shown, lambda result: labels[result.settings], lines, HARD_TASKS)
    return Table("Without each ingredient", caption, ["change", *HARD_TASKS], rows, labels=1)


@cache
def ablation_labels() -> dict[str, str]:
    """What was changed, by the command without its seed."""
    found = {}
    for task in HARD_TASKS:
        every = ablation_settings(task, "lantm", "small")
        for settings in every:
            command = configure("default", task=task, **settings).command
            found[command] = change(every[0], settings)
    return found


def change(base: Settings, settings: Settings) -> str:
    """What settings have that the base has not, as options.

    >>> change({"starts": 1}, {"starts": 1, "blank": False, "initial_strength_bias": -10.0})
    '--no-blank --initial-strength-bias -10.0'
    """
    changed = {k: value for k, value in settings.items() if (k, value) not in base.items()}
    if "growth_of" in changed:
        return "the other way to grow"
    return " ".join(option(name, value) for name, value in changed.items()) or "nothing"


def spaces_table(results: Sequence[Result], checkpoint: str) -> Table:
    """A line for each key space, in the order of the catalogue; those of users come last."""
    found = set(map(space_of, results))
    spaces = [name for name in CATALOGUE if name in found] + sorted(found - set(CATALOGUE))
    columns = sorted({column_of(result) for result in results}, key=column_order)
    caption = (
        "The default recipe in each key space. Columns with the name of a task alone are single "
        f"starts of at most {SPACE_BUDGET['batches']:,} batches, repeat_copy with answers that "
        "grow, the others with sizes; as it is: with up to eight starts and 10,000 batches "
        "(`lantm train TASK --space NAME`); others: with these settings. "
        f"{ENTRIES} {CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    rows = crossed(results, space_of, spaces, columns, column_of=column_of)
    return Table("Key spaces", caption, ["space", *columns], rows, labels=1)


def space_of(result: Result) -> str:
    return result.space or "the model's own"


def column_of(result: Result) -> str:
    """The task, and with what settings, if not those of the sweep."""
    task, given = result.cell.task, options_of(result.settings)
    if given == options_of(configure("default", **space_budget(task)).command):
        return task
    return f"{task}, {given.strip() or AS_IT_IS}"


def options_of(command: str) -> str:
    """Of a command that trains, but for the task and the space.

    >>> options_of("lantm train copy --space 'line*circle' --starts 3")
    ' --starts 3'
    """
    return re.sub(r"^lantm train \S+| --space ('[^']*'|\S+)", "", command)


AS_IT_IS = "as it is"
"""The default recipe with all its starts and batches."""


def column_order(column: str) -> tuple[int, int, str]:
    """Those of the sweep first, in its order, and those with other settings last."""
    task, _, given = column.partition(", ")
    tasks = GRIDS["spaces"].tasks
    kind = ["", AS_IT_IS].index(given) if given in ("", AS_IT_IS) else 2
    return kind, tasks.index(task) if task in tasks else len(tasks), column


def lantm_s_table(results: Sequence[Result], checkpoint: str) -> Table:
    """Every setting of the paper's grid for LANTM-s on two tasks, whichever sweep trained it."""
    grid, labels = GRIDS["lantm_s"], lantm_s_labels()
    shown = [result for result in results if result.settings in labels]
    caption = (
        "LANTM-s with every setting of the paper's grid, small regime: percent of the answers "
        "right on test problems of twice the training size, a number for each seed, in their "
        f"order. {CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    lines = list(dict.fromkeys(labels.values()))
    rows = crossed(shown, lambda result: labels[result.settings], lines, grid.tasks, each_seed)
    return Table("LANTM-s", caption, ["setting", *grid.tasks], rows, labels=1)


@cache
def lantm_s_labels() -> dict[str, str]:
    """What the grid varies, by the command without its seed."""
    grid = GRIDS["lantm_s"]._replace(seeds=(1,))
    varied = paper_axes("lantm_s")
    return {
        config.command: " ".join(option(name, config.flat()[name]) for name in varied)
        for config in grid.configs()
    }


def each_seed(runs: Sequence[Result]) -> str:
    """What came of every seed."""
    scores = (run.twice for run in sorted(runs, key=lambda run: run.seed))
    return ", ".join("failed" if score is None else percent(score.coarse) for score in scores)


def crossed(
    results: Sequence[Result],
    label_of: Callable[[Result], str],
    labels: Sequence[str],
    columns: Sequence[str],
    entry: Callable[[Sequence[Result]], str] = rate,
    column_of: Callable[[Result], str] = lambda result: result.cell.task,
) -> list[list[str]]:
    """A row for each label, an entry for each column, a task, where something was run."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((label_of(result), column_of(result)), []).append(result)
    entries = {place: entry(runs) for place, runs in groups.items()}
    return [[label, *(entries.get((label, name), EMPTY) for name in columns)] for label in labels]
