"""Machines by name: the seven of the paper (section 5, models and baselines), their peers from
other papers, and users' own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
from jaxtyping import PRNGKeyArray

from lantm.errors import require_one_of, require_positive
from lantm.machines.cell import Cell
from lantm.machines.lstm_cell import LSTMCell
from lantm.machines.memory_cell import MemoryCell
from lantm.machines.peers import DNCCell, NTMCell, StackCell, TapeCell, Transformer
from lantm.machines.seq2seq import Machine, SequenceModel
from lantm.memory import WEIGHTINGS
from lantm.parts import CONTROLLERS, GATES, OUTPUTS, Access, Gate, Head, LieAccess, RandomAccess
from lantm.spaces import find_space
from lantm.tasks import Vocabulary


@dataclass(frozen=True)
class ModelConfig:
    """A machine's design and sizes; the defaults are the paper's (section 5, appendix A)."""

    model: str = "lantm"
    """lstm, ram, ram_tape, lantm, lantm_s, slantm or slantm_s; from other papers: gru, ntm, dnc,
    stack_rnn, tape_rnn or transformer."""
    space: str | None = None
    """Another key space for a Lie-access model: plane, sphere, circle, rigid, line*circle, ..."""
    hidden_size: int | None = None
    """Cells of each layer of the controller; 256 for lstm and gru and 50 for the others if not
    given. Of transformer: numbers for each symbol, 64 if not given."""
    layers: int = 1
    """Layers of the controller, 1 to 4 in the paper's grid for lstm."""
    embedding_size: int | None = None
    """Numbers for each input symbol; 128 for lstm and gru and 14 for the others if not given."""
    memory_width: int = 20
    """Numbers in a memory's value."""
    key_size: int | None = None
    """Numbers in a key of ram and ram_tape, 2 or 20 in the paper's grid; 20 if not given."""
    sharpen: bool = False
    """Sharpen the weights of ram and ram_tape."""
    action_interpolation: bool = False
    """Mix each action with the last one (appendix B)."""
    read_gate_bias: float = 0.0
    """Added to the read heads' gates; low values favour Lie access over random access."""
    write_gate_bias: float = -10.0
    """Likewise for the write heads."""
    read_action_gate_bias: float = 0.0
    """Added to the read heads' action gates; low values favour the last action."""
    write_action_gate_bias: float = -10.0
    """Likewise for the write heads."""
    initial_strength_bias: float = -10.0
    """Added to the strength of the initial memories."""
    weighting: str | None = None
    """Another weighting for a Lie-access model: inverse_square, softmax or inverse_power."""
    controller: str = "lstm"
    """What drives the heads: lstm or gru."""
    output: str = "linear"
    """linear: the paper's; nonlinear: with a layer that sees state and readings together."""
    read_heads: int = 1
    """Of a Lie-access model, ntm or dnc."""
    write_heads: int = 1
    """Of a Lie-access model; each writes a memory at every step."""
    gate: str = "sigmoid"
    """Of random access. sigmoid: the paper's; cut_off: one that can be shut for good."""
    anchored: bool = False
    """After a reading, read heads go part of the way to the mean key of what they read."""
    blended: bool = False
    """Where a gate is half open, read at both places, instead of at a place between them."""
    strength_floor: float = 0.0
    """The least strength of a memory, from 0 to 1."""
    blank: bool = False
    """Where nothing was written heads read a blank, the initial memory, instead of the nearest."""
    homing: bool = False
    """Random access leads heads back to where they began, not to places that are emitted."""
    memories: int = 1
    """Of a Lie-access model; each has as many heads of its own as are asked for."""
    slots: int | None = None
    """Memories of ntm and dnc, depth of stack_rnn, cells of tape_rnn: however long the problem is.
    If not given 128, and 64 for dnc."""
    blocks: int | None = None
    """Of the encoder of transformer, and of its decoder; 3 if not given."""

    def __post_init__(self) -> None:
        require_one_of("model", self.model, MODELS)
        require_one_of("controller", self.controller, CONTROLLERS)
        require_one_of("output", self.output, OUTPUTS)
        sizes = ("layers", "memory_width", "read_heads", "write_heads", "memories")
        optional = ("hidden_size", "embedding_size", "key_size", "slots", "blocks")
        for name in (*sizes, *(name for name in optional if getattr(self, name) is not None)):
            require_positive(**{name: getattr(self, name)})
        for name, neutral in OWN_SETTINGS.items():
            takers = [model for model, design in MODELS.items() if name in design.takes]
            if getattr(self, name) != neutral and self.model not in takers:
                raise ValueError(
                    f"{name} is only for {', '.join(takers)}; "
                    f"got {getattr(self, name)!r} for {self.model}"
                )
        own = MODELS[self.model].controller
        if own is not None and self.controller not in ("lstm", own):
            raise ValueError(f"controller of {self.model} is {own}, got {self.controller!r}")
        if not 0 <= self.strength_floor <= 1:
            raise ValueError(f"strength_floor must be from 0 to 1, got {self.strength_floor!r}")
        require_one_of("gate", self.gate, GATES)
        if self.chosen("space") is not None:
            find_space(self.chosen("space"))
        if self.chosen("weighting") is not None:
            require_one_of("weighting", self.chosen("weighting"), WEIGHTINGS)

    def chosen(self, name: str) -> Any:
        """A setting, or where it is not given, what the model's name stands for."""
        value = getattr(self, name)
        return MODELS[self.model].stands_for.get(name) if value is None else value

    @property
    def driver(self) -> str:
        """The controller that the model has."""
        return MODELS[self.model].controller or self.controller


