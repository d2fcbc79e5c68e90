"""Memories of fixed size: what the recurrent peers share."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.errors import require_positive
from lantm.machines.cell import Cell
from lantm.machines.peers.driver import Driver
from lantm.unrolling.scan import Inputs, Lengths, Noise, Outputs, State, unroll_scan

SOFT = 1e-6
"""Added to squared lengths: the direction of a memory of zeros would turn infinitely fast."""
TINY = 1e-12
"""Weights count for at least this, of which a logarithm is taken."""


class SlotCell(Cell):
    """A cell whose memory has a fixed number of slots, which no parameter depends on.

    So a trained machine can be given more of them. All its steps may write, those of the answer
    too, as published.
    """

    driver: Driver
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    slots: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    read_heads: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        output_size: int,
        slots: int = 128,
        width: int = 20,
        read_heads: int = 1,
        **driver: Any,
    ):
        """`driver` is the rest of what `Driver` takes."""
        require_positive(slots=slots, width=width, read_heads=read_heads)
        self.input_size, self.output_size = input_size, output_size
        self.slots, self.width, self.read_heads = slots, width, read_heads
        read_width, command_size = read_heads * width, self.command_size
        self.driver = Driver(input_size, output_size, read_width, command_size, **driver)

    @property
    @abc.abstractmethod
    def command_size(self) -> int:
        """Numbers that the controller emits at every step."""

    @property
    def initial_memories(self) -> int:
        return 0

    def unroll(
        self,
        state: State,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
        noise: Noise | None = None,
    ) -> tuple[State, Outputs]:
        if noise is not None:
            return super().unroll(state, inputs, lengths, write=write, noise=noise)
        return unroll_scan(self, state, inputs, lengths, write=write, recompute=True)


def similarity(
    key: Float[Array, " width"], memory: Float[Array, "slots width"]
) -> Float[Array, " slots"]:
    """The cosine of the angle between the key and each row; 0 where one is a vector of zeros."""
    squares = (jnp.sum(key**2) + SOFT) * (jnp.sum(memory**2, axis=1) + SOFT)
    return memory @ key / jnp.sqrt(squares)


def sharpen(weights: Float[Array, " slots"], exponent: Float[Array, ""]) -> Float[Array, " slots"]:
    """w_i^e / sum_j w_j^e, by logarithms: large exponents would let every power underflow.

    Where all weights are 0 the result is even.
    """
    return jax.nn.softmax(exponent * jnp.log(jnp.maximum(weights, TINY)))


def oneplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 + log(1 + e^x), at least 1."""
    return 1 + jax.nn.softplus(x)
