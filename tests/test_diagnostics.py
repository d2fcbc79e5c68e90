"""Diagnostics of hand-made traces, whose data structure is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.inspection.diagnostics import collisions, diagnose, motion, steps

TIME = 7


def walk(step, start=(0.0, 0.0), gate=0.0):
    """A head that makes the same shift over and over."""
    actions = np.tile(np.array(step, float), (TIME, 1))
    keys = np.array(start) + np.cumsum(actions, axis=0)
    return lantm.HeadTrace(keys, np.full(TIME, gate), velocity=actions)


def trace(write, read, weights=None):
    """A machine's trace with these heads, one for each phase."""
    time = len(write.key)
    weights = (np.eye(time) if weights is None else weights)[:, None]
    hidden, strength = np.zeros((time, 2)), np.ones((time, 1))
    write, read = (jax.tree.map(lambda leaf: leaf[:, None], head) for head in (write, read))
    encode = lantm.Trace(hidden, write, write, weights, strength=strength)
    decode = lantm.Trace(hidden, read, read, weights, strength=strength)
    return lantm.MachineTrace(encode, decode, np.zeros((time, 3)))


@pytest.mark.parametrize(
    ("step", "heading", "structure"),
    [
        ((0.6, 0.8), 1, "tape, read forwards"),
        ((-0.6, -0.8), -1, "tape, read backwards"),
        ((0.8, -0.6), 0, "tape, read across its direction"),
    ],
)
def test_a_tape(step, heading, structure):
    found = diagnose(trace(walk((0.6, 0.8)), walk(step, start=(3, 5))))
    for part in (found.write, found.read):
        np.testing.assert_allclose(part, (1, 0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(found[2:], (heading, 0, 1), atol=1e-12)
    assert found.structure == structure


def test_random_access():
    found = diagnose(trace(walk((1, 0)), walk((1, 0), gate=0.3)))
    assert found.read.random_access == pytest.approx(0.3)
    assert found.structure == "tape, read by random access"
    assert diagnose(trace(walk((1, 0), gate=0.3), walk((1, 0)))).structure == (
        "no tape: written by random access"
    )


def test_a_jump_between_steps():
    """One step by random access, as a machine makes it to go back to the start of its tape."""
    jumping = walk((1, 0))
    jumping.gate[0] = 1
    jumping.velocity[0] = [-5, 3]
    np.testing.assert_allclose(motion(jumping), (1, 0, 1, 1 / 7), atol=1e-12)
    assert diagnose(trace(walk((1, 0)), jumping)).structure == "tape, read forwards"


def test_irregular_steps():
    turning = walk((1, 0))
    turning.velocity[::2] *= -1
    found = motion(turning)
    assert found.direction == pytest.approx(1 / 7), "four steps one way, three the other"
    assert found.spread == 0
    assert diagnose(trace(turning, turning)).structure == "no tape: written irregularly"
    turning.velocity[:] = [[2.0**i, 0.0] for i in range(TIME)]
    assert motion(turning).direction == pytest.approx(1)
    assert motion(turning).spread > 1


def test_rotations_about_one_axis():
    """The same rotation written in two ways is the same step."""
    axes = np.tile([0.0, 0.6, 0.8], (TIME, 1))
    angles = np.full(TIME, 0.3)
    axes[1::2] *= -1
    angles[1::2] *= -1
    action = lantm.Rotation(axes, np.stack([np.cos(angles), np.sin(angles)], axis=1))
    velocity = jax.vmap(lantm.Sphere().log)(jax.tree.map(jnp.asarray, action))
    keys = np.tile([1.0, 0.0, 0.0], (TIME, 1))
    head = lantm.HeadTrace(keys, np.zeros(TIME), action, velocity)
    np.testing.assert_allclose(motion(head), (0.3, 0, 1, 0), atol=1e-12)


def test_heads_without_actions():
    """RAM: the way between keys; RAM/Tape: the first of three gates is random access."""
    keys = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_array_equal(steps(lantm.HeadTrace(keys)), [[1], [2]])
    np.testing.assert_array_equal(steps(lantm.HeadTrace(keys[:1])), [[0]])
    assert motion(lantm.HeadTrace(keys)).random_access is None
    gates = np.tile([0.2, 0.5, 0.3], (3, 1))
    assert motion(lantm.HeadTrace(keys, gates)).random_access == pytest.approx(0.2)


def test_a_head_at_rest():
    found = motion(walk((0, 0)))
    assert found[:3] == (0, 0, 1)
    assert diagnose(trace(walk((0, 0)), walk((1, 0)))).heading == 0


@pytest.mark.parametrize(
    ("places", "strengths", "share"),
    [
        ([0, 1, 2, 3], [1, 1, 1, 1], 0),
        ([0, 1, 2, 1.05], [1, 1, 1, 1], 0.5),
        ([0, 1, 2, 1.05], [1, 1, 1, 0.01], 0),
        ([4, 4, 4], [1, 1, 1], 1),
        ([4], [1], 0),
    ],
    ids=["apart", "a pair", "one too weak to count", "all in one place", "alone"],
)
def test_collisions(places, strengths, share):
    assert collisions(np.array(places, float)[:, None], np.array(strengths)) == share


def test_sharpness():
    blurred = np.full((TIME, TIME), 1 / TIME)
    assert diagnose(trace(walk((1, 0)), walk((1, 0)), blurred)).sharpness == pytest.approx(1 / 7)


def test_no_memory():
    part = lantm.Trace(np.zeros((TIME, 2)))
    assert diagnose(lantm.MachineTrace(part, part, np.zeros((TIME, 3)))) is None


def test_the_copy_machine_has_a_tape():
    run = lantm.Run.open("zoo:copy")
    inputs, answers = run.task.sample(np.random.default_rng(1), 17, 1)
    jax.config.update("jax_enable_x64", False)
    try:
        found = run.machine().trace(jnp.asarray(inputs), answers.shape[1])
    finally:
        jax.config.update("jax_enable_x64", True)
    found = diagnose(jax.tree.map(lambda leaf: np.asarray(leaf[0]), found))
    assert found.structure == "tape, read forwards"
    assert found.write.length == pytest.approx(1, abs=0.01)
    assert found.sharpness > 0.9
