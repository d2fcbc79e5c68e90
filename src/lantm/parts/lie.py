"""Lie access: heads that move by group actions (paper, sections 4.1 to 4.3 and appendix B)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from jaxtyping import Scalar as AnyScalar

from lantm.initialise import uniform
from lantm.memory import InverseSquare, Slots, Weighting
from lantm.parts.access import Access, Masses
from lantm.parts.pieces import split
from lantm.parts.trace import HeadTrace
from lantm.spaces import Action, Chart, Key, KeySpace, Reach
from lantm.spaces.check import require_shapes


class Gate(eqx.Module):
    """sigmoid(x + bias); the bias is a fixed preference, not learned."""

    bias: float = eqx.field(static=True, default=0.0)

    def __call__(self, raw: AnyScalar) -> AnyScalar:
        return jax.nn.sigmoid(raw + self.bias)


class CutOffGate(Gate):
    """clip(1.6 sigmoid(x + bias) - 0.3, 0, 1): a gate that can be shut, and open, for good.

    Its gradient is that of the curve before the cut, so that a shut gate can learn to open.
    """

    def __call__(self, raw: AnyScalar) -> AnyScalar:
        curve = 1.6 * jax.nn.sigmoid(raw + self.bias) - 0.3
        return curve + jax.lax.stop_gradient(jnp.clip(curve, 0, 1) - curve)


BLANK = 0.25
"""The squared distance of a blank from every place, before it learns: half a step."""

GATES: dict[str, Callable[[float], Gate]] = {"sigmoid": Gate, "cut_off": CutOffGate}
"""What makes a gate of random access from its bias, by name."""


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
    """Candidate key, its gate, action, its gate. A homing head has no candidates."""

    def __init__(
        self,
        space: KeySpace,
        *,
        reach: Reach | None = None,
        gate: Gate | None = None,
        action_gate: Gate | None = None,
        homing: bool = False,
        key: PRNGKeyArray,
    ):
        key_key, action_key = jax.random.split(key)
        self.reach = space.reach(jax.random.fold_in(key, 1)) if reach is None else reach
        self.gate, self.action_gate = gate or Gate(), action_gate
        self.initial_key = uniform(key_key, space.key_size)
        self.initial_action = uniform(action_key, space.action_size) if action_gate else None
        candidate_size = 0 if homing else space.key_size
        self.command_sizes = candidate_size, 1, space.action_size, int(action_gate is not None)

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
        share = decided(g) if self.homing else g
        key = space.act(a, space.mix(share, self.goal(space, candidate), state.key))
        trace = HeadTrace(key, g, a, action_gate=r)
        return HeadState(key, a if self.action_gate else None), trace

    @property
    def homing(self) -> bool:
        """Whether random access leads back to where the head began."""
        return self.command_sizes[0] == 0

    def goal(self, space: KeySpace, candidate: Float[Array, " _"]) -> Key:
        """q~, where random access leads."""
        return space.project(self.initial_key if self.homing else candidate)

    def ways(
        self, space: KeySpace, command: Float[Array, " command_size"], moved: HeadTrace, key: Key
    ) -> "Ways":
        """Where a head at `key` is led by random access alone and by Lie access alone."""
        candidate, gate, *_ = split(command, self.command_sizes)
        jumped = space.act(moved.action, self.goal(space, candidate))
        return Ways(self.gate(gate[0]), jumped, space.act(moved.action, key))


def decided(gate: AnyScalar) -> AnyScalar:
    """How far a homing head goes home: clip(2 gate - 1/2, 0, 1), with the gradient of the gate.

    A part of the way at every step would pull it back in proportion to its distance, and so
    shorten the steps of long problems. A steeper slope is further from the gradient: with 10 in
    place of 2, interleaved_add and odd_first were hardly ever learned.
    """
    return gate + jax.lax.stop_gradient(jnp.clip(2 * gate - 0.5, 0, 1) - gate)


class Ways(NamedTuple):
    """The two places between which a head's gate decides."""

    gate: Float[Array, "*batch"]
    jumped: Float[Array, "*batch key_size"]
    walked: Float[Array, "*batch key_size"]


States: TypeAlias = tuple[HeadState, ...]


class LieHeads(NamedTuple):
    reads: States
    writes: States


