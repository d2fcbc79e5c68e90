"""How a machine finds its way in its memory: all in which the memory machines differ."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
from jaxtyping import Array, Float

from lantm.memory import Slots
from lantm.memory.weighting import to_weights
from lantm.parts.trace import HeadTrace

Heads: TypeAlias = Any
"""What an access carries from step to step: the heads' positions, for one."""

Movement: TypeAlias = Any
"""What a command makes of the heads, before the memory is looked at."""


class Addressing(NamedTuple):
    """The outcome of addressing: where the heads are and what they see."""

    heads: Heads
    weights: Float[Array, " slots"]
    """w_i"""
    read: HeadTrace
    write: HeadTrace
    """Its key is the key of the memory to be written."""


class Access(eqx.Module):
    """All in which the memory machines differ: keys, heads and read weights."""

    key_size: eqx.AbstractVar[int]
    command_size: eqx.AbstractVar[int]
    """Numbers the controller emits for addressing at every step."""
    initial_memories: eqx.AbstractVar[int]
    """Memories that exist before the first step."""
    leak: eqx.AbstractVar[float]
    """Of the read weights, as in `lantm.memory.weighting.to_weights`."""
    gated_output: eqx.AbstractVar[bool]
    """Whether the controller gates the reading's part in the output."""

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
        """Where the heads go; and what the read and the write head did."""

    def move_to_read(self, command: Float[Array, " command_size"], heads: Heads) -> Movement:
        """The same where nothing is written: what reading does not need may stay behind."""
        return self.move(command, heads)[0]

    def catch_up(self, command: Float[Array, " command_size"], heads: Heads) -> Heads:
        """Move what `move_to_read` left behind."""
        return heads

    @abc.abstractmethod
    def write_key(self, movement: Movement) -> Float[Array, " key_size"]:
        """The key of the memory to be written."""

    @abc.abstractmethod
    def weigh(self, movement: Movement, slots: Slots) -> Float[Array, " slots"]:
        """The read weights of the memories that exist so far, before `to_weights`."""

    @abc.abstractmethod
    def settle(self, movement: Movement, weights: Float[Array, " slots"], slots: Slots) -> Heads:
        """The heads after the step."""

    def __call__(
        self, command: Float[Array, " command_size"], heads: Heads, slots: Slots
    ) -> Addressing:
        """Move the heads and weigh the memories that exist so far."""
        movement, read, write = self.move(command, heads)
        weights = to_weights(self.weigh(movement, slots), self.leak)
        return Addressing(self.settle(movement, weights, slots), weights, read, write)
