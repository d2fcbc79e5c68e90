"""Peers: each against its paper's equations written out by hand, or against what it must be in a
limiting case; then what all models of the catalogue promise.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm import cli
from lantm.machines.peers import dnc, ntm, stack, tape, transformer
from lantm.machines.peers.slots import SOFT, sharpen
from lantm.machines.seq2seq import SequenceModel
from lantm.training.checkpoints import named_arrays
from lantm.training.lengths import saved_lengths
from test_cli import assert_picture, refused

pytest_plugins = ["tiny"]

INPUTS, OUTPUTS, SLOTS, WIDTH, READS, HIDDEN = 5, 3, 7, 4, 2, 11
KEY = jax.random.key(3)


def numbers(*shape, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=shape)


def shares(*shape, seed=0):
    """Distributions along the last axis."""
    weights = np.exp(numbers(*shape, seed=seed, scale=2.0))
    return weights / weights.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log(1 + np.exp(x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def cosine(a, b):
    return a @ b / np.sqrt((a @ a + SOFT) * (b @ b + SOFT))


def first_steps(cell, count=4):
    """The states after some steps, each with what the next step was commanded."""
    step = eqx.filter_jit(cell.step)
    state, found = cell.init_state(0), []
    for inputs in numbers(count, INPUTS, seed=1, scale=3.0):
        _, _, command = cell.driver(state.controller, jnp.asarray(inputs), state.reading)
        after, _, trace = step(state, jnp.asarray(inputs))
        found.append(jax.tree.map(np.asarray, (state, command, after, trace)))
        state = after
    return found


def pieces(command, sizes):
    ends = np.cumsum(sizes)
    return [command[end - size : end] for size, end in zip(sizes, ends, strict=True)]


# ---- NTM


def ntm_weights(command, before, memory):
    """Equations 5 to 9 of Graves et al. (2014), one slot at a time."""
    key, beta, gate, shift, gamma = pieces(command, (WIDTH, 1, 1, 3, 1))
    beta, gate, gamma = softplus(beta[0]), sigmoid(gate[0]), 1 + softplus(gamma[0])
    content = softmax(beta * np.array([cosine(np.tanh(key), row) for row in memory]))
    gated = gate * content + (1 - gate) * before
    moved = np.zeros(SLOTS)
    for i in range(SLOTS):
        for j, share in zip((-1, 0, 1), softmax(shift), strict=True):
            moved[i] += gated[(i - j) % SLOTS] * share
    return moved**gamma / np.sum(moved**gamma)


def test_ntm_steps_are_those_of_its_equations():
    cell = lantm.NTMCell(INPUTS, OUTPUTS, SLOTS, WIDTH, READS, hidden_size=HIDDEN, key=KEY)
    for state, command, after, trace in first_steps(cell):
        size = WIDTH + 6
        heads = [command[i * size : (i + 1) * size] for i in range(READS + 1)]
        weights = [
            ntm_weights(head, before, state.memory.rows)
            for head, before in zip(heads, state.memory.weights, strict=True)
        ]
        erase, add = command[-2 * WIDTH : -WIDTH], command[-WIDTH:]
        memory = state.memory.rows.copy()
        for i, share in enumerate(weights[-1]):
            memory[i] = memory[i] * (1 - share * sigmoid(erase)) + share * np.tanh(add)
        readings = np.stack(weights[:-1]) @ state.memory.rows
        np.testing.assert_allclose(after.memory.weights, weights, rtol=1e-7)
        np.testing.assert_allclose(after.memory.rows, memory, rtol=1e-7)
        np.testing.assert_allclose(trace.weights, weights[:-1], rtol=1e-7)
        np.testing.assert_allclose(trace.reading, readings, rtol=1e-7)


@pytest.mark.parametrize(("shift", "by"), [([1, 0, 0], -1), ([0, 1, 0], 0), ([0, 0, 1], 1)])
def test_ntm_shift_turns_weights_exactly(shift, by):
    weights = shares(SLOTS)
    turned = ntm.rotate(jnp.asarray(weights), jnp.array(shift, float))
    assert np.array_equal(turned, np.roll(weights, by))


@pytest.mark.parametrize("exponent", [1.0, 40.0, 1e4])
@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [0.0, 1e-30, 1.0], [0.3, 0.3, 0.4]])
def test_sharpening_stays_finite(exponent, weights):
    """Powers that underflow, and weights of 0: also their gradients."""
    with jax.enable_x64(False):
        given = jnp.array(weights, "float32"), jnp.array(exponent, "float32")
        found, back = jax.vjp(sharpen, *given)
        assert float(found.sum()) == pytest.approx(1, abs=1e-5)
        assert all(bool(jnp.isfinite(part).all()) for part in back(jnp.ones(3).at[0].set(2.0)))


# ---- DNC


def dnc_step(state, command):
    """Graves et al. (2016), methods, with Csordas & Schmidhuber's changes; loops over slots."""
    width = WIDTH
    key, mask, beta, erase, value, allocation, gate, *rest = pieces(
        command, (width, width, 1, width, width, 1, 1, *(width, width, 1, 1, 3, 1, 1) * READS)
    )
    heads = [rest[7 * i : 7 * i + 7] for i in range(READS)]
    kept = np.ones(SLOTS)
    for head, before in zip(heads, state.reads, strict=True):
        kept *= 1 - sigmoid(head[3][0]) * before
    usage = (state.usage + state.write - state.usage * state.write) * kept

    free = np.zeros(SLOTS)
    used_before = 1.0
    for i in sorted(range(SLOTS), key=lambda i: usage[i]):
        free[i] = (1 - usage[i]) * used_before
        used_before *= usage[i]

    def content(memory, key, mask, beta):
        mask, beta = sigmoid(mask), 1 + softplus(beta[0])
        return softmax(np.array([beta * cosine(key * mask, row * mask) for row in memory]))

    share = sigmoid(allocation[0])
    found = content(state.rows, key, mask, beta)
    write = sigmoid(gate[0]) * (share * free + (1 - share) * found)
    memory = np.array(
        [
            row * kept[i] * (1 - write[i] * sigmoid(erase)) + write[i] * value
            for i, row in enumerate(state.rows)
        ]
    )
    links = np.zeros((SLOTS, SLOTS))
    for i in range(SLOTS):
        for j in range(SLOTS):
            if i != j:
                old = (1 - write[i] - write[j]) * state.links[i, j]
                links[i, j] = old + write[i] * state.precedence[j]
    precedence = (1 - write.sum()) * state.precedence + write

    def sharp(weights, exponent):
        powers = np.maximum(weights, 1e-12) ** (1 + softplus(exponent[0]))
        return powers / powers.sum()

    reads = []
    for (key, mask, beta, _, modes, back, on), before in zip(heads, state.reads, strict=True):
        backward, forward = sharp(links.T @ before, back), sharp(links @ before, on)
        parts = np.stack([backward, content(memory, key, mask, beta), forward])
        reads.append(softmax(modes) @ parts)
    return np.array(reads), write, usage, links, precedence, memory


