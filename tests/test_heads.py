"""What heads can do that those of the paper cannot: shut their gates, go home, read blanks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.memory import Slots
from lantm.parts import GATES, HeadState, LieHeads
from lantm.parts.lie import LieMovement, decided
from spaces import INPUTS, config

OPEN, SHUT = 9.0, -9.0
"""For a gate that is cut off."""


def test_a_cut_off_gate_shuts_and_opens_for_good_and_can_still_learn():
    raw = np.array([SHUT, -1.0, 1.0, OPEN])
    gates, slopes = jax.vmap(jax.value_and_grad(GATES["cut_off"](0.0)))(jnp.asarray(raw))
    sigmoid = 1 / (1 + np.exp(-raw))
    assert np.allclose(gates, [0, 1.6 * sigmoid[1] - 0.3, 1.6 * sigmoid[2] - 0.3, 1], atol=1e-15)
    assert np.allclose(slopes, 1.6 * sigmoid * (1 - sigmoid))


# ---- homing


@pytest.mark.parametrize("space", [lantm.Plane(), lantm.Sphere()], ids=["plane", "sphere"])
def test_random_access_leads_a_homing_head_to_where_it_began(space):
    rng, options = (
        np.random.default_rng(0),
        {"gate": GATES["cut_off"](0.0), "key": jax.random.key(3)},
    )
    homing, other = lantm.Head(space, homing=True, **options), lantm.Head(space, **options)
    assert homing.command_sizes == (0, 1, space.action_size, 0)
    places, candidates = (jnp.asarray(rng.normal(size=(5, space.key_size))) for _ in range(2))
    raws = jnp.asarray(rng.normal(size=(5, space.action_size)))

    @jax.vmap
    def moves(raw, candidate, place):
        state = HeadState(space.project(place), None)
        action = space.action(homing.reach(raw))
        opened, closed = (jnp.append(jnp.array([gate]), raw) for gate in (OPEN, SHUT))
        back, trace = homing.move(space, opened, state)
        on, _ = homing.move(space, closed, state)
        walk, _ = other.move(space, jnp.append(candidate, closed), state)
        home = space.act(action, space.project(homing.initial_key))
        jumped = homing.ways(space, closed, trace, state.key).jumped
        return {"back": back.key, "on": on.key, "walk": walk.key, "home": home, "jumped": jumped}

    keys = moves(raws, candidates, places)
    assert np.allclose(keys["back"], keys["home"], atol=1e-14)
    assert np.allclose(keys["jumped"], keys["home"], atol=1e-14)
    assert np.allclose(keys["on"], keys["walk"], atol=1e-14)
    assert not np.any(np.isclose(keys["on"], keys["home"], atol=1e-3).all(axis=1))


def test_a_gate_that_leaks_does_not_pull_a_homing_head():
    gates = jnp.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
    shares, slopes = jax.vmap(jax.value_and_grad(decided))(gates)
    assert np.allclose(shares, [0, 0, 0, 0.5, 1, 1])
    assert np.allclose(slopes, 1)


def test_all_heads_of_a_homing_machine_do():
    sizes = [
        head.command_sizes[0]
        for homing in (True, False)
        for head in build(read_heads=2, homing=homing).access.heads
    ]
    assert sizes == [0, 0, 0, 2, 2, 2]


# ---- blanks


def build(**settings):
    return lantm.build_cell(config("lantm", **settings), INPUTS, 3, key=jax.random.key(1))


SHARP = {"weighting": "inverse_power", "blank": True}
"""What the recipe has."""


def at(access, *places):
    """Read heads at these places, with weights that are sharp."""
    reads = tuple(HeadState(jnp.asarray(place, float), None) for place in places)
    raw = tuple(jnp.full(access.weighting.raw_size, 3.0) for _ in reads)
    return LieMovement(LieHeads(reads, ()), raw, None)


def holding(keys, valid):
    keys = jnp.asarray(keys, float)
    return Slots(keys, jnp.ones(len(keys)), jnp.arange(len(keys)) < valid)


FAR_KEY = [40.0, -30.0]
"""Of an initial memory: where it is should not matter if it is a blank."""
TAPE = [FAR_KEY, *([i, 0.0] for i in range(7))]
"""A straight tape behind an initial memory."""


def weights_at(access, slots, *places):
    return access.normalise(access.weigh(at(access, *places), slots))


def test_off_the_tape_the_blank_is_read_and_on_it_the_tape():
    """A tape of five memories, and slots that are not yet written."""
    access = build(read_heads=3, **SHARP).access
    found = weights_at(access, holding(TAPE, 6), [2, 0], [5, 0], [2, 3])
    on, beyond, beside = found
    assert np.allclose(np.sum(found, axis=1), 1)
    assert on[0] < 1e-3
    assert on[3] > 0.999
    assert beyond[0] > 0.99, "a step beyond the end"
    assert beside[0] > 0.99
    assert np.all(found[:, 6:] == 0)


def test_without_a_blank_the_nearest_memory_is_read_wherever_a_head_is():
    access = build(**SHARP | {"blank": False}).access
    (beyond,) = weights_at(access, holding(TAPE, 6), [5, 0])
    assert beyond[5] > 0.9
    assert beyond[0] < 1e-3


@pytest.mark.parametrize("weighting", lantm.WEIGHTINGS)
def test_the_blank_is_equally_far_from_every_place(weighting):
    """As a memory at half a step from the head would be, wherever its key is."""
    access = build(weighting=weighting, blank=True).access
    without = build(weighting=weighting).access
    places = [[0.0, 0.0], [2.3, 1.0], [-50.0, 7.0]]
    for place in places:
        (own,) = weights_at(access, holding(TAPE, 6), place)
        near = holding([[place[0], place[1] + 0.5], *TAPE[1:]], 6)
        (expected,) = weights_at(without, near, place)
        assert np.allclose(own, expected, rtol=1e-9)


def test_the_distance_of_the_blank_is_learned():
    """Off the tape its weight falls with its distance, and its own key has no gradient."""
    access = build(**SHARP).access
    assert np.isclose(jnp.exp(access.blank), 0.25)

    @eqx.filter_value_and_grad
    def weight(given):
        access, keys = given
        slots = Slots(keys, jnp.ones(len(keys)), jnp.arange(len(keys)) < 6)
        return weights_at(access, slots, [4.6, 0.0])[0, 0]

    value, (by_access, by_keys) = eqx.filter_jit(weight)((access, jnp.asarray(TAPE)))
    assert 0.05 < value < 0.95
    assert by_access.blank < -0.01
    assert np.all(by_keys[0] == 0)
    assert np.any(by_keys[5] != 0)


def test_each_memory_has_its_own_blank():
    """Two memories: slots in turn, first the two blanks; the tape of the second lies elsewhere."""
    access = build(memories=2, **SHARP).access
    keys = [FAR_KEY, FAR_KEY, *([i // 2, 9.0 * (i % 2)] for i in range(6))]
    own, other = weights_at(access, holding(keys, 8), [1, 0], [1, 0])
    assert own[4] > 0.999
    assert np.all(own[1::2] == 0)
    assert other[1] > 0.99
    assert np.all(other[::2] == 0)


def settled(places, slots, **settings):
    """Where anchored heads at these places are after a reading."""
    access = build(read_heads=len(places), anchored=True, **SHARP | settings).access
    movement = at(access, *places)
    weights = access.normalise(access.weigh(movement, slots))
    return [state.key for state in access.settle(movement, weights, slots).reads]


def test_an_anchored_head_is_not_pulled_by_the_blank():
    """One far off the tape stays where it is; one beside a key goes half of the way to it."""
    slots = holding(TAPE, 6)
    off, beside = settled([[20.0, 50.0], [2.1, 0.0]], slots)
    assert np.allclose(off, [20.0, 50.0], atol=1e-3)
    assert np.allclose(beside, [2.05, 0.0], atol=1e-3)
    (pulled,) = settled([[20.0, 50.0]], slots, blank=False)
    assert np.linalg.norm(pulled - jnp.array([20.0, 50.0])) > 10


def test_between_tape_and_blank_only_the_share_of_the_tape_pulls():
    """By hand: of cubed weights, as much as is not the blank's."""
    place = np.array([4.5, 0.3])
    access = build(anchored=True, **SHARP).access
    (weights,) = np.asarray(weights_at(access, holding(TAPE, 6), place))
    assert 0.05 < weights[0] < 0.95
    cubes = weights**3 / np.sum(weights**3)
    goal = cubes[0] * place + cubes[1:] @ np.array(TAPE)[1:]
    (found,) = settled([place], holding(TAPE, 6))
    assert np.allclose(found, (place + goal) / 2, atol=1e-6)


def test_a_machine_reads_its_blank_where_nothing_was_written():
    """The value that is read there is that of the initial memory."""
    cell = build(**SHARP, gate="cut_off", read_gate_bias=SHUT, initial_strength_bias=0.0)
    state, step = cell.init_state(4), eqx.filter_jit(lambda cell, *given: cell.step(*given))
    far = HeadState(jnp.array([70.0, 70.0]), None)
    state = state._replace(heads=state.heads._replace(reads=(far,)))
    for x in np.random.default_rng(0).normal(size=(3, INPUTS)):
        state, _, trace = step(cell, state, jnp.asarray(x))
    assert trace.weights[0, 0] > 0.99
    assert np.allclose(trace.reading[0], state.memory.values[0], atol=0.02)
