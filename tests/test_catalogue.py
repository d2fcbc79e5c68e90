"""The catalogue of key spaces: names, groups as matrices, pictures, machines in every space."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import lantm
from lantm.spaces.hyperbolic import FAR, Hyperbolic, Moebius
from spaces import ALL_SPACES
from test_own_parts import assert_fast_is_reference, cell
from test_spaces import numbers

# ---- names


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("plane", lantm.Plane()),
        ("free_plane", lantm.Plane(bounded=False)),
        ("space7", lantm.Plane(7)),
        ("free_space4", lantm.Plane(4, bounded=False)),
        ("torus3", lantm.Torus(3)),
        ("sphere3", lantm.Sphere3()),
        ("free_sphere5", lantm.HyperSphere(5, bounded=False)),
        ("free_rigid", lantm.Rigid2(bounded=False)),
        ("line*circle", lantm.Product(lantm.Plane(1), lantm.Torus(1))),
        (
            "sphere*free_line*torus",
            lantm.Product(
                lantm.Product(lantm.Sphere(), lantm.Plane(1, bounded=False)), lantm.Torus()
            ),
        ),
    ],
)
def test_names_are_made_of_names(name, space):
    assert lantm.find_space(name) == space
    assert lantm.ModelConfig("lantm", space=name).space == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("line*cirle", "got 'cirle' (did you mean 'circle'?)"),
        ("free_sphere", "got 'free_sphere' (did you mean 'sphere'?)"),
        ("free_cirle", "got 'cirle' (did you mean 'circle'?)"),
        ("line*", "got ''"),
        ("space0", "key_size must be a whole number of at least 1, got 0"),
        ("sphere0", "dimension must be a whole number of at least 1, got 0"),
        ("torus0", "circles must be a whole number of at least 1, got 0"),
    ],
)
def test_names_that_are_none(name, said):
    with pytest.raises(ValueError, match="must be") as refusal:
        lantm.ModelConfig("lantm", space=name)
    assert str(refusal.value).endswith(said)


def test_a_space_of_ones_own_takes_part_in_products():
    lantm.SPACES["own"] = lantm.Plane(5)
    assert lantm.find_space("own*line").key_size == 6


# ---- groups as matrices


def skew(x, y, z):
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def from_left(x, y, z):
    return np.array([[0, -x, -y, -z], [x, 0, -z, y], [y, z, 0, -x], [z, -y, x, 0]])


def from_right(x, y, z):
    return np.array([[0, -x, -y, -z], [x, 0, z, -y], [y, -z, 0, x], [z, y, -x, 0]])


def planes(*v):
    above = np.zeros((5, 5))
    above[np.triu_indices(5, 1)] = v
    return above.T - above


def affine(linear, shift):
    return np.block([[linear, np.array(shift)[:, None]], [np.zeros((1, len(shift) + 1))]])


MATRICES = {
    "sphere": skew,
    "quaternions": from_left,
    "sphere3": lambda *v: (from_left(*v[:3]) - from_right(*v[3:])) / 2**0.5,
    "sphere4": planes,
    "rigid": lambda turn, *shift: affine(np.array([[0, -turn], [turn, 0]]), shift),
    "rigid3": lambda *v: affine(skew(*v[:3]), v[3:]),
    "heisenberg": lambda x, y, z: np.array([[0, x, z], [0, 0, y], [0, 0, 0]]),
    "hyperbolic": lambda a, b, c: np.array([[a, b - c], [b + c, -a]]) / 2,
}
"""The Lie algebras, in the bases of the spaces."""


def acted(name, matrix, key):
    """The group element of a matrix on a key, in the space's own coordinates."""
    if name == "hyperbolic":
        (a, b), (c, d) = matrix
        z = key[0] + 1j * np.exp(key[1])
        z = (a * z + b) / (c * z + d)
        return np.array([z.real, np.log(z.imag)])
    if name == "heisenberg":
        x, y, z = key
        corner = matrix @ expm(MATRICES[name](x, y, z))
        x, y = corner[0, 1], corner[1, 2]
        return np.array([x, y, corner[0, 2] - x * y / 2])
    if len(matrix) == len(key) + 1:
        return (matrix @ np.append(key, 1.0))[:-1]
    return matrix @ key