Build: TypeAlias = Callable[[ModelConfig, int, int, PRNGKeyArray], Cell]
BuildModel: TypeAlias = Callable[[ModelConfig, Vocabulary, PRNGKeyArray], SequenceModel]


@dataclass(frozen=True)
class Design:
    """What a model's name stands for."""

    build: Build | None
    """Makes its cell: from the config, the sizes of input and output, and a random key."""
    stands_for: Mapping[str, Any] = field(default_factory=dict)
    """Settings that a config need not give."""
    takes: frozenset[str] = frozenset()
    """Those of `OWN_SETTINGS` that mean something to it."""
    controller: str | None = None
    """The one it always has, or `none`; if not given, the config's."""
    build_model: BuildModel | None = None
    """Instead of `build`, where there is no cell: makes what answers tokens with logits."""
    noisy: bool = True
    """Whether noise can be put on its controller while it learns."""


# ---- cells


def build_machine(
    config: ModelConfig, vocabulary: Vocabulary, *, key: PRNGKeyArray
) -> SequenceModel:
    """A machine for tokens, with fresh parameters."""
    build_model = MODELS[config.model].build_model
    if build_model is not None:
        return build_model(config, vocabulary, key)
    cell_key, embedding_key = jax.random.split(key)
    cell = build_cell(config, config.chosen("embedding_size"), vocabulary.size, key=cell_key)
    return Machine(vocabulary, cell, key=embedding_key)


def build_cell(
    config: ModelConfig, input_size: int, output_size: int, *, key: PRNGKeyArray
) -> Cell:
    """The machine's cell on its own, for continuous inputs."""
    build = MODELS[config.model].build
    if build is None:
        raise ValueError(f"model must be one that has a cell, got {config.model}")
    return build(config, input_size, output_size, key)


def build_lstm(
    config: ModelConfig, input_size: int, output_size: int, key: PRNGKeyArray
) -> LSTMCell:
    hidden_size, make = config.chosen("hidden_size"), CONTROLLERS[config.driver]
    return LSTMCell(input_size, output_size, hidden_size, config.layers, controller=make, key=key)


def build_transformer(
    config: ModelConfig, vocabulary: Vocabulary, key: PRNGKeyArray
) -> Transformer:
    return Transformer(vocabulary, config.chosen("hidden_size"), config.chosen("blocks"), key=key)


def with_slots(make: Callable[..., Cell], *settings: str) -> Build:
    """What makes cells of peers with a memory of fixed size; they may take further settings."""

    def build(config: ModelConfig, input_size: int, output_size: int, key: PRNGKeyArray) -> Cell:
        return make(
            input_size,
            output_size,
            config.chosen("slots"),
            config.memory_width,
            *(config.chosen(name) for name in settings),
            hidden_size=config.chosen("hidden_size"),
            layers=config.layers,
            controller=CONTROLLERS[config.driver],
            key=key,
        )

    return build


def with_memory(
    build_access: Callable[[ModelConfig, PRNGKeyArray], Access], *, gated_output: bool
) -> Build:
    """What makes memory cells with that access."""

    def build(
        config: ModelConfig, input_size: int, output_size: int, key: PRNGKeyArray
    ) -> MemoryCell:
        access_key, cell_key = jax.random.split(key)
        return MemoryCell(
            input_size,
            output_size,
            build_access(config, access_key),
            hidden_size=config.chosen("hidden_size"),
            width=config.memory_width,
            layers=config.layers,
            controller=CONTROLLERS[config.controller],
            output=OUTPUTS[config.output],
            gated_output=gated_output,
            initial_strength_bias=config.initial_strength_bias,
            strength_floor=config.strength_floor,
            key=cell_key,
        )

    return build


