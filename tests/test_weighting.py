"""The laws of read weights, over all ways to weigh memories."""

import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lantm
from lantm.memory.weighting import FLOOR, softmax, strengthen, to_weights

pytestmark = pytest.mark.usefixtures("optimised_module")

SLOTS = 7
BOUND = 1e-12


def random_access(squared_distances, raw, strengths, valid):
    """RAM's weights, its inner products being minus the distances."""
    return to_weights(strengthen(softmax(-squared_distances, valid), strengths, valid))


WEIGHTINGS = {
    "inverse_square": lantm.InverseSquare(),
    "softmax": lantm.Softmax(),
    "ram": random_access,
}
COMPILED = {name: jax.jit(weighting) for name, weighting in WEIGHTINGS.items()}
EVERY = np.ones(SLOTS, bool)

over_weightings = pytest.mark.parametrize("name", WEIGHTINGS)


def weigh(name, distances, strengths, valid=EVERY, temperature=0.3):
    """The weights as NumPy numbers; `temperature` is raw, for the scheme that has one."""
    raw = jnp.full(getattr(WEIGHTINGS[name], "raw_size", 0), temperature)
    return np.asarray(COMPILED[name](*map(jnp.asarray, (distances, raw, strengths, valid))))


def numbers(low, high):
    return hnp.arrays(float, SLOTS, elements=st.floats(low, high))


distances, strengths = numbers(0, 1e4), numbers(0, 1)
some = hnp.arrays(bool, SLOTS).filter(np.any)
garbage = hnp.arrays(
    float, SLOTS, elements=st.sampled_from([-1e300, -1.0, 0.0, 1e300, np.inf, np.nan])
)


@over_weightings
@given(distances, strengths, some, st.permutations(range(SLOTS)))
def test_weights(name, distances, strengths, valid, order):
    weights = weigh(name, distances, strengths, valid)
    assert np.all(weights >= 0)
    assert abs(np.sum(weights) - 1) < BOUND
    assert np.all(weights[~valid] == 0)
    reordered = weigh(name, distances[order], strengths[order], valid[order])
    assert np.allclose(reordered, weights[order], rtol=BOUND, atol=0)


@over_weightings
@given(distances, strengths, some, garbage, garbage)
def test_empty_slots_have_no_say(name, distances, strengths, valid, nonsense, more):
    """Not even where an empty slot seems the nearest and strongest."""
    weights = weigh(name, distances, strengths, valid)
    filled = np.where(valid, distances, nonsense), np.where(valid, strengths, more)
    assert np.array_equal(weigh(name, *filled, valid), weights)


@over_weightings
@given(distances, numbers(0.01, 0.5))
def test_only_the_ratios_of_strengths_matter(name, distances, strengths):
    # The floor under every weight is all that can tell: it shifts each by at most this.
    shift = 2 * SLOTS * FLOOR / np.min(strengths)
    doubled = weigh(name, distances, 2 * strengths)
    assert np.allclose(doubled, weigh(name, distances, strengths), rtol=0, atol=shift)


@over_weightings
@given(st.floats(0, 1e4), numbers(0.01, 1))
def test_memories_at_one_distance_share_by_strength(name, distance, strengths):
    weights = weigh(name, np.full(SLOTS, distance), strengths)
    shift = 2 * SLOTS * FLOOR / np.min(strengths)
    assert np.allclose(weights, strengths / np.sum(strengths), rtol=0, atol=shift)


@over_weightings
@given(distances)
def test_without_strengths_all_memories_count_the_same(name, distances):
    assert np.allclose(weigh(name, distances, np.zeros(SLOTS)), 1 / SLOTS, rtol=BOUND)


@given(numbers(0.01, 100), numbers(0.1, 1), st.integers(0, SLOTS - 1))
def test_approached_memory_takes_all(distances, strengths, i):
    def others(squared_distance):
        distances[i] = squared_distance
        return 1 - weigh("inverse_square", distances, strengths)[i]

    shares = [others(squared_distance) for squared_distance in (1e-2, 1e-4, 1e-6, 1e-8, 0.0)]
    assert all(np.diff(shares) < 0)
    assert shares[-1] < 1e-5


@given(numbers(0.01, 100), numbers(0.1, 1), st.sets(st.integers(0, SLOTS - 1), min_size=2))
def test_head_on_several_keys(distances, strengths, here):
    """They share all of the weight, by strength."""
    here = sorted(here)
    distances[here] = 0.0
    weights = weigh("inverse_square", distances, strengths)[here]
    assert np.allclose(weights, strengths[here] / np.sum(strengths[here]), rtol=0, atol=1e-5)


@given(numbers(0.01, 100), numbers(0.1, 1))
def test_inverse_square_is_the_formula_of_the_paper(distances, strengths):
    expected = strengths / distances
    expected /= np.sum(expected)
    # Away from the keys softening and floor are all that differ, each at most this.
    shift = 1e-10 / 0.01 + 2 * SLOTS * FLOOR / 0.1
    weights = weigh("inverse_square", distances, strengths)
    assert np.allclose(weights, expected, rtol=0, atol=shift)


@given(numbers(0, 100), numbers(0.1, 1), st.floats(-5, 5))
def test_softmax_is_the_formula_of_the_paper(distances, strengths, raw):
    logits = -(distances - np.min(distances)) / np.log1p(np.exp(raw))
    expected = strengths * np.exp(logits)
    weights = weigh("softmax", distances, strengths, temperature=raw)
    shift = 2 * SLOTS * FLOOR / 0.1
    assert np.allclose(weights, expected / np.sum(expected), rtol=0, atol=shift)


@given(numbers(0, 100), numbers(0.1, 1))
def test_hot_softmax_sees_strengths_alone(distances, strengths):
    weights = weigh("softmax", distances, strengths, temperature=1e9)
    assert np.allclose(weights, strengths / np.sum(strengths), rtol=0, atol=1e-6)


@given(st.permutations([0.01 * i for i in range(SLOTS)]), numbers(0.1, 1), st.floats(-1e4, -20))
def test_cold_softmax_sees_the_nearest_alone(distances, strengths, raw):
    weights = weigh("softmax", np.array(distances), strengths, temperature=raw)
    assert np.allclose(weights, np.array(distances) == 0, rtol=0, atol=1e-6)
