"""The laws of a group acting on a manifold by isometries, over all key spaces."""

from functools import lru_cache, partial

import equinox as eqx
import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation as Reference

import lantm
from lantm.spaces import Free, LearnedPace, UnitBall
from spaces import ALL_SPACES

pytestmark = pytest.mark.usefixtures("optimised_module")

BOUND = 1e-12
EPSILON = np.finfo(float).eps
KEYS = 5

over_spaces = pytest.mark.parametrize("name", ALL_SPACES)
scales = st.floats(1e-8, 1e-3) | st.floats(1e-3, 30)
"""Near the identity, where axes of rotation nearly vanish, and far from it."""


def numbers(*shape):
    # Their squares do not underflow: only equal keys have distance zero.
    return hnp.arrays(float, shape, elements=st.floats(-1, 1, width=32, allow_subnormal=False))


LONGEST = {"hyperbolic": 1.0, "sphere*hyperbolic": 1.0}
"""Of velocities, where distances from the middle grow coordinates, and rounding, exponentially."""


def actions(name, draw, many):
    longest = min(draw(scales), LONGEST.get(name, np.inf))
    return longest * draw(numbers(many, ALL_SPACES[name].action_size))


def keys_of(name, draw):
    return compiled(projections, name)(draw(numbers(KEYS, ALL_SPACES[name].key_size)))


def projections(space, raws):
    return jax.vmap(space.project)(raws)


def broken(laws, name, *args):
    """The laws whose two sides differ; NaN differs from everything."""
    sides = compiled(laws, name)(*args)
    errors = {law: float(np.max(np.abs(left - right))) for law, (left, right) in sides.items()}
    return {law: error for law, error in errors.items() if not error < BOUND}


@lru_cache
def compiled(laws, name):
    return jax.jit(partial(laws, ALL_SPACES[name]))


def each(function, *calls):
    """What a function makes of many arguments. It is traced and compiled once for all of them."""
    results = jax.vmap(function)(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *calls))
    return [jax.tree.map(lambda leaf, i=i: leaf[i], results) for i in range(len(calls))]


def actions_of(space, raws):
    return each(space.action, *((raw,) for raw in raws))


def mover(space):
    """Of all keys by one action."""
    return jax.vmap(space.act, (None, 0))


def group_laws(space, raws, keys):
    """Pairs that have to be equal; group elements are compared by what they do to keys."""
    one, (a, b, c) = space.identity(), actions_of(space, raws)
    back = space.inverse(a)
    ab, bc, left, right, undone, done = each(
        space.compose, (a, b), (b, c), (one, a), (a, one), (back, a), (a, back)
    )
    first, second = each(space.compose, (a, bc), (ab, c))
    elements = one, a, b, ab, first, second, left, right, undone, done
    still, by_a, by_b, by_ab, *rest = each(mover(space), *((action, keys) for action in elements))
    in_turn, returned = each(mover(space), (a, by_b), (back, by_a))
    projected, projected_again = each(partial(projections, space), (by_a,), (keys,))
    return {
        "identity acts trivially": (still, keys),
        "composition acts in turn": (by_ab, in_turn),
        "inverse undoes": (returned, keys),
        "associativity": (rest[0], rest[1]),
        "identity from the left": (rest[2], by_a),
        "identity from the right": (rest[3], by_a),
        "inverse from the left": (rest[4], keys),
        "inverse from the right": (rest[5], keys),
        "keys stay on the manifold": (projected, by_a),
        "projection is idempotent": (projected_again, keys),
    }


@over_spaces
@given(st.data())
def test_group_acts(name, data):
    keys = keys_of(name, data.draw)
    assert broken(group_laws, name, actions(name, data.draw, 3), keys) == {}


def distance_laws(space, raws, keys):
    between = jax.vmap(space.squared_distance, (0, None))
    moved = jax.vmap(partial(space.act, space.action(raws[0])))(keys)
    distances = between(keys, keys)
    differ = jnp.any(keys[:, None] != keys[None], axis=-1)
    positive = jnp.sign(distances)
    return {
        "isometry": (between(moved, moved), distances),
        "symmetry": (distances, distances.T),
        "zero on itself, positive elsewhere": (positive, differ.astype(float)),
    }


@over_spaces
@given(st.data())
def test_distance(name, data):
    keys = keys_of(name, data.draw)
    assert broken(distance_laws, name, actions(name, data.draw, 1), keys) == {}


