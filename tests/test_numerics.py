"""No NaN and no infinity, in results and gradients, where a formula has a hole; both precisions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.memory.weighting import softmax, strengthen, to_weights
from lantm.training.kinds import PAPER_MODELS
from spaces import ALL_SPACES, BATCH, OUTPUTS, TIME, VARIANTS, machine

PRECISIONS = ("float32", "float64")
SLOTS, WIDTH, STEPS = 5, 7, 3


@pytest.fixture(params=PRECISIONS)
def precision(request):
    """Really single: with doubles on, a stray double would repair what it touches."""
    with jax.enable_x64(request.param == "float64"):
        yield request.param


def cast(tree, precision):
    """A tree with its floats in a precision."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf, precision)) if is_float(leaf) else leaf, tree
    )


def is_float(leaf):
    return eqx.is_inexact_array(leaf) or isinstance(leaf, np.ndarray | float)


@eqx.filter_jit
def results_and_gradients(function, *args):
    """What a function returns, and the gradients of a combination of all its numbers."""

    def loss(args):
        results = function(*args)
        return sum(jnp.vdot(leaf, weights(leaf)) for leaf in jax.tree.leaves(results)), results

    (_, results), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(args)
    return results, gradients


def weights(leaf):
    # Distinct, so that nothing cancels: the gradient of a sum of weights would be zero.
    return jnp.arange(1.0, leaf.size + 1, dtype=leaf.dtype).reshape(leaf.shape)


def odd_leaves(tree, precision):
    """The leaves that are not finite or not in the precision asked for."""
    named = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    assert named
    return [
        jax.tree_util.keystr(path)
        for path, leaf in named
        if leaf.dtype != precision or not np.all(np.isfinite(leaf))
    ]


def move(space, gate, candidate, key, raw, last, action_gate):
    """A head's whole step, with its actions mixed and composed."""
    mixed = space.mix_action(action_gate, space.action(raw), last)
    action = space.compose(space.inverse(last), mixed)
    return space.act(action, space.mix(gate, space.project(candidate), key)), mixed


def hard_moves(space):
    """The arguments of `move` after the space, by what is hard about them."""
    key, opposite = np.eye(space.key_size)[0], -np.eye(space.key_size)[0]
    raw, nothing = np.ones(space.action_size), np.zeros(space.action_size)
    action, one = space.action(jnp.asarray(raw)), space.identity()
    antipode = jax.tree.map(lambda leaf: -leaf, action)
    flip, other = (
        jax.tree.map(jnp.round, space.exp(jnp.pi * jnp.eye(space.algebra_size)[i])) for i in (0, -1)
    )
    return {
        "zero vectors": (0.5, 0 * key, key, nothing, one, 0.5),
        "antipodal keys": (0.5, opposite, key, raw, one, 0.5),
        "antipodal axes and phases": (0.5, key, key, raw, antipode, 0.5),
        "the last action again": (0.5, key, key, raw, action, 0.5),
        "half a turn": (0.5, key, key, nothing, flip, 0.5),
        "half a turn of another kind": (0.5, key, key, nothing, other, 0.5),
        "half a turn onwards": (0.5, key, key, raw, other, 0.5),
        "shut gates": (0.0, opposite, key, raw, flip, 0.0),
        "open gates": (1.0, opposite, key, raw, flip, 1.0),
        "huge actions": (0.5, 1e9 * key, key, 1e9 * raw, action, 0.5),
        "tiny actions": (0.5, 1e-9 * key, key, 1e-9 * raw, one, 0.5),
    }


@pytest.mark.parametrize("name", ALL_SPACES)
def test_heads(name, precision):
    space = cast(ALL_SPACES[name], precision)
    for case, args in hard_moves(space).items():
        outcome = results_and_gradients(move, space, *cast(args, precision))
        assert odd_leaves(outcome, precision) == [], case


def distances(space, key, keys):
    return space.squared_distance(space.project(key), jax.vmap(space.project)(keys))


def hard_distances(space):
    """A head and keys, by what is hard about them."""
    head = np.arange(1.0, space.key_size + 1) / space.key_size
    away = head + np.arange(1.0, 4)[:, None]
    return {
        "on all keys": (head, np.tile(head, (3, 1))),
        "very near": (head, head + 1e-12 * away),
        "near in the last coordinate": (head, head + 1e-7 * np.eye(space.key_size)[-1:] * away),
        "opposite": (head, -np.tile(head, (3, 1))),
        "far away": (head, 1e6 * away),
        "zero vectors": (0 * head, 0 * away),
    }


