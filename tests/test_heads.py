"""What heads can do that those of the paper cannot: shut their gates, go home, feel."""

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


# ---- feeling


def build(**settings):
    return lantm.build_cell(config("lantm", **settings), INPUTS, 3, key=jax.random.key(1))


def at(*places):
    """Read heads at these places."""
    reads = tuple(HeadState(jnp.asarray(place, float), None) for place in places)
    return LieMovement(LieHeads(reads, ()), (), None)


def holding(keys, valid):
    keys = jnp.asarray(keys, float)
    return Slots(keys, jnp.ones(len(keys)), jnp.arange(len(keys)) < valid)


def test_the_end_of_a_tape_is_felt():
    """A straight tape of five memories, and slots that are not yet written."""
    access = build(read_heads=3, feeling=True).access
    tape = holding([[i, 0.0] for i in range(7)], 5)
    felt = access.feel(at([2, 0], [5, 0], [0, 0.5]), tape)
    assert np.allclose(felt, [0, 1 / (1 + 0.25), 0.5])
    assert felt[1] > 0.5


def test_only_the_heads_own_memory_is_felt():
    access = build(memories=2, feeling=True).access
    both = holding([[i // 2, 3.0 * (i % 2)] for i in range(6)], 6)
    assert np.allclose(access.feel(at([1, 0], [1, 0]), both), [0, 9 / 9.25])
    assert np.allclose(access.feel(at([1, 3], [1, 3]), both), [9 / 9.25, 0])


def test_no_gradient_goes_through_what_is_felt():
    """Though what is felt does depend on the command."""
    access = build(feeling=True).access
    tape, heads = holding([[i, 0.0] for i in range(3)], 3), access.init_heads()
    command = jnp.linspace(-1, 1, access.command_size)

    @jax.value_and_grad
    def felt(command):
        return access(command, heads, tape).felt[0]

    @jax.value_and_grad
    def unstopped(command):
        return access.feel(access.move(command, heads)[0], tape)[0]

    (value, gradient), (same, other) = jax.jit(lambda c: (felt(c), unstopped(c)))(command)
    assert np.isclose(value, same)
    assert np.all(gradient == 0)
    assert np.any(other != 0)


@pytest.mark.parametrize("output", ["linear", "nonlinear"])
def test_the_output_goes_by_what_is_felt(output):
    """A cell whose access feels, the same without a sense, and one that was never asked to."""
    feeling, numb = (build(feeling=feels, output=output) for feels in (True, False))
    x, say = jnp.ones(INPUTS), eqx.filter_jit(lambda cell, x: cell.step(cell.init_state(2), x)[1])

    def weights(cell):
        if output == "linear":
            return [cell.output.readout.weight]
        return [cell.output.linear.readout.weight, cell.output.inner.weight]

    with_zeros = [weight.at[:, -1].set(0) for weight in weights(feeling)]
    ignoring = eqx.tree_at(weights, feeling, with_zeros)
    numb = eqx.tree_at(lambda cell: cell.output, numb, feeling.output)
    numb = eqx.tree_at(weights, numb, [weight[:, :-1] for weight in weights(feeling)])
    assert np.allclose(say(ignoring, x), say(numb, x), atol=1e-14)
    assert not np.any(np.isclose(say(feeling, x), say(numb, x), atol=1e-6))
