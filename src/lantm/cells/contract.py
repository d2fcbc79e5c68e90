"""What a cell is, and what it tells about a step."""

import abc
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from lantm.keyspaces import Action

State: TypeAlias = Any
"""All that a cell carries from step to step: a named, immutable value of arrays."""


class HeadTrace(NamedTuple):
    """What one head did in one step; None is what the model does not have."""

    key: Float[Array, "*batch key_size"]
    """q', where the head reads or writes."""
    gate: Float[Array, "*batch"] | Float[Array, "*batch 3"] | None = None
    """The weight of random access, 1 - t. RAM/Tape: of the controller's, forward, backward key."""
    action: Action | None = None
    """a, the group element that moved the head."""
    action_gate: Float[Array, "*batch"] | None = None
    """r, the weight of the new action against the last one."""


class Trace(NamedTuple):
    """What one step did; None is what the model does not have."""

    hidden: Float[Array, "*batch hidden"]
    """h, the controller's state."""
    read: HeadTrace | None = None
    write: HeadTrace | None = None
    weights: Float[Array, "*batch slots"] | None = None
    """w_i, over the memories that existed before this step's write."""
    reading: Float[Array, "*batch width"] | None = None
    """rho"""
    value: Float[Array, "*batch width"] | None = None
    """v, kept in memory only where the step writes."""
    strength: Float[Array, "*batch"] | None = None
    """s, likewise."""
    output_gate: Float[Array, "*batch"] | None = None
    """How much of the reading goes into the output."""


class Cell(eqx.Module):
    """One step of a machine: controller, heads and memory. Unbatched; `jax.vmap` adds the batch."""

    input_size: eqx.AbstractVar[int]
    output_size: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def initial_memories(self) -> int:
        """Memories that exist before the first step."""

    @abc.abstractmethod
    def init_state(self, capacity: int) -> State:
        """The learnable initial state, with room for `capacity` memories, initial ones included."""

    @abc.abstractmethod
    def step(
        self, state: State, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[State, Float[Array, " output_size"], Trace]:
        """The next state, this step's output, and what happened. `write` keeps the new memory."""


def split(vector: Shaped[Array, " n"], sizes: Sequence[int]) -> list[Shaped[Array, " _"]]:
    """Consecutive pieces of the given sizes."""
    return jnp.split(vector, list(accumulate(sizes))[:-1])
