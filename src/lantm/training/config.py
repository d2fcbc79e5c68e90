"""A training run as a value: task, model, data and optimisation, every choice a field."""

import dataclasses
import hashlib
import json
import shlex
from dataclasses import dataclass, field
from typing import Any

from lantm.errors import require_one_of, require_positive
from lantm.machines.models import MODELS, OWN_SETTINGS, ModelConfig
from lantm.settings import UNSET, canonical_fields
from lantm.tasks import TASKS
from lantm.tasks.streams import BATCH_SIZE, REGIMES
from lantm.training.optimiser import OPTIMISERS

COUNTS = (
    *("batches", "validate_every", "validate_from", "validation_examples", "test_examples"),
    *("starts", "start_batches", "sizes_per_batch"),
)
LARGEST = {"seed": 2**32 - 1, "decay_delay": (2**31 - 1) // 10, "batches": 2**31 - 1}
"""What 32 bits hold: jax counts with these in single precision."""
INITIALISATIONS = ("fan_in", "uniform", "straight")
STEERED_BY = ("clock", "performance")
GROWTH_OF = ("sizes", "answers", "turns")
USUAL_BETA2 = 0.999
FIRST_FIELDS = frozenset(
    {
        *("task", "model", "regime", "data", "growth", "seed", "batches", "optimiser", "lr"),
        *("decay_delay", "clip", "averaging", "init", "forget_bias", "validate_every"),
        *("validate_from", "validation_examples", "test_examples", "keep_all"),
        *("space", "hidden_size", "layers", "embedding_size", "memory_width", "key_size"),
        *("sharpen", "action_interpolation", "read_gate_bias", "write_gate_bias"),
        *("read_action_gate_bias", "write_action_gate_bias", "initial_strength_bias"),
    }
)
"""The settings, the model's among them, that every digest has. This set never changes.

A field that came later is in the digest only where it is not at its default, so that runs from
before are still found. Its default is what those runs had, and stays; a recipe may set another.
"""

UNKNOWN_AT_FIRST = ("growth", "optimiser")
"""Settings that the digests of the oldest runs, four of the zoo's among them, do not have."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides the outcome of a run. The defaults are those of the recipe `plain`,
    see `docs/deviations.md`; `RECIPES` has the others.
    """

    task: str = "copy"
    """What to learn: copy, reverse, bigram_flip, double, interleaved_add, odd_first, ..."""
    model: ModelConfig = field(default_factory=lambda: ModelConfig(read_gate_bias=-2.0))
    regime: str = "small"
    """small: 16K samples, 20 passes; large: 320K samples, one pass."""
    data: str | None = None
    """Train on a file of the authors' format instead of sampling."""
    growth: float = 0.0
    """Share of training in which sizes grow: at first only the smallest tenth of the batches."""
    seed: int = 1
    """Of the initial parameters and of the samples."""
    batches: int = 10_000
    """Updates in all."""
    optimiser: str = "rmsprop"
    """rmsprop or adam."""
    lr: float = 0.01
    """Learning rate."""
    decay_delay: int | None = 600
    """The learning rate falls by 1 % every 20 batches from 10 times this many batches on; if
    none, along a cosine, to 0 at the last batch."""
    clip: float = 1.0
    """The largest norm of a gradient."""
    weight_noise: float = 0.0
    """Noise on all parameters while learning, new for every batch: its standard deviation, which
    grows from 0 to this."""
    averaging: float = 0.99
    """Evaluate an average of the weights over the updates, with this decay; 0: the last ones."""
    init: str = "fan_in"
    """fan_in: uniform up to 1 / sqrt(fan-in) (the paper's *); uniform: in [-1, 1] (its 1);
    straight: fan_in, but for heads that go straight on."""
    forget_bias: float | None = None
    """Start of both LSTM forget biases; if not given, 1 for uniform, else drawn like the rest."""
    validate_every: int = 500
    """Batches between validations, each with a checkpoint."""
    validate_from: int = 500
    """The first batch to validate at."""
    validation_examples: int = 640
    """Problems of twice the training size that select the best checkpoint."""
    test_examples: int = 3200
    """Problems for the scores at the end."""
    keep_all: bool = False
    """Keep the weights of every checkpoint, for animations."""
    growth_by: str = "clock"
    """clock: sizes grow as --growth says; performance: problems grow from a tenth on, the faster
    the more of the training problems are right."""
    growth_of: str = "sizes"
    """What grows by performance. answers: how much of an answer counts; sizes: that, and the sizes
    from the smallest on; turns: sizes in the first of several starts, answers in the next, ..."""
    sizes_per_batch: int = 1
    """Sizes of the problems in a batch."""
    noise: float = 0.0
    """The largest noise on the controller while learning; it goes up and down with the share of
    training problems that are right, once sizes have grown."""
    rate_by: str = "clock"
    """clock: the learning rate falls as --decay-delay says; performance: it follows the loss and
    the share of training problems that are wrong, down to a tenth."""
    beta2: float = USUAL_BETA2
    """Decay of Adam's second moment."""
    steady: float | None = None
    """The largest norm of a gradient, of adam, as a multiple of what it was of late."""
    slow_cells: int = 0
    """Cells of an LSTM that at first keep what they hold for some hundred steps."""
    go_back: bool = False
    """Go back to the best weights, with less noise, where a validation is much worse."""
    solved: float | None = None
    """Training ends at a validation with this coarse accuracy, of fully grown sizes and under
    noise, where there is any; if not given, after all batches."""
    starts: int = 1
    """Machines to begin with, one after the other, until one is good at twice the training sizes,
    or three have learned these alone; then the best goes on."""
    start_batches: int = 2500
    """Updates of each start, if there are several, with a look at it after every fifth; as many
    again, if it has learned the training sizes."""
    test_far: bool = False
    """Score at the end also problems of 4 and 10 times the training size, fewer of them."""

    def __post_init__(self) -> None:
        model = dataclasses.replace(self.model, **canonical_fields(self.model))
        for name, value in {**canonical_fields(self), "model": model}.items():
            object.__setattr__(self, name, value)
        require_one_of("task", self.task, TASKS)
        require_one_of("regime", self.regime, REGIMES)
        require_one_of("init", self.init, INITIALISATIONS)
        require_one_of("optimiser", self.optimiser, OPTIMISERS)
        for name in COUNTS:
            require_positive(**{name: getattr(self, name)})
        for name, largest in LARGEST.items():
            if not 0 <= (getattr(self, name) or 0) <= largest:
                value = getattr(self, name)
                raise ValueError(f"{name} must be a whole number from 0 to {largest}, got {value}")
        for name in ("lr", "clip"):
            value = getattr(self, name)
            if value <= 0:
                raise ValueError(f"{name} must be a number above 0, got {value!r}")
        if self.weight_noise < 0:
            raise ValueError(f"weight_noise must be a number from 0, got {self.weight_noise!r}")
        for name in ("averaging", "growth", "beta2"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be from 0 to below 1, got {value!r}")
        for name, neutral in (("forget_bias", None), ("slow_cells", 0)):
            value = getattr(self, name)
            if value != neutral and self.model.driver != "lstm":
                raise ValueError(f"{name} is only for lstm controllers, got {value!r}")
        cells = self.model.chosen("hidden_size") or 0
        if not 0 <= self.slow_cells <= cells:
            raise ValueError(f"slow_cells must be from 0 to {cells}, got {self.slow_cells}")
        self._require_steerable()

    def _require_steerable(self) -> None:
        """What is adjusted by performance can be, and nothing is asked for twice."""
        for name in ("growth_by", "rate_by"):
            require_one_of(name, getattr(self, name), STEERED_BY)
        require_one_of("growth_of", self.growth_of, GROWTH_OF)
        if self.growth_by == "clock" and self.growth_of != GROWTH_OF[0]:
            raise ValueError(f"growth_of is only for growth_by performance, got {self.growth_of!r}")
        if self.growth and self.sizes_per_batch > 1:
            raise ValueError(f"sizes_per_batch must be 1 with growth, got {self.sizes_per_batch}")
        if self.sizes_per_batch > BATCH_SIZE:
            raise ValueError(
                f"sizes_per_batch must be at most {BATCH_SIZE}, got {self.sizes_per_batch}"
            )
        if self.growth_by == "performance" and self.growth:
            raise ValueError(f"growth is only for growth_by clock, got {self.growth!r}")
        if self.noise < 0:
            raise ValueError(f"noise must be a number from 0, got {self.noise!r}")
        takers = [name for name, design in MODELS.items() if design.noisy]
        if self.noise and self.model.model not in takers:
            raise ValueError(
                f"noise is only for {', '.join(takers)}; got {self.noise!r} for {self.model.model}"
            )
        for name, neutral in (("beta2", USUAL_BETA2), ("steady", None)):
            value = getattr(self, name)
            if self.optimiser != "adam" and value != neutral:
                raise ValueError(f"{name} is only for adam, got {value!r} for {self.optimiser}")
        if self.steady is not None and self.steady <= 0:
            raise ValueError(f"steady must be a number above 0, got {self.steady!r}")
        if self.solved is not None and not 0 < self.solved <= 1:
            raise ValueError(f"solved must be above 0 and at most 1, got {self.solved!r}")
        if self.starts > 1 and self.start_batches >= self.batches:
            raise ValueError(
                f"start_batches must be below batches, {self.batches}, got {self.start_batches}"
            )

    @property
    def growth_batches(self) -> int:
        """Updates in which sizes grow by the clock."""
        return round(self.growth * self.batches)

    def grows_answers_only(self, start: Any = 0) -> Any:
        """Whether a start of that number has problems of all sizes from the beginning."""
        return start % 2 == 1 if self.growth_of == "turns" else self.growth_of == "answers"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def flat(self) -> dict[str, Any]:
        """All settings by name, the model's among them."""
        values = self.to_dict()
        return {**values, **values["model"]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainConfig":
        """What `to_dict` gave, also before the later fields were there."""
        missing = FIRST_FIELDS - values.keys() - values["model"].keys()
        if missing:
            raise KeyError(*sorted(missing))
        return cls(**{**values, "model": ModelConfig(**values["model"])})

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that differ for every config."""
        return digest_of(identity(self))

    def is_of(self, digest: str, stored: dict[str, Any]) -> bool:
        """Whether a run of this config, as it was stored, can have that digest.

        Earlier ones told 1 from 1.0, and the very first did not know all of `FIRST_FIELDS`.
        """
        own = identity(self)
        told = {name: stored[name] for name in own}
        told["model"] = {name: stored["model"][name] for name in own["model"]}
        first = {name: value for name, value in told.items() if name not in UNKNOWN_AT_FIRST}
        return digest in (digest_of(told), digest_of(first))

    @property
    def command(self) -> str:
        """The command that trains it.

        >>> configure(task="reverse", model="slantm", action_interpolation=True).command
        'lantm train reverse --model slantm --action-interpolation'
        """
        return min(map(self._command, RECIPES), key=len)

    def _command(self, recipe: str) -> str:
        """The command that begins with that recipe."""
        words = [f"lantm train {self.task}"] + [f"--recipe {recipe}"] * (recipe != "default")
        same = {"model": self.model.model, "controller": self.model.controller}
        usual = configure(recipe, task=self.task, **same).flat()
        usual |= {"model": ModelConfig.model, "controller": ModelConfig.controller}
        for name, value in self.flat().items():
            if value != usual[name]:
                words.append(option(name, value))
        return " ".join(words)

    @property
    def name(self) -> str:
        """The name of the run's directory."""
        return f"{self.task}-{self.model.model}-{self.regime}-seed{self.seed}-{self.digest}"


def option(name: str, value: Any) -> str:
    """A setting on the command line.

    >>> option("read_heads", 2), option("blank", False), option("steady", None)
    ('--read-heads 2', '--no-blank', '--steady none')
    """
    word = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{word}" if value else f"--no-{word}"
    return f"--{word} {UNSET if value is None else shlex.quote(str(value))}"


def digest_of(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def identity(config: Any) -> dict[str, Any]:
    """The settings that tell a config from all others; see `FIRST_FIELDS`."""
    values = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.name in FIRST_FIELDS or getattr(config, field.name) != field.default
    }
    nested = {name: identity(v) for name, v in values.items() if dataclasses.is_dataclass(v)}
    return values | nested


RECIPES: dict[str, dict[str, Any]] = {
    "default": {
        "space": {"sphere": "sphere2"},
        "weighting": "inverse_power",
        "output": "nonlinear",
        "gate": "cut_off",
        "anchored": True,
        "blank": True,
        "blended": True,
        "homing": True,
        "read_heads": 2,
        "strength_floor": 0.2,
        "initial_strength_bias": -4.0,
        "read_gate_bias": -3.0,
        "write_gate_bias": -5.0,
        "slow_cells": 5,
        "optimiser": "adam",
        "lr": 0.005,
        "beta2": 0.99,
        "steady": 2.0,
        "sizes_per_batch": 4,
        "growth_by": "performance",
        "growth_of": "turns",
        "noise": 1.0,
        "rate_by": "performance",
        "go_back": True,
        "solved": 0.99,
        "starts": 8,
    },
    "plain": {},
    "paper": {
        "clip": 32.0,
        "averaging": 0.0,
        "read_gate_bias": 0.0,
        "decay_delay": 300,
        "validate_from": 5000,
        "validation_examples": 3200,
    },
}
"""Settings that belong together, by name; fields of `TrainConfig` and of its model. What the space
is depends on that which a model's name stands for. `plain` trains the paper's machine.
"""


def fitting(recipe: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """What the settings of a run, its model among them, leave of a recipe."""
    chosen = TrainConfig().flat() | recipe | settings
    design = MODELS[chosen["model"]]
    cells = settings.get("hidden_size") or design.stands_for.get("hidden_size") or 0
    driver = design.controller or chosen["controller"]
    spaces, own = recipe.get("space", {}), design.stands_for.get("space")
    ruled_out = {
        "space": own not in spaces,
        "noise": not design.noisy,
        "slow_cells": driver != "lstm" or cells < chosen["slow_cells"],
        "beta2": chosen["optimiser"] != "adam",
        "steady": chosen["optimiser"] != "adam",
        "starts": chosen["batches"] <= chosen["start_batches"],
        "sizes_per_batch": bool(chosen["growth"]),
        "growth_by": bool(chosen["growth"]),
        "growth_of": bool(chosen["growth"]) or chosen["growth_by"] == "clock",
    }
    foreign = OWN_SETTINGS.keys() - design.takes | {name for name, out in ruled_out.items() if out}
    known = recipe | {"space": spaces.get(own)}
    return {name: value for name, value in known.items() if name not in foreign}


def configure(recipe: str = "default", **settings: Any) -> TrainConfig:
    """A config from a recipe and settings of one's own, model fields included.

    >>> config = configure("paper", task="reverse", model="slantm", seed=2)
    >>> config.clip, config.model.model, config.model.read_gate_bias
    (32.0, 'slantm', 0.0)

    Of a recipe only that counts which goes with the settings, as no noise with `transformer`.
    """
    require_one_of("recipe", recipe, RECIPES)
    require_one_of("model", settings.get("model", ModelConfig.model), MODELS)
    merged = fitting(RECIPES[recipe], settings) | settings
    model_fields = {f.name for f in dataclasses.fields(ModelConfig)}
    own_fields = {f.name for f in dataclasses.fields(TrainConfig)} - {"model"}
    for name in merged:
        require_one_of("setting", name, sorted(model_fields | own_fields))
    model = {name: value for name, value in merged.items() if name in model_fields}
    own = {name: value for name, value in merged.items() if name in own_fields}
    return TrainConfig(**own, model=dataclasses.replace(TrainConfig().model, **model))
