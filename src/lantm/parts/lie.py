"""Lie access: heads that move by group actions (paper, sections 3.1 to 3.3 and appendix B)."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from jaxtyping import Scalar as AnyScalar

from lantm.initialise import uniform
from lantm.memory import InverseSquare, Slots, Weighting
from lantm.parts.access import Access, Masses
from lantm.parts.pieces import split
from lantm.parts.trace import HeadTrace
from lantm.spaces import Action, Chart, Key, KeySpace, Reach


class Gate(eqx.Module):
    """sigmoid(x + bias); the bias is a fixed preference, not learned."""

    bias: float = eqx.field(static=True, default=0.0)

    def __call__(self, raw: AnyScalar) -> AnyScalar:
        return jax.nn.sigmoid(raw + self.bias)


class HeadState(NamedTuple):
    key: Float[Array, "*batch key_size"]
    """q"""
    action: Action | None
    """The last action, where actions are interpolated."""


class Head(eqx.Module):
    """A point of the key space that the controller moves."""

    reach: Reach
    """How far it may go in one step."""
    gate: Gate
    """The weight of random access, 1 - t. A low bias favours Lie access."""
    action_gate: Gate | None
    """r, the weight of the new action against the last one; None: every action is new."""
    initial_key: Float[Array, " key_size"]
    initial_action: Float[Array, " action_size"] | None
    command_sizes: tuple[int, int, int, int] = eqx.field(static=True)
    """Candidate key, its gate, action, its gate."""

    def __init__(
        self,
        space: KeySpace,
        *,
        reach: Reach | None = None,
        gate: Gate | None = None,
        action_gate: Gate | None = None,
        key: PRNGKeyArray,
    ):
        key_key, action_key = jax.random.split(key)
        self.reach = space.reach(jax.random.fold_in(key, 1)) if reach is None else reach
        self.gate, self.action_gate = gate or Gate(), action_gate
        self.initial_key = uniform(key_key, space.key_size)
        self.initial_action = uniform(action_key, space.action_size) if action_gate else None
        self.command_sizes = space.key_size, 1, space.action_size, int(action_gate is not None)

    @property
    def command_size(self) -> int:
        return sum(self.command_sizes)

    def init(self, space: KeySpace) -> HeadState:
        raw = self.initial_action
        action = None if raw is None else space.action(self.reach(raw))
        return HeadState(space.project(self.initial_key), action)

    def move(
        self, space: KeySpace, command: Float[Array, " command_size"], state: HeadState
    ) -> tuple[HeadState, HeadTrace]:
        """q' = a . pi(t q + (1 - t) q~), the whole addressing procedure."""
        candidate, gate, action, action_gate = split(command, self.command_sizes)
        a = space.action(self.reach(action))
        r = None
        if self.action_gate is not None:
            r = self.action_gate(action_gate[0])
            a = space.mix_action(r, a, state.action)
        g = self.gate(gate[0])
        key = space.act(a, space.mix(g, space.project(candidate), state.key))
        trace = HeadTrace(key, g, a, space.log(a), r)
        return HeadState(key, a if self.action_gate else None), trace


States: TypeAlias = tuple[HeadState, ...]


class LieHeads(NamedTuple):
    reads: States
    writes: States


class LieMovement(NamedTuple):
    heads: LieHeads
    raw: tuple[Float[Array, "*batch raw_size"], ...]
    """For the weighting, of each read head."""


class LieAccess(Access):
    """Read and write heads in a key space; memories weighed by their distance to the former."""

    space: KeySpace
    reads: tuple[Head, ...]
    writes: tuple[Head, ...]
    weighting: Weighting

    def __init__(
        self,
        space: KeySpace,
        reads: Sequence[Head],
        writes: Sequence[Head],
        weighting: Weighting | None = None,
    ):
        self.space, self.reads, self.writes = space, tuple(reads), tuple(writes)
        self.weighting = weighting or InverseSquare()

    def __check_init__(self) -> None:
        for name, heads in (("reads", self.reads), ("writes", self.writes)):
            if not heads:
                raise ValueError(f"{name} must have at least one head")
            for head in heads:
                sizes = self.space.key_size, 1, self.space.action_size
                if head.command_sizes[:3] != sizes:
                    raise ValueError(f"{name} must have heads of this space, got one of another")

    @property
    def key_size(self) -> int:
        return self.space.key_size

    @property
    def read_heads(self) -> int:
        return len(self.reads)

    @property
    def write_heads(self) -> int:
        return len(self.writes)

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """Of each read head, each write head, and the weighting of each read head."""
        heads = [head.command_size for head in self.heads]
        return *heads, *[self.weighting.raw_size] * self.read_heads

    @property
    def command_size(self) -> int:
        return sum(self.command_sizes)

    @property
    def initial_memories(self) -> int:
        return 1

    @property
    def leak(self) -> float:
        return self.weighting.leak

    def init_heads(self) -> LieHeads:
        kinds = self.reads, self.writes
        return LieHeads(*(tuple(head.init(self.space) for head in heads) for heads in kinds))

    @property
    def heads(self) -> tuple[Head, ...]:
        """The read heads, then the write heads."""
        return self.reads + self.writes

    def project(self, raw: Key) -> Key:
        return self.space.project(raw)

    def move(
        self, command: Float[Array, " command_size"], heads: LieHeads
    ) -> tuple[LieMovement, HeadTrace, HeadTrace]:
        reads, writes, raw = self.commands(command)
        read_states, read_trace = self.move_all(self.reads, reads, heads.reads)
        write_states, write_trace = self.move_all(self.writes, writes, heads.writes)
        return LieMovement(LieHeads(read_states, write_states), raw), read_trace, write_trace

    def move_to_read(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieMovement:
        reads, _, raw = self.commands(command)
        states, _ = self.move_all(self.reads, reads, heads.reads)
        return LieMovement(LieHeads(states, heads.writes), raw)

    def catch_up(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieHeads:
        _, writes, _ = self.commands(command)
        return LieHeads(heads.reads, self.move_all(self.writes, writes, heads.writes)[0])

    def commands(
        self, command: Float[Array, " command_size"]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]:
        """For the read heads, the write heads, and the weighting."""
        pieces = tuple(split(command, self.command_sizes))
        reads, writes = self.read_heads, self.read_heads + self.write_heads
        return pieces[:reads], pieces[reads:writes], pieces[writes:]

    def move_all(
        self, heads: tuple[Head, ...], commands: tuple[Array, ...], states: States
    ) -> tuple[States, HeadTrace]:
        """Each head by its own command."""
        moved = [
            head.move(self.space, command, state)
            for head, command, state in zip(heads, commands, states, strict=True)
        ]
        after, traces = zip(*moved, strict=True)
        return after, jax.tree.map(lambda *leaves: jnp.stack(leaves), *traces)

    def write_keys(self, movement: LieMovement) -> Float[Array, "writes key_size"]:
        return jnp.stack([head.key for head in movement.heads.writes])

    def weigh(self, movement: LieMovement, slots: Slots) -> Masses:
        masses = []
        for head, raw in zip(movement.heads.reads, movement.raw, strict=True):
            squared_distances = self.space.squared_distance(head.key, slots.keys)
            masses.append(
                self.weighting.masses(squared_distances, raw, slots.strengths, slots.valid)
            )
        return jnp.stack(masses)

    def settle(
        self, movement: LieMovement, weights: Float[Array, "reads slots"], slots: Slots
    ) -> LieHeads:
        return movement.heads

    def chart(self, keys: np.ndarray) -> Chart:
        return self.space.chart(keys)