def test_dnc_steps_are_those_of_its_equations():
    cell = lantm.DNCCell(INPUTS, OUTPUTS, SLOTS, WIDTH, READS, hidden_size=HIDDEN, key=KEY)
    for state, command, after, trace in first_steps(cell):
        right = dnc_step(state.memory, command)
        for name, value, wanted in zip(after.memory._fields, after.memory, right, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-7, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(trace.reading, right[0] @ right[-1], rtol=1e-7, atol=1e-12)


def test_dnc_gradients_are_those_of_the_sorted_product_and_the_plain_sums():
    """Also where slots are wholly free, or as much in use as others."""

    def by_sorting(usage):
        order = jnp.argsort(usage)
        used = usage[order]
        before = jnp.concatenate([jnp.ones(1), jnp.cumprod(used)[:-1]])
        return ((1 - used) * before)[jnp.argsort(order)]

    cotangent = jnp.asarray(numbers(SLOTS))
    for usage in (shares(SLOTS), np.zeros(SLOTS), np.r_[0.0, 0.5, 0.0, 0.5, 0.2, 1.0, 1.0]):
        (found, back), (right, plain) = (
            jax.vjp(allocate, jnp.asarray(usage)) for allocate in (dnc.allocate, by_sorting)
        )
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-18)
        np.testing.assert_allclose(back(cotangent)[0], plain(cotangent)[0], atol=1e-12)

    def by_sums(links, precedence, weights):
        new = (1 - weights[:, None] - weights[None]) * links + jnp.outer(weights, precedence)
        return new - jnp.diag(jnp.diag(new)), (1 - weights.sum()) * precedence + weights

    links, d_links = (dnc.off_diagonal(jnp.asarray(numbers(SLOTS, SLOTS, seed=i))) for i in (0, 2))
    given = links, jnp.asarray(shares(SLOTS)), jnp.asarray(shares(SLOTS, seed=1))
    cotangents = d_links, cotangent
    (found, back), (right, plain) = (jax.vjp(link, *given) for link in (dnc.link, by_sums))
    jax.tree.map(np.testing.assert_array_equal, found, right)
    for own, wanted in zip(back(cotangents), plain(cotangents), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-12)


