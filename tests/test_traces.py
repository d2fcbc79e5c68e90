"""What a machine tells about its steps is what it did."""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lantm import HeadTrace, Trace
from spaces import (
    BATCH,
    HIDDEN,
    KEYS,
    OUTPUTS,
    TIME,
    VARIANTS,
    WIDTH,
    is_lie,
    machine,
)

STEPS = 3
SHUT = {"read_gate_bias": -40.0, "write_gate_bias": -40.0}
"""Gates so low that a head moves by its action alone."""
TOKENS = jnp.asarray(np.random.default_rng(0).integers(0, OUTPUTS, (BATCH, TIME)))


def over(names):
    # The scope keeps the tests of a model together: each process compiles its models only.
    return pytest.mark.parametrize("name", list(names), scope="module")


over_models = over(VARIANTS)
over_memories = over(name for name in VARIANTS if name != "lstm")


def build(name):
    return machine(name, **SHUT)


@lru_cache
def traced(name):
    """A trace of both phases; the state between them by the fast unroll, and what it answers from
    there; in NumPy.
    """
    return jax.tree.map(np.asarray, eqx.filter_jit(run)(build(name)))


def run(machine):
    state = machine.encode(TOKENS)
    return machine.trace(TOKENS, STEPS), state, machine.decode(state, STEPS)


def phases(name):
    """Each phase's trace and its number of steps; how many memories exist before each step."""
    trace, _, _ = traced(name)
    cell = build(name).cell
    first, writes = cell.initial_memories, cell.memories_per_step
    yield trace.encode, TIME, first + writes * np.arange(TIME)
    yield trace.decode, STEPS, np.full(STEPS, first + writes * TIME)


@over_models
def test_answering_gives_the_traced_logits_and_leaves_the_memory(name):
    """By the fast unroll."""
    trace, state, (logits, after) = traced(name)
    assert np.allclose(trace.logits, logits, rtol=0, atol=1e-11)
    if name == "lstm":
        return
    assert jax.tree.all(jax.tree.map(np.array_equal, after.memory, state.memory))
    moves = jax.tree.map(lambda a, b: np.max(np.abs(a - b)), after.heads, state.heads)
    # A write head's action hardly changes (its gate is biased by -10), least where steps are short.
    assert all(move > 1e-8 for move in jax.tree.leaves(moves))


def test_a_machine_need_not_be_compiled_as_a_whole():
    _, *compiled = traced("lantm_many")
    _, *found = run(build("lantm_many"))
    close = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=0, atol=1e-11), found, compiled)
    assert jax.tree.all(close)


def shapes(name):
    """The shape of everything in a trace, after batch and time; None for what there is not."""
    options = VARIANTS[name]
    if options["model"] == "lstm":
        return Trace((HIDDEN,))
    reads, writes = options.get("read_heads", 1), options.get("write_heads", 1)
    slots = build(name).cell.initial_memories + writes * TIME
    if not is_lie(name):
        gate = (1, 3) if options["model"] == "ram_tape" else None
        heads, output_gate = (HeadTrace((1, KEYS), gate), HeadTrace((1, KEYS))), None
    else:
        space = build(name).cell.access.space

        def head(many):
            action = jax.tree.map(lambda leaf: (many, *leaf.shape), space.identity())
            action_gate = (many,) if options.get("action_interpolation") else None
            velocity = (many, space.algebra_size)
            return HeadTrace((many, space.key_size), (many,), action, velocity, action_gate)

        heads, output_gate = (head(reads), head(writes)), ()
    parts = (reads, slots), (reads, WIDTH), (writes, WIDTH), (writes,)
    return Trace((HIDDEN,), *heads, *parts, output_gate)


@over_models
def test_shapes(name):
    for trace, steps, _ in phases(name):
        found = jax.tree.map(lambda leaf, steps=steps: shape_after(leaf, BATCH, steps), trace)
        assert found == shapes(name)


def shape_after(leaf, *front):
    assert leaf.shape[: len(front)] == front
    return leaf.shape[len(front) :]


@over_memories
def test_weights_are_those_of_existing_memories(name):
    for trace, _, existing in phases(name):
        slots = np.arange(trace.weights.shape[-1])
        exists = slots[None, None, None] < existing[None, :, None, None]
        exists = np.broadcast_to(exists, trace.weights.shape)
        assert np.all(trace.weights[exists] > 0)
        assert np.all(trace.weights[~exists] == 0)
        assert np.allclose(np.sum(trace.weights, axis=-1), 1, rtol=0, atol=1e-12)


@over_memories
def test_readings_and_memories_are_those_of_the_state(name):
    trace, state, _ = traced(name)
    for phase, _, _ in phases(name):
        readings = np.einsum("btrn,bnw->btrw", phase.weights, state.memory.values)
        assert np.allclose(phase.reading, readings, rtol=0, atol=1e-12)
    first, memory, encode = build(name).cell.initial_memories, state.memory, trace.encode
    written = encode.write.key, encode.value, encode.strength
    kept = memory.keys[:, first:], memory.values[:, first:], memory.strengths[:, first:]
    for told, found in zip(written, kept, strict=True):
        assert np.allclose(told.reshape(found.shape), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        (name, end)
        for name in filter(is_lie, VARIANTS)
        for end in ("read", "write")
        if end == "write" or not VARIANTS[name].get("anchored")  # such a head goes on after reading
    ],
    scope="module",
)
def test_shut_gates_leave_the_action_alone(name, end):
    """key_t = act(action_t, key_(t-1)), from the initial key to the end of the answer."""
    trace, _, _ = traced(name)
    told = [getattr(phase, end) for phase in (trace.encode, trace.decode)]
    keys, gates, actions = (
        jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *field)
        for field in zip(*((head.key, head.gate, head.action) for head in told), strict=True)
    )
    access = build(name).cell.access
    space, heads = access.space, getattr(access, f"{end}s")
    start = np.stack([head.init(space).key for head in heads])
    start = np.broadcast_to(start, (BATCH, 1, len(heads), space.key_size))
    before = np.concatenate([start, keys[:, :-1]], axis=1)
    moved = jax.jit(jax.vmap(jax.vmap(jax.vmap(space.act))))(actions, before)
    assert np.all(gates < 1e-15)
    assert np.allclose(moved, keys, rtol=0, atol=1e-12)
    assert not np.allclose(before, keys, rtol=0, atol=1e-3)
