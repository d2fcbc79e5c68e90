"""A recurrent network with a tape (Suzgun et al. 2019; with jumps as in Deletang et al. 2023)."""

from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lantm.machines.peers.slots import SlotCell
from lantm.parts.pieces import split

ACTIONS = 5
"""Stay, one cell on, one back, a jump on, a jump back."""


class Tape(NamedTuple):
    cells: Float[Array, "*batch slots width"]
    """From the head's cell on; after the last cell comes the first."""
    jump: Int[Array, "*batch"]
    """How far a jump goes: as many cells as the input had steps so far."""


class TapeCell(SlotCell):
    """The controller sees the head's cell, writes there, and moves the head.

    The move is a mixture of five. The paper's machine is told how long the input is; this one
    counts, so that jumps are as long as the input only once it has ended.
    """

    def __init__(
        self, input_size: int, output_size: int, slots: int = 128, width: int = 20, **driver: Any
    ):
        """With one head; `driver` is the rest of what `Driver` takes."""
        super().__init__(input_size, output_size, slots, width, **driver)

    @property
    def command_size(self) -> int:
        return ACTIONS + self.width

    def init_memory(self, reading: Float[Array, " width"]) -> Tape:
        """An empty tape but for that learned value where the head begins."""
        cells = jnp.zeros((self.slots, self.width), reading.dtype).at[0].set(reading)
        return Tape(cells, jnp.array(0, jnp.int32))

    def work(
        self, command: Float[Array, " command"], memory: Tape, *, write: bool = True
    ) -> tuple[Tape, Float[Array, "1 width"], None]:
        """`write` tells the input, whose steps are counted, from the answer."""
        actions, value = split(command, (ACTIONS, self.width))
        jump = memory.jump + 1 if write else memory.jump
        cells = move(memory.cells.at[0].set(value), jax.nn.softmax(actions), jump)
        return Tape(cells, jump), cells[:1], None


@jax.custom_vjp
def move(
    tape: Float[Array, "slots width"], actions: Float[Array, "5"], jump: Int[Array, ""]
) -> Float[Array, "slots width"]:
    """The tape as seen from where the head goes, each way with its probability."""
    return mean(actions, views(tape, jump))


def views(tape: Float[Array, "slots width"], jump: Int[Array, ""]) -> list[Array]:
    """What the head would see after each of its moves."""
    return [jnp.roll(tape, -by, axis=0) for by in (0, 1, -1, jump, -jump)]


def mean(weights: Float[Array, " n"], parts: list[Array]) -> Array:
    return reduce(jnp.add, (weight * part for weight, part in zip(weights, parts, strict=True)))


def _move(*given: Array) -> tuple[Array, tuple[Array, ...]]:
    return move(*given), given


def _move_back(given: tuple[Array, ...], after: Array) -> tuple[Array, Array, None]:
    """By the opposite moves, which are copies; the transposes that JAX would find add up cell by
    cell.
    """
    tape, actions, jump = given
    stay, on, back, jump_on, jump_back = views(after, jump)
    d_actions = [jnp.sum(after * seen) for seen in views(tape, jump)]
    return mean(actions, [stay, back, on, jump_back, jump_on]), jnp.stack(d_actions), None


move.defvjp(_move, _move_back)