class LieMovement(NamedTuple):
    heads: LieHeads
    raw: tuple[Float[Array, "*batch raw_size"], ...]
    """For the weighting, of each read head."""
    ways: tuple[Ways, ...] | None
    """Of each read head, where readings are blended."""


class LieAccess(Access):
    """Read and write heads in a key space; memories weighed by their distance to the former."""

    space: KeySpace
    reads: tuple[Head, ...]
    writes: tuple[Head, ...]
    weighting: Weighting
    anchors: tuple[Float[Array, ""], ...] | None
    """Of each read head, before a sigmoid: how far it goes, after a reading, to the mean key of
    what it read."""
    blank: Float[Array, ""] | None
    """If there is one, the initial memory is what is read where nothing was written: it is equally
    far from every place. The logarithm of its squared distance, which is learned."""
    blended: bool = eqx.field(static=True)
    """Read where random access leads and where Lie access leads and mix the weights, instead of
    reading at a mixture of the places."""
    memories: int = eqx.field(static=True)
    """Among which the heads are shared out in turn. Each lies in slots of its own: it is seen by
    its own read heads alone, and begins with a memory of its own."""

    def __init__(
        self,
        space: KeySpace,
        reads: Sequence[Head],
        writes: Sequence[Head],
        weighting: Weighting | None = None,
        *,
        anchored: bool = False,
        blank: bool = False,
        blended: bool = False,
        memories: int = 1,
    ):
        self.space, self.reads, self.writes = space, tuple(reads), tuple(writes)
        self.weighting = weighting or InverseSquare()
        self.anchors = tuple(jnp.zeros(()) for _ in reads) if anchored else None
        self.blank = jnp.log(BLANK) if blank else None
        self.blended, self.memories = blended, memories

    def __check_init__(self) -> None:
        require_shapes(self.space)
        for name, heads in (("reads", self.reads), ("writes", self.writes)):
            if not heads:
                raise ValueError(f"{name} must have at least one head")
            for head in heads:
                sizes = self.space.key_size, self.space.action_size
                if (head.initial_key.size, head.command_sizes[2]) != sizes:
                    raise ValueError(f"{name} must have heads of this space, got one of another")
            if self.memories < 1 or len(heads) % self.memories:
                raise ValueError(
                    f"{name} must have equally many heads for each memory, "
                    f"got {len(heads)} for {self.memories}"
                )

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
        return self.memories

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
        _, writes, _ = self.commands(command)
        movement, read_trace = self.move_reads(command, heads)
        write_states, write_traces = self.move_all(self.writes, writes, heads.writes)
        moved = LieHeads(movement.heads.reads, write_states)
        return movement._replace(heads=moved), read_trace, stacked(write_traces)

    def move_to_read(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieMovement:
        return self.move_reads(command, heads)[0]

    def catch_up(self, command: Float[Array, " command_size"], heads: LieHeads) -> LieHeads:
        _, writes, _ = self.commands(command)
        return LieHeads(heads.reads, self.move_all(self.writes, writes, heads.writes)[0])

    def move_reads(
        self, command: Float[Array, " command_size"], heads: LieHeads
    ) -> tuple[LieMovement, HeadTrace]:
        """The read heads, while the write heads stay."""
        reads, _, raw = self.commands(command)
        states, traces = self.move_all(self.reads, reads, heads.reads)
        ways = None
        if self.blended:
            each = zip(self.reads, reads, traces, heads.reads, strict=True)
            ways = tuple(
                head.ways(self.space, own, trace, state.key) for head, own, trace, state in each
            )
        return LieMovement(LieHeads(states, heads.writes), raw, ways), stacked(traces)

    def commands(
        self, command: Float[Array, " command_size"]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]:
        """For the read heads, the write heads, and the weighting."""
        pieces = tuple(split(command, self.command_sizes))
        reads, writes = self.read_heads, self.read_heads + self.write_heads
        return pieces[:reads], pieces[reads:writes], pieces[writes:]

    def move_all(
        self, heads: tuple[Head, ...], commands: tuple[Array, ...], states: States
    ) -> tuple[States, tuple[HeadTrace, ...]]:
        """Each head by its own command."""
        moved = [
            head.move(self.space, command, state)
            for head, command, state in zip(heads, commands, states, strict=True)
        ]
        after, traces = zip(*moved, strict=True)
        return after, traces

    def write_keys(self, movement: LieMovement) -> Float[Array, "writes key_size"]:
        return jnp.stack([head.key for head in movement.heads.writes])

    def weigh(self, movement: LieMovement, slots: Slots) -> Masses:
        heads, raw = movement.heads.reads, jnp.stack(movement.raw)
        if movement.ways is None:
            return self.masses_from(jnp.stack([head.key for head in heads]), raw, slots)
        gates, jumped, walked = (jnp.stack(part) for part in zip(*movement.ways, strict=True))
        places = jnp.concatenate([jumped, walked])
        masses = self.masses_from(places, jnp.concatenate([raw, raw]), slots)
        jumped, walked = jnp.split(self.normalise(masses), 2)
        return gates[:, None] * jumped + (1 - gates[:, None]) * walked

    def masses_from(
        self,
        places: Float[Array, "places key_size"],
        raw: Float[Array, "places raw_size"],
        slots: Slots,
    ) -> Float[Array, "places slots"]:
        """What the read heads see from these places, one or several for each in turn: all at once,
        since a step is many small operations and each of them takes time.
        """
        if self.memories == 1:
            return jax.vmap(self.masses_at, (0, 0, None))(places, raw, slots)

        def masses(place: Key, raw: Float[Array, " raw_size"], valid: Array) -> Array:
            return self.masses_at(place, raw, slots._replace(valid=valid))

        own = self.own_slots(slots)[jnp.arange(len(places)) % self.memories]
        return jax.vmap(masses)(places, raw, own)

    def own_slots(self, slots: Slots) -> Bool[Array, "memories slots"]:
        """What each memory holds: the slots lie in the order of writing."""
        slot = jnp.arange(len(slots.strengths))
        head = (slot - self.memories) % self.write_heads
        memory = jnp.where(self.initial(slots), slot, head % self.memories)
        return slots.valid[None] & (memory[None] == jnp.arange(self.memories)[:, None])

    def masses_at(
        self, key: Key, raw: Float[Array, " raw_size"], slots: Slots
    ) -> Float[Array, " slots"]:
        """What a head at that place sees."""
        squared_distances = self.space.squared_distance(key, slots.keys)
        if self.blank is not None:
            everywhere = jnp.exp(self.blank)
            squared_distances = jnp.where(self.initial(slots), everywhere, squared_distances)
        return self.weighting.masses(squared_distances, raw, slots.strengths, slots.valid)

    def initial(self, slots: Slots) -> Bool[Array, " slots"]:
        """Which slots hold the memories from before the first step."""
        return jnp.arange(len(slots.strengths)) < self.memories

    def settle(
        self, movement: LieMovement, weights: Float[Array, "reads slots"], slots: Slots
    ) -> LieHeads:
        """Anchored heads go to what they read. The weights count as given: gradients through them,
        step after step, grow by orders of magnitude. Cubed, they leave out what is only near.
        """
        heads = movement.heads
        if self.anchors is None:
            return heads
        cubes = self.normalise(jax.lax.stop_gradient(weights) ** 3)
        if self.blank is not None:
            cubes = jnp.where(self.initial(slots)[None], 0.0, cubes)
        keys = jnp.stack([head.key for head in heads.reads])
        means = cubes @ slots.keys
        if self.blank is not None:  # it is wherever the head is
            means = means + (1 - jnp.sum(cubes, axis=1, keepdims=True)) * keys

        def to_anchor(raw: AnyScalar, mean: Key, key: Key) -> Key:
            return self.space.mix(jax.nn.sigmoid(raw), self.space.project(mean), key)

        settled = jax.vmap(to_anchor)(jnp.stack(self.anchors), means, keys)
        reads = zip(heads.reads, settled, strict=True)
        return LieHeads(tuple(state._replace(key=key) for state, key in reads), heads.writes)

    def velocities(self, actions: Action) -> Float[Array, "heads algebra_size"]:
        return jax.vmap(self.space.log)(actions)

    def chart(self, keys: np.ndarray) -> Chart:
        return self.space.chart(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        places = jnp.asarray(keys)
        return np.sqrt(jax.vmap(self.space.squared_distance, (0, None))(places, places))


def stacked(traces: tuple[HeadTrace, ...]) -> HeadTrace:
    """Of several heads, with an axis for them."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *traces)
