"""The seven machines of the paper by name (section 4, models and baselines)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
from jaxtyping import PRNGKeyArray

from lantm.errors import require_one_of, require_positive
from lantm.machines.cell import Cell
from lantm.machines.lstm_cell import LSTMCell
from lantm.machines.memory_cell import MemoryCell
from lantm.machines.seq2seq import Machine
from lantm.memory.weighting import InverseSquare, Softmax
from lantm.parts import Access, Gate, Head, LieAccess, RandomAccess
from lantm.spaces import SPACES
from lantm.tasks import Vocabulary

WEIGHTINGS: dict[str, type[InverseSquare] | type[Softmax]] = {
    "inverse_square": InverseSquare,
    "softmax": Softmax,
}


class Design(NamedTuple):
    """What makes a model, apart from sizes."""

    access: str | None
    """How it addresses its memory: `lie`, `ram`, `ram_tape`, or not at all."""
    space: str | None = None
    """The key space of Lie access, one of `SPACES`."""
    weighting: str | None = None
    """The weighting of Lie access, one of `WEIGHTINGS`."""


MODELS: dict[str, Design] = {
    "lstm": Design(None),
    "ram": Design("ram"),
    "ram_tape": Design("ram_tape"),
    "lantm": Design("lie", "plane", "inverse_square"),
    "lantm_s": Design("lie", "plane", "softmax"),
    "slantm": Design("lie", "sphere", "inverse_square"),
    "slantm_s": Design("lie", "sphere", "softmax"),
}


@dataclass(frozen=True)
class ModelConfig:
    """A machine's design and sizes; the defaults are the paper's (section 4, appendix A)."""

    model: str = "lantm"
    """lstm, ram, ram_tape, lantm, lantm_s, slantm or slantm_s."""
    space: str | None = None
    """Another key space for a Lie-access model: plane, free_plane, sphere, bounded_sphere, ..."""
    hidden_size: int | None = None
    """Cells of each LSTM layer; 256 for lstm and 50 for the others if not given."""
    layers: int = 1
    """LSTM layers, 1 to 4 in the paper's grid for lstm."""
    embedding_size: int | None = None
    """Numbers for each input symbol; 128 for lstm and 14 for the others if not given."""
    memory_width: int = 20
    """Numbers in a memory's value."""
    key_size: int | None = None
    """Numbers in a key of ram and ram_tape, 2 or 20 in the paper's grid; 20 if not given."""
    sharpen: bool = False
    """Sharpen the weights of ram and ram_tape."""
    action_interpolation: bool = False
    """Mix each action with the last one (appendix B)."""
    read_gate_bias: float = 0.0
    """Added to the read head's gate; low values favour Lie access over random access."""
    write_gate_bias: float = -10.0
    """Likewise for the write head."""
    read_action_gate_bias: float = 0.0
    """Added to the read head's action gate; low values favour the last action."""
    write_action_gate_bias: float = -10.0
    """Likewise for the write head."""
    initial_strength_bias: float = -10.0
    """Added to the strength of the initial memories."""

    def __post_init__(self) -> None:
        require_one_of("model", self.model, MODELS)
        require_positive(layers=self.layers, memory_width=self.memory_width)
        for name in ("hidden_size", "embedding_size", "key_size"):
            if getattr(self, name) is not None:
                require_positive(**{name: getattr(self, name)})
        if MODELS[self.model].access == "lie":
            require_one_of("space", self.space_name, SPACES)
        else:
            self._require_unset("lantm, lantm_s, slantm, slantm_s", "space", "action_interpolation")
        if MODELS[self.model].access not in ("ram", "ram_tape"):
            self._require_unset("ram, ram_tape", "key_size", "sharpen")

    def _require_unset(self, models: str, *options: str) -> None:
        for name in options:
            if getattr(self, name):
                raise ValueError(
                    f"{name} is only for {models}; got {getattr(self, name)!r} for {self.model}"
                )

    @property
    def space_name(self) -> str:
        """The key space of a Lie-access model."""
        return self.space or str(MODELS[self.model].space)


def build_machine(config: ModelConfig, vocabulary: Vocabulary, *, key: PRNGKeyArray) -> Machine:
    """A machine for tokens, with fresh parameters."""
    cell_key, embedding_key = jax.random.split(key)
    embedding_size = config.embedding_size or (128 if config.model == "lstm" else 14)
    cell = build_cell(config, embedding_size, vocabulary.size, key=cell_key)
    return Machine(vocabulary, cell, key=embedding_key)


def build_cell(
    config: ModelConfig, input_size: int, output_size: int, *, key: PRNGKeyArray
) -> Cell:
    """The machine's cell on its own, for continuous inputs."""
    design = MODELS[config.model]
    hidden_size = config.hidden_size or (50 if design.access else 256)
    if design.access is None:
        return LSTMCell(input_size, output_size, hidden_size, config.layers, key=key)
    access_key, cell_key = jax.random.split(key)
    return MemoryCell(
        input_size,
        output_size,
        _build_access(config, design, access_key),
        hidden_size=hidden_size,
        width=config.memory_width,
        layers=config.layers,
        initial_strength_bias=config.initial_strength_bias,
        key=cell_key,
    )


def _build_access(config: ModelConfig, design: Design, key: PRNGKeyArray) -> Access:
    if design.access != "lie":
        tape = design.access == "ram_tape"
        return RandomAccess(config.key_size or 20, tape=tape, sharpen=config.sharpen, key=key)
    read_key, write_key = jax.random.split(key)
    read_biases = config.read_gate_bias, config.read_action_gate_bias
    write_biases = config.write_gate_bias, config.write_action_gate_bias
    return LieAccess(
        _build_head(config, *read_biases, read_key),
        _build_head(config, *write_biases, write_key),
        WEIGHTINGS[str(design.weighting)](),
    )


def _build_head(
    config: ModelConfig, gate_bias: float, action_gate_bias: float, key: PRNGKeyArray
) -> Head:
    space_key, head_key = jax.random.split(key)
    action_gate = Gate(action_gate_bias) if config.action_interpolation else None
    space = SPACES[config.space_name](space_key)
    return Head(space, gate=Gate(gate_bias), action_gate=action_gate, key=head_key)