# ---- accesses


def build_random_access(config: ModelConfig, key: PRNGKeyArray) -> RandomAccess:
    tape = config.model == "ram_tape"
    return RandomAccess(config.chosen("key_size"), tape=tape, sharpen=config.sharpen, key=key)


def build_lie_access(config: ModelConfig, key: PRNGKeyArray) -> LieAccess:
    read_key, write_key = jax.random.split(key)
    read_biases = config.read_gate_bias, config.read_action_gate_bias
    write_biases = config.write_gate_bias, config.write_action_gate_bias
    reads, writes = (n * config.memories for n in (config.read_heads, config.write_heads))
    return LieAccess(
        find_space(config.chosen("space")),
        [_build_head(config, *read_biases, k) for k in _keys(read_key, reads)],
        [_build_head(config, *write_biases, k) for k in _keys(write_key, writes)],
        WEIGHTINGS[config.chosen("weighting")](),
        anchored=config.anchored,
        blended=config.blended,
        blank=config.blank,
        memories=config.memories,
    )


def _keys(key: PRNGKeyArray, heads: int) -> list[PRNGKeyArray]:
    """One for each head; the first is as if it were alone."""
    return [key, *(jax.random.fold_in(key, number) for number in range(1, heads))]


def _build_head(
    config: ModelConfig, gate_bias: float, action_gate_bias: float, key: PRNGKeyArray
) -> Head:
    reach_key, head_key = jax.random.split(key)
    action_gate = Gate(action_gate_bias) if config.action_interpolation else None
    space = find_space(config.chosen("space"))
    reach, gate = space.reach(reach_key), GATES[config.gate](gate_bias)
    return Head(
        space,
        reach=reach,
        gate=gate,
        action_gate=action_gate,
        homing=config.homing,
        key=head_key,
    )


# ---- the catalogue

OWN_SETTINGS: dict[str, Any] = {
    "space": None,
    "weighting": None,
    "action_interpolation": False,
    "read_heads": 1,
    "write_heads": 1,
    "key_size": None,
    "sharpen": False,
    "output": "linear",
    "gate": "sigmoid",
    "anchored": False,
    "blended": False,
    "homing": False,
    "blank": False,
    "strength_floor": 0.0,
    "memories": 1,
    "slots": None,
    "blocks": None,
}
"""Settings that only some models take, with the values that say nothing."""

SIZES = {"hidden_size": 50, "embedding_size": 14}
MEMORY = frozenset({"output", "strength_floor"})
LIE = MEMORY | {
    *("space", "weighting", "action_interpolation", "read_heads", "write_heads"),
    *("gate", "anchored", "blended", "homing", "blank", "memories"),
}
RANDOM = MEMORY | {"key_size", "sharpen"}


def lie_model(space: str, weighting: str) -> Design:
    """A Lie-access machine; a config may name another space and weighting."""
    build = with_memory(build_lie_access, gated_output=True)
    return Design(build, SIZES | {"space": space, "weighting": weighting}, LIE)


RAM = Design(with_memory(build_random_access, gated_output=False), SIZES | {"key_size": 20}, RANDOM)


def slot_model(make: Callable[..., Cell], slots: int, *settings: str) -> Design:
    """A peer with a memory of fixed size."""
    takes = frozenset({"slots", *settings})
    return Design(with_slots(make, *settings), SIZES | {"slots": slots}, takes)


WIDE = {"hidden_size": 256, "embedding_size": 128}

MODELS: dict[str, Design] = {
    "lstm": Design(build_lstm, WIDE),
    "ram": RAM,
    "ram_tape": RAM,
    "lantm": lie_model("plane", "inverse_square"),
    "lantm_s": lie_model("plane", "softmax"),
    "slantm": lie_model("sphere", "inverse_square"),
    "slantm_s": lie_model("sphere", "softmax"),
    "gru": Design(build_lstm, WIDE, controller="gru"),
    "ntm": slot_model(NTMCell, 128, "read_heads"),
    "dnc": slot_model(DNCCell, 64, "read_heads"),
    "stack_rnn": slot_model(StackCell, 128),
    "tape_rnn": slot_model(TapeCell, 128),
    "transformer": Design(
        None,
        {"hidden_size": 64, "blocks": 3},
        frozenset({"blocks"}),
        controller="none",
        build_model=build_transformer,
        noisy=False,
    ),
}
"""Every model by name."""