def mixing_laws(space, raws, keys):
    new, old = actions_of(space, raws)
    none, full = jnp.array(0.0), jnp.array(1.0)
    kept, taken = each(space.mix, (none, keys[0], keys[1]), (full, keys[0], keys[1]))
    mixed = each(space.mix_action, (none, new, old), (full, new, old))
    moved = each(mover(space), *((action, keys) for action in (*mixed, old, new)))
    return {
        "gate 0 keeps the key": (kept, keys[1]),
        "gate 1 takes the candidate": (taken, keys[0]),
        "gate 0 keeps the action": (moved[0], moved[2]),
        "gate 1 takes the action": (moved[1], moved[3]),
    }


def algebra_laws(space, velocity, shares, keys):
    """`velocity` is short enough to be the shortest way to where it leads."""
    s, t = shares
    a, first, second, both, none = each(
        space.exp, *((share * velocity,) for share in (1.0, s, t, s + t, 0.0))
    )
    there, back = each(space.log, (a,), (space.inverse(a),))
    elements = a, space.exp(there), both, space.compose(first, second), none
    by_a, by_log, at_once, in_turn, still = each(mover(space), *((e, keys) for e in elements))
    half = lantm.KeySpace.mix_action(space, jnp.array(0.5), a, none)
    return {
        "half-way is half of the velocity": (space.log(half), velocity / 2),
        "log undoes exp": (there, velocity),
        "exp undoes log": (by_log, by_a),
        "a one-parameter subgroup": (at_once, in_turn),
        "exp 0 is the identity": (still, keys),
        "log of the inverse": (back, -velocity),
    }


@over_spaces
@given(st.data())
def test_exp_and_log(name, data):
    size = ALL_SPACES[name].algebra_size
    velocity = data.draw(scales.filter(lambda s: s < 1.5)) * data.draw(numbers(size))
    velocity = velocity * min(1, 2.6 / max(np.linalg.norm(velocity), 1e-9))
    shares = data.draw(numbers(2))
    assert broken(algebra_laws, name, velocity, shares, keys_of(name, data.draw)) == {}


@over_spaces
def test_exp_and_log_have_derivatives_at_the_identity(name):
    """d log(exp(v)) = dv, at 0 and beside it, in single precision."""
    space = ALL_SPACES[name]
    there_and_back = jax.jit(jax.jacobian(lambda v: space.log(space.exp(v))))
    with jax.enable_x64(False):
        for length in (1e-18, 1e-9, 1e-4, 1.0):
            v = jnp.full(space.algebra_size, length, jnp.float32)
            assert np.allclose(there_and_back(v), np.eye(space.algebra_size), atol=1e-5), length
        assert np.all(np.isfinite(there_and_back(jnp.zeros(space.algebra_size, jnp.float32))))


@over_spaces
@given(st.data())
def test_mixes_end_at_their_end_points(name, data):
    keys = keys_of(name, data.draw)
    assert broken(mixing_laws, name, actions(name, data.draw, 2), keys) == {}


@over_spaces
def test_ten_thousand_moves_stay_on_the_manifold(name):
    space, rng = ALL_SPACES[name], np.random.default_rng(0)
    sizes = (), (space.key_size,), (space.action_size,)
    gates, candidates, raws = (rng.normal(size=(10_000, *size)) for size in sizes)

    def move(keys, now):
        gate, candidate, raw = now
        mixed = space.mix(jax.nn.sigmoid(gate), space.project(candidate), keys["moved"])
        action = space.action(3 * raw)
        keys = {"moved": space.act(action, mixed), "acted on": space.act(action, keys["acted on"])}
        return keys, {by: jnp.max(jnp.abs(space.project(key) - key)) for by, key in keys.items()}

    start = space.project(jnp.ones(space.key_size))
    start = {"moved": start, "acted on": start}
    _, errors = jax.lax.scan(move, start, (gates, candidates, raws))
    # Rounding: a mix projects back at every step, actions alone may add up theirs.
    assert np.all(errors["moved"] < 10 * EPSILON)
    assert np.all(errors["acted on"] < 10_000 * EPSILON)