@lru_cache
def exp_and_act(name):
    space = ALL_SPACES[name]
    return jax.jit(lambda velocity, raw: space.act(space.exp(velocity), space.project(raw)))


@pytest.mark.parametrize("name", MATRICES)
@given(st.data())
def test_exp_is_that_of_matrices(name, data):
    space = ALL_SPACES[name]
    velocity = data.draw(st.floats(1e-6, 3)) * data.draw(numbers(space.algebra_size))
    raw = data.draw(numbers(space.key_size))
    key = space.project(jnp.asarray(raw))
    expected = acted(name, expm(MATRICES[name](*velocity)), np.asarray(key))
    assert np.allclose(exp_and_act(name)(velocity, raw), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("quaternions", jnp.array([-1.0, 0, 0, 0])),
        ("rigid3", lantm.Rigid3().exp(jnp.array([0, jnp.pi, 0, 1.0, 2.0, 3.0]))),
        ("rigid", lantm.Rigid2().exp(jnp.array([jnp.pi, 1.0, 2.0]))),
        ("hyperbolic", Moebius(*map(jnp.asarray, (0.0, -1.0, 1.0, 0.0)))),
        ("sphere3", lantm.Sphere3().exp(jnp.array([2**0.5 * jnp.pi, 0, 0, 0, 0, 0]))),
    ],
)
def test_exp_undoes_log_where_the_shortest_way_is_not_unique(name, element):
    space = ALL_SPACES[name]
    key = space.project(jnp.arange(1.0, space.key_size + 1))
    again = space.exp(space.log(element))
    assert np.allclose(space.act(again, key), space.act(element, key), atol=1e-12)


HALF_TURNS = {
    "one plane": (np.pi, 0.0),
    "one plane, another one turned as well": (np.pi, 2.9),
    "one plane, another one by a quarter": (np.pi / 2, np.pi),
    "two planes": (np.pi, np.pi),
    "nearly two planes": (np.pi - 1e-9, np.pi - 1e-4),
    "two planes by the same angle": (2.0, 2.0),
}


@pytest.mark.parametrize("case", HALF_TURNS)
@pytest.mark.parametrize("size", [5, 6])
def test_turns_of_many_dimensions(case, size):
    """The logarithm is the shortest one, and leads back, however the planes lie."""
    space, angles = lantm.HyperSphere(size - 1), HALF_TURNS[case]
    blocks = np.zeros((size, size))
    for plane, angle in enumerate(angles):
        blocks[2 * plane, 2 * plane + 1], blocks[2 * plane + 1, 2 * plane] = -angle, angle
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    for frame in (np.eye(size), basis):
        element = jnp.asarray(frame @ expm(blocks) @ frame.T)
        turn = logarithm(element)
        assert np.linalg.norm(turn) == pytest.approx(np.linalg.norm(angles), rel=1e-9)
        assert np.allclose(space.exp(turn), element, atol=1e-10)
        with jax.enable_x64(False):
            single = logarithm(element.astype("float32"))
            assert np.allclose(space.exp(single), element, atol=1e-4)


logarithm = jax.jit(lantm.HyperSphere().log)


def test_a_velocity_of_a_hypersphere_that_is_too_long_is_cut():
    exp = jax.jit(jax.value_and_grad(lambda turn: lantm.HyperSphere().exp(turn)[0, 1]))
    direction = jnp.ones(10) / 10**0.5
    (far, slope), (longest, _) = exp(1e3 * direction), exp(32 * direction)
    assert float(far) == pytest.approx(float(longest), abs=1e-12)
    assert float(direction @ slope) == pytest.approx(0, abs=1e-12)


# ---- the hyperbolic plane far out


@partial(jax.jit, static_argnums=0)
def neighbours(space, keys):
    return jax.vmap(lambda one, other: space.squared_distance(one, other[None])[0])(
        keys[:-1], keys[1:]
    )


