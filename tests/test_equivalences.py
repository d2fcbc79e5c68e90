"""One machine, many ways to run it: the same outputs, final states and gradients."""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from spaces import BATCH, INPUTS, OUTPUTS, TIME, VARIANTS, layer, machine

LENGTHS = np.array([TIME, 2, 0, 1, 6])
CHUNK = 5
SPARE = 3
"""Steps for which every buffer has empty slots at its end, which must not matter."""
STEPS = 3

# The scope keeps the tests of a model together: each process compiles its models only.
over_models = pytest.mark.parametrize("name", VARIANTS, scope="module")


def random(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


INPUT = random(BATCH, TIME, INPUTS)


def agree(left, right):
    """Equality up to rounding, leaf by leaf, in units of a leaf's largest number."""

    def close(a, b):
        size = max(1.0, np.max(np.abs(b), initial=0.0))
        # Strengths begin at 5e-5, and gradients by them are differences of terms near 3e4, whose
        # last bit is 4e-12.
        return np.allclose(a, b, rtol=0, atol=1e-11 * size)

    return all(jax.tree.leaves(jax.tree.map(close, left, right)))


def same(left, right):
    """Equality bit by bit."""
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, left, right)))


def probe(tree):
    """A linear function of every number in a tree, so that its gradient depends on all of them."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return sum(jnp.sum(leaf * random(*leaf.shape, seed=i)) for i, leaf in enumerate(leaves))


def with_gradients(run):
    """What a run returns, and its gradients by cell, state and inputs."""

    def loss(trainable, lengths):
        result = run(*trainable, lengths)
        return probe(result), result

    def both(cell, state, inputs, lengths):
        (_, result), gradients = gradient((cell, state, inputs), lengths)
        return result, gradients

    gradient = eqx.filter_value_and_grad(loss, has_aux=True)
    return both


def step_by_step(cell, states, inputs, lengths):
    """By definition: each sequence on its own, unpadded, one step after the other."""
    outputs, ends = [], []
    for i, length in enumerate(lengths):
        state, steps = jax.tree.map(lambda leaf, i=i: leaf[i], states), []
        for x in inputs[i, :length]:
            state, output, _ = one_step(cell, state, x)
            steps.append(output)
        steps += [jnp.zeros(OUTPUTS)] * (TIME - length)
        outputs.append(jnp.stack(steps))
        ends.append(state)
    return jnp.stack(outputs), jax.tree.map(lambda *leaves: jnp.stack(leaves), *ends)


one_step = eqx.filter_jit(lambda cell, state, x: cell.step(state, x))


@eqx.filter_jit
@with_gradients
def padded(cell, state, inputs, lengths):
    return lantm.MemoryLayer(cell)(inputs, state, lengths)


def start(name, steps=TIME):
    return layer(name).init_state(BATCH, steps)


@lru_cache
def whole(name):
    """The whole batch at once; the other ways are compared with this one."""
    return padded(layer(name).cell, start(name), INPUT, jnp.asarray(LENGTHS))


@over_models
def test_padded_is_step_by_step(name):
    reference, gradients = with_gradients(step_by_step)(
        layer(name).cell, start(name), INPUT, LENGTHS
    )
    assert agree(whole(name)[0], reference)
    assert agree(whole(name)[1], gradients)
    assert not agree(gradients[0], jax.tree.map(jnp.zeros_like, gradients[0]))


@over_models
def test_padding_is_never_seen(name):
    junk = jnp.where(jnp.arange(TIME)[None, :, None] < LENGTHS[:, None, None], INPUT, 1e9)
    assert same(padded(layer(name).cell, start(name), junk, jnp.asarray(LENGTHS)), whole(name))


@over_models
def test_batch_order_is_free(name):
    order = np.array([3, 0, 4, 2, 1])
    expected = jax.tree.map(lambda leaf: leaf[order], whole(name)[0])
    found, _ = padded(layer(name).cell, start(name), INPUT[order], jnp.asarray(LENGTHS[order]))
    assert agree(found, expected)


def chunks():
    """Two pieces, padded to one shape: two sequences end in the first, one has no steps."""
    for first, last in ((0, CHUNK), (CHUNK, TIME)):
        inputs = jnp.pad(INPUT[:, first:last], ((0, 0), (0, TIME - last + first), (0, 0)))
        yield inputs, jnp.asarray(np.clip(LENGTHS - first, 0, last - first))


@over_models
def test_chunks_and_a_saved_state_continue(name, tmp_path):
    cell, state, outputs = layer(name).cell, start(name), []
    for inputs, lengths in chunks():
        lantm.save_tree(tmp_path / "state", state)
        loaded = lantm.load_tree(tmp_path / "state", start(name))
        assert same(loaded, state)
        (output, state), _ = padded(cell, state, inputs, lengths)
        (again, resumed), _ = padded(cell, loaded, inputs, lengths)
        assert same((again, resumed), (output, state))
        outputs.append(output)
    joined = jnp.concatenate([outputs[0][:, :CHUNK], outputs[1][:, : TIME - CHUNK]], axis=1)
    assert agree((joined, state), whole(name)[0])


@over_models
def test_vmapped_without_lengths_in_a_roomy_buffer(name):
    """Three things at once that must not matter, to compile but one more program."""
    inputs = jnp.stack([INPUT, -INPUT])
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start(name, TIME + SPARE))
    outputs, ends = vmapped(layer(name), inputs, states)
    full = jnp.asarray(np.full(BATCH, TIME))
    expected, end = padded(layer(name).cell, start(name), -INPUT, full)[0]
    assert agree(outputs[1], expected)
    assert agree(jax.tree.map(lambda leaf: leaf[1], trimmed(ends, name)), end)


@eqx.filter_jit
def vmapped(layer, inputs, states):
    return jax.vmap(layer)(inputs, states)


def trimmed(state, name):
    """A state without the spare slots, after a check that nothing was put there."""
    if not hasattr(state, "memory"):
        return state
    memory = state.memory
    slots = memory.strengths.shape[-1] - SPARE * layer(name).cell.memories_per_step
    kept = memory.keys[..., :slots, :], memory.values[..., :slots, :], memory.strengths[..., :slots]
    assert not np.any(memory.strengths[..., slots:])
    return state._replace(memory=lantm.Memory(*kept, memory.count))


def test_tape_keys_are_shifted_readings():
    """Against loops over the memories that existed before the last step."""
    ram_tape = layer("ram_tape")
    (_, end), _ = whole("ram_tape")
    trace = ram_tape.trace(INPUT, start("ram_tape"), jnp.asarray(LENGTHS))
    for i, length in enumerate(LENGTHS):
        if length == 0:
            continue
        weights, memory = trace.weights[i, length - 1, 0], np.asarray(end.memory.keys[i])
        existed = ram_tape.cell.initial_memories + length - 1
        forward, backward = np.zeros(memory.shape[1]), np.zeros(memory.shape[1])
        for j in range(existed - 1):
            forward += weights[j] * memory[j + 1]
            backward += weights[j + 1] * memory[j]
        assert np.allclose(end.heads.forward[i], forward, atol=1e-12)
        assert np.allclose(end.heads.backward[i], backward, atol=1e-12)


TOKENS = jnp.asarray(np.random.default_rng(3).integers(0, OUTPUTS, (BATCH, TIME)))


def test_machine_is_embedding_and_steps():
    """Padded tokens through a machine are each sequence, embedded, through its cell."""
    lstm, lengths = machine("lstm"), np.maximum(LENGTHS, 1)
    logits = eqx.filter_jit(lstm)(TOKENS, STEPS, jnp.asarray(lengths))
    weight = lstm.embedding.weight
    for i, length in enumerate(lengths):
        state = lstm.cell.init_state()
        for token in [*TOKENS[i, :length], *[lstm.vocabulary.separator] * STEPS]:
            state, output, _ = one_step(lstm.cell, state, weight[token])
        assert np.allclose(output, logits[i, -1], rtol=0, atol=1e-11)


def test_predictions_end_with_their_first_end_symbol():
    # Larger parameters make answers that change from step to step.
    lstm = jax.tree.map(lambda p: 3 * p if eqx.is_array(p) else p, machine("lstm"))
    greedy = np.argmax(lstm(TOKENS, TIME), axis=-1)
    expected = np.array(greedy)
    for row in expected:
        for t in range(1, TIME):
            if row[t - 1] == lstm.vocabulary.end:
                row[t] = lstm.vocabulary.end
    assert not np.array_equal(greedy, expected)
    assert np.array_equal(lstm.predict(TOKENS, TIME), expected)


def test_loss_and_scores_count_each_example_up_to_its_length():
    rng, lengths = np.random.default_rng(4), np.array([TIME, 2, 3, 1, 6])
    answers = rng.integers(0, OUTPUTS, (BATCH, TIME))
    # Mostly right, so that some answers are right as a whole; and nonsense after each length.
    logits = rng.normal(size=(BATCH, TIME, OUTPUTS)) + 3 * np.eye(OUTPUTS)[answers]
    losses, right = [], []
    for row, answer, length in zip(logits, answers, lengths, strict=True):
        chances = np.exp(row[:length]) / np.sum(np.exp(row[:length]), axis=1, keepdims=True)
        losses += [-np.log(chance[symbol]) for chance, symbol in zip(chances, answer, strict=False)]
        right.append(np.argmax(row[:length], axis=1) == answer[:length])
        answer[length:] = 99
    arguments = jnp.asarray(logits), jnp.asarray(answers), jnp.asarray(lengths)
    scores = lantm.score(*arguments)
    assert np.allclose(lantm.answer_loss(*arguments), np.mean(losses), atol=1e-12)
    assert np.allclose(scores.fine, np.mean(np.concatenate(right)), atol=1e-12)
    assert np.allclose(scores.coarse, np.mean([np.all(one) for one in right]), atol=1e-12)
    assert 0 < scores.coarse < 1