@pytest.mark.parametrize("name", ALL_SPACES)
def test_distances(name, precision):
    space = cast(ALL_SPACES[name], precision)
    for case, args in hard_distances(space).items():
        outcome = results_and_gradients(distances, space, *cast(args, precision))
        assert odd_leaves(outcome, precision) == [], case


def random_access(squared_distances, raw, strengths, valid):
    return to_weights(strengthen(softmax(-squared_distances, valid), strengths, valid))


READERS = {
    "inverse_square": lantm.InverseSquare(),
    "softmax": lantm.Softmax(),
    "inverse_power": lantm.InversePower(),
    "ram": random_access,
}


def read(weighting, head, keys, strengths, raw, values, count):
    distances = lantm.Plane().squared_distance(head, keys)
    return weighting(distances, raw, strengths, jnp.arange(SLOTS) < count) @ values


def hard_readings():
    """Head, keys, strengths and number of memories, by what is hard about them."""
    head = np.array([0.6, 0.8])
    apart = head + np.arange(1.0, 2 * SLOTS + 1).reshape(SLOTS, 2)
    ones, nobody = np.full(SLOTS, 0.5), np.zeros(SLOTS)
    on_one, on_two = np.copy(apart), np.copy(apart)
    on_one[1] = on_two[1] = on_two[3] = head
    return {
        "away": (head, apart, ones, SLOTS),
        "on a key": (head, on_one, ones, SLOTS),
        "on two keys": (head, on_two, ones, SLOTS),
        "on all keys": (head, np.tile(head, (SLOTS, 1)), ones, SLOTS),
        "very near a key": (head, on_one + 1e-12, ones, SLOTS),
        "no strengths": (head, apart, nobody, SLOTS),
        "no strengths, on a key": (head, on_one, nobody, SLOTS),
        "one memory": (head, apart, ones, 1),
        "far away": (head, 1e6 * apart, ones, SLOTS),
    }


@pytest.mark.parametrize("name", READERS)
def test_readings(name, precision):
    values = np.arange(SLOTS * WIDTH, dtype=float).reshape(SLOTS, WIDTH)
    emits = getattr(READERS[name], "raw_size", 0)
    temperatures = (-1e4, -200.0, 0.0, 200.0, 1e4) if emits else (None,)
    for case, (head, keys, strengths, count) in hard_readings().items():
        for temperature in temperatures:
            raw = np.array([] if temperature is None else [temperature])
            args = cast((head, keys, strengths, raw, values), precision)
            outcome = results_and_gradients(read, READERS[name], *args, jnp.array(count))
            assert odd_leaves(outcome, precision) == [], (case, temperature)


FAR_SPACES = ("hyperbolic", "heisenberg", "rigid3", "quaternions*torus")
"""Where steps turn, or lead far."""


# The scope keeps the tests of a model together: each process compiles its models only.
@pytest.mark.parametrize("name", [*PAPER_MODELS, "slantm_bounded", *FAR_SPACES], scope="module")
@pytest.mark.parametrize("scale", [1, 10])
def test_machines(name, scale):
    """Answers, loss and gradients, in single precision, of sequences of every length from one."""
    own = name in FAR_SPACES
    rng, double = np.random.default_rng(0), machine("lantm", space=name) if own else machine(name)
    with jax.enable_x64(False):
        single = cast(double, "float32")
        scaled = jax.tree.map(lambda p: scale * p if eqx.is_array(p) else p, single)
        tokens, answers = (
            jnp.asarray(rng.integers(0, OUTPUTS, (BATCH, time))) for time in (TIME, STEPS)
        )
        lengths = jnp.array([1, TIME, 2, 5, 3])
        assert odd_leaves(losses(scaled, tokens, answers, lengths), "float32") == []


@eqx.filter_jit
def losses(machine, tokens, answers, lengths):
    def loss(machine):
        logits = machine(tokens, answers.shape[1], lengths)
        return lantm.answer_loss(logits, answers), logits

    return eqx.filter_value_and_grad(loss, has_aux=True)(machine)


@pytest.mark.parametrize("name", VARIANTS)
def test_single_stays_single(name):
    """With doubles on, no constant inside turns a single-precision machine into a double one."""
    single = cast(machine(name), "float32")
    tokens = jnp.zeros((BATCH, TIME), int)

    def run(machine):
        state = machine.encode(tokens)
        return state, machine.decode(state, STEPS)

    results = eqx.filter_eval_shape(run, single)
    floats = [leaf for leaf in jax.tree.leaves(results) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert {leaf.dtype.name for leaf in floats} == {"float32"}
