"""How a machine finds its way in its memory: all in which the memory machines differ."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from lantm.memory import Slots, to_weights
from lantm.parts.overrides import owner, written_for
from lantm.parts.trace import HeadTrace
from lantm.spaces import Chart, coordinates, straight_distances

Heads: TypeAlias = Any
"""What an access carries from step to step: the heads' positions, for one."""

Movement: TypeAlias = Any
"""What a command makes of the heads, before the memory is looked at."""

Masses: TypeAlias = Float[Array, "reads slots"]


class Addressing(NamedTuple):
    """The outcome of addressing: where the heads are and what they see."""

    heads: Heads
    weights: Float[Array, "reads slots"]
    """w_i of each read head."""
    read: HeadTrace
    write: HeadTrace
    """Its keys are those of the memories to be written."""


class Access(eqx.Module):
    """Keys, heads and read weights.

    A step of addressing is `__call__`; the fast loop calls its pieces. A subclass with a `__call__`
    of its own is unrolled by the plain scan.
    """

    key_size: eqx.AbstractVar[int]
    command_size: eqx.AbstractVar[int]
    """Numbers the controller emits for addressing at every step."""
    initial_memories: eqx.AbstractVar[int]
    """Memories that exist before the first step."""
    leak: eqx.AbstractVar[float]
    """Of the read weights, as in `to_weights`."""
    read_heads: eqx.AbstractVar[int]
    write_heads: eqx.AbstractVar[int]
    """As many memories are written in a step."""

    @abc.abstractmethod
    def init_heads(self) -> Heads:
        """The learnable heads before the first step."""

    @abc.abstractmethod
    def project(self, raw: Float[Array, " key_size"]) -> Float[Array, " key_size"]:
        """The key of an initial memory from its raw parameter."""

    @abc.abstractmethod
    def move(
        self, command: Float[Array, " command_size"], heads: Heads
    ) -> tuple[Movement, HeadTrace, HeadTrace]:
        """Where the heads go; and what the read and the write heads did."""

    def move_to_read(self, command: Float[Array, " command_size"], heads: Heads) -> Movement:
        """The same where nothing is written: what reading does not need may stay behind."""
        return self.move(command, heads)[0]

    def catch_up(self, command: Float[Array, " command_size"], heads: Heads) -> Heads:
        """Move what `move_to_read` left behind."""
        return heads

    @abc.abstractmethod
    def write_keys(self, movement: Movement) -> Float[Array, "writes key_size"]:
        """The keys of the memories to be written."""

    @abc.abstractmethod
    def weigh(self, movement: Movement, slots: Slots) -> Masses:
        """The read weights of the memories that exist so far, before `to_weights`."""

    @abc.abstractmethod
    def settle(
        self, movement: Movement, weights: Float[Array, "reads slots"], slots: Slots
    ) -> Heads:
        """The heads after the step."""

    def __call__(
        self, command: Float[Array, " command_size"], heads: Heads, slots: Slots
    ) -> Addressing:
        """Move the heads and weigh the memories that exist so far."""
        movement, read, write = self.move(command, heads)
        weights = self.normalise(self.weigh(movement, slots))
        heads = self.settle(movement, weights, slots)
        write = write._replace(key=self.write_keys(movement))
        return Addressing(heads, weights, *map(self.with_velocities, (read, write)))

    def with_velocities(self, trace: HeadTrace) -> HeadTrace:
        """Not told by `move`, which is in the loop: a logarithm can be longer than all the rest."""
        if trace.action is None:
            return trace
        return trace._replace(velocity=self.velocities(trace.action))

    def velocities(self, actions: Any) -> Float[Array, "heads algebra_size"] | None:
        """log a of each head, where there is such a thing."""
        return None

    def normalise(self, masses: Masses) -> Float[Array, "reads slots"]:
        """The weights of each reading."""
        return jax.vmap(lambda one: to_weights(one, self.leak))(masses)

    def chart(self, keys: np.ndarray) -> Chart:
        """Keys, one a row, as points of a picture."""
        return coordinates(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        """How far each of these keys is from each."""
        return straight_distances(keys)

    @property
    def in_pieces(self) -> bool:
        """Whether a step is what the pieces above make of it."""
        return owner(type(self), "__call__") is Access

    @property
    def leaves_behind(self) -> bool:
        """Whether `move_to_read` and `catch_up` were written for this access's `move`."""
        return all(
            written_for(type(self), short_cut, "move")
            and owner(type(self), short_cut) is not Access
            for short_cut in ("move_to_read", "catch_up")
        )
