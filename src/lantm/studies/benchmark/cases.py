"""What is timed: training steps of a model on problems of one size."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lantm.errors import require_one_of
from lantm.machines.models import ModelConfig, build_machine
from lantm.machines.seq2seq import Machine
from lantm.tasks import TASKS, Batch, Task
from lantm.tasks.streams import BATCH_SIZE

MODELS = ("lantm", "slantm")
"""The models that the PyTorch yardstick has too."""


@dataclass(frozen=True)
class Case:
    """Training steps of one batch: the paper's model sizes, 32 problems of one size.

    >>> case = Case("lantm", "copy", 32)
    >>> case.length, case.answer_length
    (33, 33)
    """

    model: str
    task: str
    size: int
    space: str | None = None
    """Another key space than the model's own."""

    def __post_init__(self) -> None:
        require_one_of("model", self.model, MODELS)

    @classmethod
    def copy(cls, model: str, length: int, space: str | None = None) -> "Case":
        """Copy in `length` encoder and as many decoder steps: `^` and length - 1 symbols, which
        come back with `$` behind them.
        """
        if length < 2:
            raise ValueError(f"lengths must be whole numbers of at least 2, got {length}")
        return cls(model, "copy", length - 1, space)

    @property
    def problem(self) -> Task:
        return TASKS[self.task]

    @property
    def length(self) -> int:
        """Encoder steps, `^` among them."""
        return self.batch().inputs.shape[1]

    @property
    def answer_length(self) -> int:
        """Decoder steps, `$` among them."""
        return self.batch().answers.shape[1]

    def batch(self, seed: int = 0) -> Batch:
        return self.problem.sample(np.random.default_rng(seed), self.size, BATCH_SIZE)

    def shapes(self) -> Machine:
        """A machine with shapes instead of parameters."""
        config, vocabulary = ModelConfig(self.model, self.space), self.problem.vocabulary
        key = jax.eval_shape(lambda: jax.random.key(0))
        return eqx.filter_eval_shape(build_machine, config, vocabulary, key=key)

    def machine(self) -> Machine:
        """One with small random parameters. NumPy draws them, for JAX would compile each draw."""
        rng = np.random.default_rng(0)

        def draw(shape: Any) -> Any:
            if not isinstance(shape, jax.ShapeDtypeStruct):
                return shape
            return jnp.asarray(rng.uniform(-0.3, 0.3, shape.shape), shape.dtype)

        return jax.tree.map(draw, self.shapes())


def floating_point_operations(case: Case) -> int:
    """Of the matrix products that a training step cannot do without.

    Forward: what the loss depends on, and nothing twice. The input's part in the LSTM is a product
    for each different symbol; the encoder needs no outputs, the decoder writes nothing. A reading
    multiplies as many values as there are memories at the time. Backward every product becomes two.
    """
    machine = case.shapes()
    cell: Any = machine.cell
    output, width, strength, gate, command = cell.command_sizes
    gates, hidden = cell.controller.layers[0].from_hidden.weight.shape
    read = command - cell.access.command_sizes[1]
    encode, decode = case.length, case.answer_length
    symbols = min(machine.vocabulary.size, BATCH_SIZE * encode + 1)
    memories = sum(range(1, encode + 1)) + decode * (encode + 1)
    each = (
        (encode + decode) * gates * (width + hidden)
        + encode * hidden * (width + strength + command)
        + decode * (hidden * (output + gate + read) + width * output)
        + memories * width
    )
    return 3 * 2 * (BATCH_SIZE * each + symbols * cell.input_size * gates)