def test_dnc_allocates_what_is_free():
    for usage in (shares(SLOTS), np.r_[np.ones(SLOTS - 1), 0.0], np.ones(SLOTS), np.zeros(SLOTS)):
        found = np.asarray(dnc.allocate(jnp.asarray(usage)))
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1 - np.prod(usage))
    assert np.array_equal(dnc.allocate(jnp.array([1.0, 0.0, 1.0])), [0, 1, 0])


def test_dnc_links_follow_the_order_of_writing():
    links, precedence = jnp.zeros((4, 4)), jnp.zeros(4)
    for slot in (2, 0, 3):
        links, precedence = dnc.link(links, precedence, jnp.eye(4)[slot])
    assert np.argwhere(np.asarray(links)).tolist() == [[0, 2], [3, 0]]
    assert np.array_equal(precedence, np.eye(4)[3])


# ---- stack and tape


def test_the_stack_is_a_list():
    rng = np.random.default_rng(0)
    found, right = jnp.zeros((SLOTS, WIDTH)), [np.zeros(WIDTH)] * SLOTS
    for _ in range(50):
        action, value = rng.integers(3), rng.normal(size=WIDTH)
        found = stack.act(found, jnp.eye(3)[action], jnp.asarray(value))
        if action == 0:
            right = [value, *right[:-1]]
        elif action == 1:
            right = [*right[1:], np.zeros(WIDTH)]
        assert np.array_equal(found, right)


def test_half_a_push_is_half_of_both():
    """Equation 4 of Joulin & Mikolov (2015) at the top."""
    before, value, actions = numbers(SLOTS, WIDTH), numbers(WIDTH, seed=1), shares(3)
    found = stack.act(jnp.asarray(before), jnp.asarray(actions), jnp.asarray(value))
    push, pop, nothing = actions
    np.testing.assert_allclose(found[0], push * value + pop * before[1] + nothing * before[0])
    np.testing.assert_allclose(
        found[3], push * before[2] + pop * before[4] + nothing * before[3], rtol=1e-12
    )


def test_the_tape_moves_exactly():
    rng, jump = np.random.default_rng(0), 3
    found, cells, head = jnp.zeros((SLOTS, WIDTH)), np.zeros((SLOTS, WIDTH)), 0
    for _ in range(50):
        action, value = rng.integers(5), rng.normal(size=WIDTH)
        found = tape.move(found.at[0].set(jnp.asarray(value)), jnp.eye(5)[action], jnp.array(jump))
        cells[head] = value
        head = (head + (0, 1, -1, jump, -jump)[action]) % SLOTS
        assert np.array_equal(found, np.roll(cells, -head, axis=0))


def stack_by_jax(before, actions, value):
    push, pop, nothing = actions
    pushed, popped = jnp.roll(before, 1, axis=0), jnp.roll(before, -1, axis=0)
    pushed, popped = pushed.at[0].set(value), popped.at[-1].set(0)
    return push * pushed + pop * popped + nothing * before


def tape_by_jax(cells, actions, jump):
    return sum(
        action * jnp.roll(cells, -by, axis=0)
        for action, by in zip(actions, (0, 1, -1, jump, -jump), strict=True)
    )


@pytest.mark.parametrize(
    ("own", "plain", "actions", "last"),
    [
        (stack.act, stack_by_jax, 3, numbers(WIDTH, seed=1)),
        *((tape.move, tape_by_jax, 5, jump) for jump in (0, 3, 9)),
    ],
)
def test_the_way_back_is_that_of_jax(own, plain, actions, last):
    given = jnp.asarray(numbers(SLOTS, WIDTH)), jnp.asarray(shares(actions)), jnp.asarray(last)
    (found, back), (right, usual) = (jax.vjp(move, *given) for move in (own, plain))
    np.testing.assert_allclose(found, right, rtol=1e-14)
    cotangent = jnp.asarray(numbers(SLOTS, WIDTH, seed=2))
    smooth = 2 if own is tape.move else 3  # a jump has no derivative
    for mine, wanted in zip(back(cotangent)[:smooth], usual(cotangent)[:smooth], strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-12)