@given(numbers(5), scales)
def test_only_bounded_shifts_are_shorter_than_one(raw, scale):
    raw, length = jnp.asarray(scale * raw), np.linalg.norm(scale * raw)
    bounded, free = (lantm.Plane(5, bounded=b).reach(jax.random.key(0)) for b in (True, False))
    shift = np.linalg.norm(bounded(raw))
    assert shift < 1
    assert np.isclose(shift, length / np.hypot(1, length), rtol=BOUND, atol=0)
    assert np.array_equal(free(raw), raw)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, LearnedPace) for name in ("circle", "torus3", "quaternions", "sphere4")),
        *((name, UnitBall) for name in ("line", "rigid", "hyperbolic")),
        *((name, Free) for name in ("free_circle", "free_line")),
    ],
)
def test_steps_begin_short_where_tapes_come_around(name, kind):
    space = lantm.find_space(name)
    reach = space.reach(jax.random.key(0))
    assert type(reach) is kind
    if kind is LearnedPace:
        raw = jnp.full(space.action_size, 1e6)
        length = lambda reach: jnp.linalg.norm(reach(raw))  # noqa: E731
        long = eqx.tree_at(lambda reach: reach.bound, reach, jnp.asarray(20.0))
        assert 2 * np.pi / length(reach) > 128, "room for all of copy at twice the training size"
        assert 0.999 < length(long) <= 1
        assert jax.grad(length)(reach).bound > 0, "it learns"


def angle(reach, raw):
    cos, sin = lantm.Sphere().action(reach(raw)).phase
    return jnp.arctan2(sin, cos)


angle_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(angle))


@given(numbers(4), st.floats(1e-8, 15), st.floats(-3, 9))
def test_angles_keep_their_bounds(raw, scale, bound):
    raw = jnp.asarray(scale * raw)
    free = lantm.Sphere().reach(jax.random.key(0))
    assert abs(angle_and_gradient(free, raw)[0]) < 1
    learned = lantm.Sphere(bounded=True).reach(jax.random.key(0))
    learned = eqx.tree_at(lambda reach: reach.bound, learned, jnp.asarray(bound))
    theta, gradient = angle_and_gradient(learned, raw)
    share = 1 / (1 + np.exp(5 - bound))
    assert abs(theta) < np.pi * share
    # The bound learns: d theta / d b = theta (1 - sigmoid(b - 5)).
    assert np.allclose(gradient.bound, theta * (1 - share), rtol=1e-9, atol=1e-15)


def turn(axis, theta):
    return lantm.Rotation(jnp.asarray(axis), jnp.stack([jnp.cos(theta), jnp.sin(theta)]))


axes = numbers(3).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
angles = st.floats(-3.1, 3.1)
rotate = jax.jit(lantm.Sphere().act)


@given(axes, angles, numbers(3))
def test_rodrigues_is_the_rotation_matrix(axis, theta, point):
    expected = Reference.from_rotvec(theta * axis).apply(point)
    assert np.allclose(rotate(turn(axis, theta), jnp.asarray(point)), expected, atol=BOUND)


geodesic = jax.jit(lantm.Sphere(geodesic=True).mix_action)
rotate_all = jax.jit(jax.vmap(lantm.Sphere().act, (None, 1), 1))


@given(axes, angles, st.floats(0, 1))
@settings(max_examples=100)
def test_geodesic_mixing_scales_the_angle(axis, theta, gate):
    """Gate 1/2 halves the angle, for one; mixing axis and phase on their own does not."""
    mixed = geodesic(jnp.asarray(gate), turn(axis, theta), turn(axis, 0.0))
    expected = Reference.from_rotvec(gate * theta * axis).as_matrix()
    assert np.allclose(rotate_all(mixed, jnp.eye(3)), expected, atol=BOUND)


@pytest.mark.parametrize(
    ("size", "view"), [(1, "plane"), (2, "plane"), (3, "space"), (5, "components")]
)
def test_charts_of_any_dimension_can_be_drawn(size, view):
    keys = np.random.default_rng(0).normal(size=(11, size))
    chart = lantm.Plane(size).chart(keys)
    assert chart.view == view
    assert chart.points.shape == (11, 3 if size == 3 else 2)
    if size < 5:
        assert np.array_equal(chart.points[:, :size], keys)


def test_the_sphere_is_drawn_as_one():
    keys = np.eye(3)
    chart = lantm.Sphere().chart(keys)
    assert chart.view == "sphere"
    assert np.array_equal(chart.points, keys)
