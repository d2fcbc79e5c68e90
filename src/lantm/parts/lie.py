"""Lie access: heads that move by group actions (paper, sections 3.1 to 3.3 and appendix B)."""

from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray
from jaxtyping import Scalar as AnyScalar

from lantm.initialise import uniform
from lantm.memory import Slots
from lantm.memory.weighting import InverseSquare, Weighting
from lantm.parts.access import Access
from lantm.parts.pieces import split
from lantm.parts.trace import HeadTrace
from lantm.spaces import Action, Key, KeySpace


class Gate(eqx.Module):
    """sigmoid(x + bias); the bias is a fixed preference, not learned."""

    bias: float = eqx.field(static=True, default=0.0)

    def __call__(self, raw: AnyScalar) -> AnyScalar:
        return jax.nn.sigmoid(raw + self.bias)


class HeadState(NamedTuple):
    key: Key
    """q"""
    action: Action | None
    """The last action, where actions are interpolated."""


class Head(eqx.Module):
    """A point of the key space that the controller moves."""

    space: KeySpace
    gate: Gate
    """The weight of random access, 1 - t. A low bias favours Lie access."""
    action_gate: Gate | None
    """r, the weight of the new action against the last one; None: every action is new."""
    initial_key: Float[Array, " key_size"]
    initial_action: Float[Array, " action_size"] | None

    def __init__(
        self,
        space: KeySpace,
        *,
        gate: Gate | None = None,
        action_gate: Gate | None = None,
        key: PRNGKeyArray,
    ):
        key_key, action_key = jax.random.split(key)
        self.space, self.gate, self.action_gate = space, gate or Gate(), action_gate
        self.initial_key = uniform(key_key, space.key_size)
        self.initial_action = uniform(action_key, space.action_size) if action_gate else None

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """Candidate key, its gate, action, its gate."""
        return self.space.key_size, 1, self.space.action_size, int(self.action_gate is not None)

    def init(self) -> HeadState:
        action = None if self.initial_action is None else self.space.action(self.initial_action)
        return HeadState(self.space.project(self.initial_key), action)

    def move(
        self, command: Float[Array, " command_size"], state: HeadState
    ) -> tuple[HeadState, HeadTrace]:
        """q' = a . pi(t q + (1 - t) q~), the whole addressing procedure."""
        candidate, gate, action, action_gate = split(command, self.command_sizes)
        a = self.space.action(action)
        r = None
        if self.action_gate is not None:
            r = self.action_gate(action_gate[0])
            a = self.space.mix_action(r, a, state.action)
        g = self.gate(gate[0])
        key = self.space.act(a, self.space.mix(g, self.space.project(candidate), state.key))
        return HeadState(key, a if self.action_gate else None), HeadTrace(key, g, a, r)


class LieHeads(NamedTuple):
    read: HeadState
    write: HeadState


class LieMovement(NamedTuple):
    heads: LieHeads
    raw: Float[Array, " raw_size"]
    """For the weighting."""


class LieAccess(Access):
    """A read and a write head in a key space; memories weighed by their distance to the former."""

    read: Head
    write: Head
    weighting: Weighting

    def __init__(self, read: Head, write: Head, weighting: Weighting | None = None):
        self.read, self.write, self.weighting = read, write, weighting or InverseSquare()

    def __check_init__(self) -> None:
        read, write = self.read.space.key_size, self.write.space.key_size
        if read != write:
            raise ValueError(f"key_size must be the same for both heads, got {read} and {write}")

    @property
    def key_size(self) -> int:
        return self.read.space.key_size

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """Read head, write head, weighting."""
        heads = sum(self.read.command_sizes), sum(self.write.command_sizes)
        return *heads, self.weighting.raw_size

    @property
    def command_size(self) -> int:
        return sum(self.command_sizes)

    @property
    def initial_memories(self) -> int:
        return 1

    @property
    def leak(self) -> float:
        return self.weighting.leak

    @property
    def gated_output(self) -> bool:
        return True

    def init_heads(self) -> LieHeads:
        return LieHeads(self.read.init(), self.write.init())

    def project(self, raw: Key) -> Key:
        return self.write.space.project(raw)

    def move(
        self, command: Float[Array, " command_size"], heads: LieHeads
    ) -> tuple[LieMovement, HeadTrace, HeadTrace]:
        read, write, raw = split(command, self.command_sizes)
        read_head, read_trace = self.read.move(read, heads.read)
        write_head, write_trace = self.write.move(write, heads.write)
        return LieMovement(LieHeads(read_head, write_head), raw), read_trace, write_trace

    def move_to_read(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieMovement:
        read, _, raw = split(command, self.command_sizes)
        return LieMovement(LieHeads(self.read.move(read, heads.read)[0], heads.write), raw)

    def catch_up(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieHeads:
        _, write, _ = split(command, self.command_sizes)
        return LieHeads(heads.read, self.write.move(write, heads.write)[0])

    def write_key(self, movement: LieMovement) -> Key:
        return movement.heads.write.key

    def weigh(self, movement: LieMovement, slots: Slots) -> Float[Array, " slots"]:
        key = movement.heads.read.key
        squared_distances = self.read.space.squared_distance(key, slots.keys)
        return self.weighting.masses(squared_distances, movement.raw, slots.strengths, slots.valid)

    def settle(
        self, movement: LieMovement, weights: Float[Array, " slots"], slots: Slots
    ) -> LieHeads:
        return movement.heads