def test_distances_far_out_in_single_precision():
    """Neighbours 0.1 to 3 apart, at distances of up to 20 from the middle in every direction."""
    rng = np.random.default_rng(0)
    start = np.column_stack([rng.normal(size=50), rng.uniform(-19, 19, 50)])
    start[:, 0] *= np.exp(np.maximum(start[:, 1], 0))
    beside = start + rng.uniform(0.1, 1, (50, 2)) * np.column_stack(
        [np.exp(start[:, 1]), np.ones(50)]
    )
    keys = np.stack([start, beside], axis=1).astype("float32")
    exact = np.concatenate([neighbours(Hyperbolic(), pair) for pair in keys.astype(float)])
    with jax.enable_x64(False):
        single = np.concatenate([neighbours(Hyperbolic(), pair) for pair in keys])
    assert np.all((exact > 0.005) & (exact < 10))
    assert np.allclose(single, exact, rtol=1e-4)


def test_keys_stay_where_numbers_are_finite():
    """Pushed outwards for ever, in single precision."""
    space, push = Hyperbolic(), jax.jit(Hyperbolic().act)
    with jax.enable_x64(False):
        for velocity in np.eye(3, dtype="float32")[[0, 1, 0]] * np.float32([[9], [-9], [-9]]):
            action, far = space.exp(jnp.asarray(velocity)), jnp.array([0.3, 0.2])
            for _ in range(50):
                far = push(action, far)
            assert np.all(np.isfinite(far))
            apart = space.squared_distance(far, jnp.stack([far, -far, jnp.array([0.0, 0.0])]))
            assert np.all(np.isfinite(apart))
            assert FAR**2 / 2 < apart[2] < 9 * FAR**2


# ---- pictures

VIEWS = {
    "line": ("plane", ("coordinate 1", "")),
    "space3": ("space", ("coordinate 1", "coordinate 2", "coordinate 3")),
    "circle": ("circle", ("cosine", "sine")),
    "torus": ("torus", ("angle 1", "angle 2")),
    "quaternions": ("space", ("stereographic 1", "stereographic 2", "stereographic 3")),
    "sphere3": ("space", ("stereographic 1", "stereographic 2", "stereographic 3")),
    "hyperbolic": ("disc", ("disc 1", "disc 2")),
    "free_line*circle": ("space", ("coordinate 1", "cosine", "sine")),
    "sphere*hyperbolic": (
        "components",
        ("principal component 1", "principal component 2"),
    ),
}


@pytest.mark.parametrize("name", ALL_SPACES)
def test_every_space_has_a_chart(name):
    space = ALL_SPACES[name]
    raws = jnp.asarray(np.random.default_rng(0).normal(size=(11, space.key_size)))
    chart = space.chart(np.asarray(jax.vmap(space.project)(raws)))
    assert chart.points.shape == (11, len(chart.axes))
    assert len(chart.axes) in (2, 3)
    assert np.all(np.isfinite(chart.points))
    assert (chart.view, chart.axes) == VIEWS.get(name, (chart.view, chart.axes))


def test_charts_keep_what_they_promise():
    turn = np.linspace(-3, 3, 11)
    key = np.column_stack([np.cos(turn), np.sin(turn), np.cos(2 * turn), np.sin(2 * turn)])
    angles = lantm.Torus().chart(key).points
    assert np.allclose(angles[:, 0], turn)
    assert np.allclose(np.exp(1j * angles[:, 1]), np.exp(2j * turn))
    disc = Hyperbolic().chart(np.column_stack([np.zeros(11), turn])).points
    # On a ray of the disc a key at distance d is tanh(d / 2) from the middle.
    assert np.allclose(np.linalg.norm(disc, axis=1), np.tanh(np.abs(turn) / 2))
    quaternions = lantm.Quaternions().chart(np.eye(4)).points
    assert np.allclose(np.linalg.norm(quaternions, axis=1), np.sqrt(1 / 3))  # all at the same angle


# ---- machines

MIXED = {"action_interpolation": True}


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        ("circle*rigid", {"anchored": True, "blended": True, "weighting": "inverse_power"}),
        ("hyperbolic", {}),
        ("heisenberg", {"weighting": "softmax"}),
        ("sphere4", {"action_interpolation": False}),
    ],
)
def test_the_fast_loop_is_the_reference_in_other_spaces(space, settings):
    """Small machines each: to compile one that has everything takes minutes."""
    assert_fast_is_reference(cell(model="lantm", space=space, **MIXED | settings))