# ---- Transformer and GRU


def attention_by_hand(part, x, source, allowed):
    """Positions as angles of complex numbers: the two halves of a head are its two parts."""
    heads, size = x.shape[1] // transformer.HEAD_SIZE, transformer.HEAD_SIZE
    angles = 10_000.0 ** (-2 * np.arange(size // 2) / size)

    def turned(rows):
        halves = rows.reshape(len(rows), heads, size)
        plane = halves[:, :, : size // 2] + 1j * halves[:, :, size // 2 :]
        return plane * np.exp(1j * np.arange(len(rows))[:, None, None] * angles)

    project = part.heads
    queries = turned(x @ np.asarray(project.query_proj.weight).T)
    keys = turned(source @ np.asarray(project.key_proj.weight).T)
    values = (source @ np.asarray(project.value_proj.weight).T).reshape(len(source), heads, size)
    scores = np.einsum("qhd,khd->hqk", queries, keys.conj()).real / size**0.5
    weights = np.exp(np.where(allowed, scores, -np.inf))
    weights /= weights.sum(axis=-1, keepdims=True)
    read = np.einsum("hqk,khd->qhd", weights, values).reshape(len(x), -1)
    return read @ np.asarray(project.output_proj.weight).T, weights


def test_attention_is_that_of_the_equations():
    part = transformer.Attention(2 * transformer.HEAD_SIZE, key=KEY)
    x, source = numbers(3, 32), numbers(5, 32, seed=1)
    allowed = np.arange(5)[None, :] < np.array([5, 2, 3])[:, None]
    found, weights = part(jnp.asarray(x), jnp.asarray(allowed), jnp.asarray(source))
    centred = x - x.mean(axis=1, keepdims=True)
    norm = centred / np.sqrt(centred.var(axis=1, keepdims=True) + 1e-5)
    change, right = attention_by_hand(part, norm, source, allowed)
    np.testing.assert_allclose(weights, right, rtol=1e-5)  # Equinox has angles in single precision
    np.testing.assert_allclose(found, x + change, rtol=1e-5, atol=1e-6)


def test_rotary_weights_know_differences_of_positions_only():
    part = transformer.Attention(transformer.HEAD_SIZE, key=KEY)
    x, shift, length = jnp.asarray(numbers(9, 16)), 4, 5
    here = part.weights(x[:length], x[:length], jnp.ones((length, length), bool))
    later = jnp.concatenate([numbers(shift, 16, seed=1), x[:length]])
    mask = jnp.broadcast_to(jnp.arange(9) >= shift, (9, 9))
    there = part.weights(later, later, mask)[:, shift:, shift:]
    np.testing.assert_allclose(here, there, rtol=1e-5)
    other = part.weights(x[:length], x[:length][::-1], jnp.ones((length, length), bool))
    assert not np.allclose(here, other[:, :, ::-1], rtol=1e-2), "positions count"


def test_gru_is_that_of_equinox():
    cell = lantm.build_cell(
        lantm.ModelConfig(model="gru", hidden_size=HIDDEN), INPUTS, OUTPUTS, key=KEY
    )
    (layer,) = cell.controller.layers
    both = layer.from_input.bias + layer.from_hidden.bias
    bias = jnp.concatenate([both[: 2 * HIDDEN], layer.from_input.bias[2 * HIDDEN :]])
    parts = (
        layer.from_input.weight,
        layer.from_hidden.weight,
        bias,
        layer.from_hidden.bias[2 * HIDDEN :],
    )
    other = eqx.tree_at(
        lambda gru: (gru.weight_ih, gru.weight_hh, gru.bias, gru.bias_n),
        eqx.nn.GRUCell(INPUTS, HIDDEN, key=KEY),
        parts,
    )
    state = cell.init_state()
    inputs = jnp.asarray(numbers(INPUTS))
    _, _, trace = cell.step(state, inputs)
    np.testing.assert_allclose(trace.hidden, other(inputs, state[0].hidden), rtol=1e-12)


# ---- what every model promises

PEERS = ["gru", "ntm", "dnc", "stack_rnn", "tape_rnn", "transformer"]
SIZES = {"transformer": {"hidden_size": 16, "blocks": 2}, "gru": {"hidden_size": HIDDEN}}
FIXED = {"hidden_size": HIDDEN, "memory_width": WIDTH, "slots": SLOTS}
BATCH, TIME, STEPS, SYMBOLS = 3, 6, 5, 8
TOKENS = jnp.asarray(np.random.default_rng(0).integers(0, SYMBOLS, (BATCH, TIME)))
LENGTHS = jnp.array([6, 4, 1])

over_peers = pytest.mark.parametrize("name", PEERS, scope="module")


@lru_cache
def peer(name):
    config = lantm.ModelConfig(model=name, embedding_size=INPUTS, **SIZES.get(name, FIXED))
    return lantm.build_machine(config, lantm.Vocabulary(SYMBOLS), key=KEY)


@lru_cache
def answers(name):
    """Padded; unpadded, the second problem alone, for fewer steps; traced; and the gradients."""
    assert isinstance(peer(name), SequenceModel)

    @eqx.filter_jit
    def run(machine):
        def loss(machine):
            logits = machine(TOKENS, STEPS, LENGTHS, jnp.array([STEPS, 2, 3]))
            return jnp.sum(jnp.sin(logits)), logits

        (_, padded), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(machine)
        alone = machine(TOKENS[1:2, :4], 2)
        return padded, alone, machine.trace(TOKENS, STEPS, LENGTHS), gradients

    return jax.tree.map(np.asarray, run(peer(name)))


@over_peers
def test_padding_and_later_steps_change_nothing(name):
    padded, alone, _, _ = answers(name)
    np.testing.assert_allclose(padded[1, :2], alone[0], rtol=1e-9, atol=1e-12)
    assert not padded[1, 2:].any(), "an answer ends after its length"


@over_peers
def test_what_is_traced_is_what_is_answered(name):
    padded, _, trace, _ = answers(name)
    np.testing.assert_allclose(trace.logits[0], padded[0], rtol=1e-9, atol=1e-12)
    for phase, steps in ((trace.encode, TIME), (trace.decode, STEPS)):
        assert phase.hidden.shape[:2] == (BATCH, steps)
        if phase.weights is not None:
            np.testing.assert_allclose(phase.weights.sum(axis=-1), 1, rtol=1e-6)
            assert phase.weights.min() >= 0
    slots = {"ntm": SLOTS, "dnc": SLOTS, "transformer": TIME + 1}.get(name)
    found = trace.decode.weights
    assert (None if found is None else found.shape[-1]) == slots


@pytest.mark.parametrize("name", ["ntm", "dnc", "stack_rnn", "tape_rnn"])
@pytest.mark.parametrize("lengths", [None, LENGTHS, jnp.array([4, 0, 4])], ids=["all", "some", "0"])
def test_the_fast_loop_is_the_plain_scan(name, lengths):
    """Outputs, final state, and the gradients of parameters, inputs and initial state; with noise
    on the controller they differ.
    """
    cell = peer(name).cell
    inputs, start = jnp.asarray(numbers(BATCH, TIME, INPUTS)), lantm.init_states(cell, BATCH, 0)

    def run(unroll, *given):
        def loss(given):
            cell, inputs, start = given
            end, outputs = unroll(cell, start, inputs, lengths)
            real = jax.tree.leaves(eqx.filter(end, eqx.is_inexact_array))
            return sum(jnp.sum(jnp.sin(3 * leaf)) for leaf in (*real, outputs)), (end, outputs)

        return eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(given)

    fast = run(lambda cell, *given: cell.unroll(*given), cell, inputs, start)
    plain = run(lantm.unroll_scan, cell, inputs, start)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), fast, plain)
    noise = jnp.asarray(numbers(TIME, BATCH, cell.noise_size))
    _, shaken = cell.unroll(start, inputs, lengths, noise=noise)
    assert not np.allclose(shaken, fast[0][1][1])


class LazyStack(lantm.StackCell):
    """It forgets its stack at every step."""

    def step(self, state, inputs, *, write=True):
        empty = state._replace(memory=jnp.zeros_like(state.memory))
        return super().step(empty, inputs, write=write)


def test_a_step_of_ones_own_is_what_is_unrolled():
    cell = LazyStack(INPUTS, OUTPUTS, SLOTS, WIDTH, hidden_size=HIDDEN, key=KEY)
    inputs, start = jnp.asarray(numbers(BATCH, TIME, INPUTS)), lantm.init_states(cell, BATCH, 0)
    own, plain = cell.unroll(start, inputs), lantm.unroll_scan(cell, start, inputs)
    assert jax.tree.all(jax.tree.map(np.array_equal, own, plain))


@over_peers
def test_every_parameter_is_learned(name):
    *_, gradients = answers(name)
    unused = [
        jax.tree_util.keystr(path)
        for path, leaf in jax.tree_util.tree_leaves_with_path(gradients)
        if not np.abs(leaf).max() > 0
    ]
    assert unused == []


@pytest.mark.parametrize("name", ["ntm", "dnc", "stack_rnn", "tape_rnn"])
def test_more_slots_need_no_other_parameters(name):
    config = lantm.ModelConfig(model=name, **FIXED | {"slots": 3 * SLOTS})
    few, many = (
        named_arrays(lantm.build_machine(c, lantm.Vocabulary(SYMBOLS), key=KEY))
        for c in (lantm.ModelConfig(model=name, **FIXED), config)
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, few, many))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"slots": 9}, "slots is only for ntm, dnc, stack_rnn, tape_rnn; got 9 for lantm"),
        ({"model": "ntm", "blocks": 2}, "blocks is only for transformer; got 2 for ntm"),
        ({"model": "ntm", "slots": 0}, "slots must be a whole number of at least 1, got 0"),
        ({"model": "transformer", "controller": "gru"}, "controller of transformer is none, got"),
        ({"model": "gru", "forget_bias": 1.0}, "forget_bias is only for lstm controllers"),
        ({"model": "transformer", "noise": 0.5}, "noise is only for lstm, .* got 0.5 for transf"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        lantm.configure("plain", **settings)


def test_a_transformer_is_made_of_whole_heads():
    with pytest.raises(ValueError, match="hidden_size of a transformer must be a multiple of 16"):
        lantm.build_machine(
            lantm.ModelConfig(model="transformer", hidden_size=50), lantm.Vocabulary(3), key=KEY
        )


def test_a_transformer_has_no_cell_and_no_controller_to_shake():
    with pytest.raises(ValueError, match="model must be one that has a cell, got transformer"):
        lantm.build_cell(lantm.ModelConfig(model="transformer"), 3, 3, key=KEY)
    with pytest.raises(ValueError, match="noise is for machines with a controller"):
        peer("transformer")(TOKENS, STEPS, noise=jnp.zeros((TIME + STEPS, BATCH, 0)))


# ---- by the same commands


@pytest.mark.parametrize("name", ["ntm", "transformer"])
def test_train_resume_evaluate_and_look(name, options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = ["--slots=6"] if name == "ntm" else ["--blocks=1", "--hidden-size=16"]
    command = ["train", "tiny", "--model", name, *options, *sizes]
    assert cli.main(command) == 0
    (run,) = tmp_path.glob("runs/*")
    assert_picture(run / "memory.png")
    whole = (run / "weights" / "last.safetensors").read_bytes()

    for file in ("result.json", "checkpoints/000020.safetensors"):
        (run / file).unlink()
    assert cli.main(["train", "--resume", str(run)]) == 0
    assert (run / "weights" / "last.safetensors").read_bytes() == whole

    for figure in ("weights", "memory"):
        assert cli.main(["figure", figure, str(run)]) == 0
        assert_picture(tmp_path / f"{figure}.png")
    assert cli.main(["explore", str(run), "--no-open"]) == 0
    assert cli.main(["eval", str(run), "--lengths", "2:6:2", "--each", "3", "--save"]) == 0
    assert "2 to 6" in capsys.readouterr().out
    assert [score.size for score in saved_lengths(lantm.Run.open(run))] == [2, 4, 6]
    if name == "ntm":
        assert "must have a memory to draw" in refused(capsys, "figure", "flat", str(run))
        more = ["--lengths", "3:3", "--each", "3", "--slots", "9", "--save"]
        assert cli.main(["eval", str(run), *more]) == 0
        assert [score.slots for score in saved_lengths(lantm.Run.open(run))] == [None] * 3 + [9]
