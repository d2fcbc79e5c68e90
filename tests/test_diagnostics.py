"""Diagnostics of hand-made traces, whose data structure is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.inspection.diagnostics import collisions, diagnose, motion, reading_shares, steps
from lantm.inspection.picture import trace_machine
from lantm.inspection.structures import closes
from lantm.spaces import straight_distances

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
        np.testing.assert_allclose(part, (1, 0, 1, 0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(found[2:5], (heading, 0, 1), atol=1e-12)
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
    np.testing.assert_allclose(motion(jumping), (1, 0, 1, 1 / 7, 1, 0), atol=1e-12)
    assert diagnose(trace(walk((1, 0)), jumping)).structure == "tape, read forwards"


def test_irregular_steps():
    turning = walk((1, 0))
    turning.velocity[::2] *= -1
    found = motion(turning)
    assert found.direction == pytest.approx(1 / 7), "four steps one way, three the other"
    assert found.spread == 0
    assert diagnose(trace(turning, turning)).structure == "zigzag of pairs, read irregularly"
    turning.velocity[:] = np.random.default_rng(1).normal(size=(TIME, 2))
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
    np.testing.assert_allclose(motion(head), (0.3, 0, 1, 0, 1, 0), atol=1e-12)


def test_heads_without_actions():
    """RAM: the way between keys; RAM/Tape: the first of three gates is random access."""
    keys = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_array_equal(steps(lantm.HeadTrace(keys)), [[1], [2]])
    np.testing.assert_array_equal(steps(lantm.HeadTrace(keys[:1])), [[0]])
    assert motion(lantm.HeadTrace(keys)).random_access is None
    gates = np.tile([0.2, 0.5, 0.3], (3, 1))
    assert motion(lantm.HeadTrace(keys, gates)).random_access == pytest.approx(0.2)


def test_two_tapes_written_in_turns():
    """One side of a zigzag is read after the other."""
    zigzag = walk((1, 0))
    zigzag.velocity[1::2] = [0, 1]
    sides = np.eye(TIME)[[0, 2, 4, 6, 1, 3, 5]]
    assert diagnose(trace(zigzag, walk((1, 1)), sides)).structure == (
        "two tapes, written in turns, read forwards"
    )


@pytest.mark.parametrize(("share", "closed"), [(1.0, True), (0.5, False)])
def test_a_loop_comes_back(share, closed):
    angles = share * 2 * np.pi * np.arange(12) / 12
    places = np.column_stack([np.cos(angles), np.sin(angles), angles * 0])
    assert closes(straight_distances(places)) is closed


def test_there_and_back_is_no_loop():
    along = np.array([0.0, 1, 2, 3, 3.5, 2.5, 1.5, 0.5])
    assert not closes(straight_distances(np.column_stack([along, along])))


def test_priority_order():
    """Memories that were written here and there, and are read one beside the other."""
    order = [3, 0, 6, 1, 5, 2, 4]
    keys = np.column_stack([np.argsort(order), np.zeros(TIME)]).astype(float)
    jumps = lantm.HeadTrace(keys, np.ones(TIME), velocity=np.zeros((TIME, 2)))
    assert diagnose(trace(jumps, walk((1, 0)), np.eye(TIME)[order])).structure == (
        "priority order: written into place, read in a row"
    )


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
    distances = straight_distances(np.array(places, float)[:, None])
    assert collisions(distances, np.array(strengths)) == share


def test_distances_are_those_of_the_space():
    """Keys of the hyperbolic plane with equal numbers between them are not equally far apart."""
    config = lantm.ModelConfig("lantm", space="hyperbolic")
    machine = lantm.build_machine(config, lantm.Vocabulary(4), key=jax.random.key(0))
    up = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 3.0]])
    found = machine.distances(up)
    assert found[0, 1] == pytest.approx(1)
    assert found[0, 2] == pytest.approx(np.arccosh(1.5))
    assert np.allclose(found, found.T)
    assert np.all(np.diagonal(found) == 0)


def both(one, other, axis=1):
    """The traces of two machines as one with the heads of both."""
    return jax.tree.map(lambda a, b: np.concatenate([a, b], axis), one, other)


def test_the_head_that_reads_most_is_described():
    """The first one wanders about and reads the memory of the beginning."""
    wild = walk((1, 0))
    wild.velocity[:] = np.random.default_rng(1).normal(size=(TIME, 2))
    begin, tape = np.eye(TIME + 1)[[0] * TIME], np.eye(TIME + 1)[1:]
    idle, busy = (
        trace(walk((0.6, 0.8)), head, weights)
        for head, weights in ((wild, begin), (walk((0.6, 0.8)), tape))
    )
    several = busy._replace(
        decode=busy.decode._replace(
            read=both(idle.decode.read, busy.decode.read),
            weights=both(idle.decode.weights, busy.decode.weights),
        )
    )
    np.testing.assert_allclose(reading_shares(several), [0, 1])
    found = diagnose(several)
    assert (found.writer, found.reader) == (0, 1)
    assert found._replace(reader=0) == diagnose(busy)


def test_the_write_head_that_is_read_is_described():
    """Two write heads in turns, of which the second makes the tape."""
    wild = walk((1, 0), start=(9, 9))
    wild.velocity[:] = np.random.default_rng(1).normal(size=(TIME, 2))
    onward = walk((0.6, 0.8))
    second = np.eye(2 * TIME)[1::2]
    one, other = (trace(head, onward, second) for head in (wild, onward))
    encode = other.encode._replace(
        write=both(one.encode.write, other.encode.write),
        strength=both(one.encode.strength, other.encode.strength),
    )
    found = diagnose(other._replace(encode=encode))
    assert (found.writer, found.reader) == (1, 0)
    assert found.write == motion(onward)
    assert found.structure == "tape, read forwards"


def test_of_heads_that_read_alike_the_first():
    """But for rounding, as those of memories without keys do."""
    weights = np.full((TIME, 2, 3), 1 / 3) + np.array([[[-1e-9], [1e-9]]])
    decode = lantm.Trace(np.zeros((TIME, 2)), weights=weights)
    shares = reading_shares(lantm.MachineTrace(decode, decode, np.zeros((TIME, 3))))
    assert shares.tolist() == [1, 1]


def test_sharpness():
    blurred = np.full((TIME, TIME), 1 / TIME)
    assert diagnose(trace(walk((1, 0)), walk((1, 0)), blurred)).sharpness == pytest.approx(1 / 7)


def test_no_memory():
    part = lantm.Trace(np.zeros((TIME, 2)))
    assert diagnose(lantm.MachineTrace(part, part, np.zeros((TIME, 3)))) is None


@pytest.mark.parametrize(
    ("task", "size", "structure"),
    [
        ("copy", 17, "tape, read forwards"),
        ("reverse", 17, "tape, read backwards"),
        ("bigram_flip", 9, "tape, read forwards"),
        ("double", 17, "tape, read forwards"),
        ("interleaved_add", 16, "tape, read forwards"),
        ("odd_first", 12, "two tapes, written in turns, read forwards"),
        ("priority_sort", 6, "priority order: written into place, read in a row"),
        ("repeat_copy", 3, "loop, read 3 times around, by random access"),
    ],
)
def test_what_the_zoo_has_built(task, size, structure):
    assert diagnose(zoo_trace(task, size)).structure == structure


def zoo_trace(task, size):
    """Of a ready-trained machine, at the problem that the pictures show."""
    run = lantm.Run.open(f"zoo:plain_{task}")
    inputs, answers = run.task.sample(np.random.default_rng(1), size, 1)
    with jax.enable_x64(False):
        found = trace_machine(run.machine(), jnp.asarray(inputs), answers.shape[1])
    assert (np.argmax(found.logits, axis=-1) == answers).all()
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), found)


def test_the_tape_of_the_copy_machine_is_even():
    found = diagnose(zoo_trace("copy", 17))
    assert found.write.length == pytest.approx(1, abs=0.01)
    assert found.sharpness > 0.9


def test_odd_first_finds_its_second_half_from_afar():
    """What the page of figures says of its picture."""
    found = zoo_trace("odd_first", 12)
    strengths = found.encode.strength[:, 0]
    assert np.argmax(strengths) == 2, "the first symbol of the second half"
    assert strengths[2] > 0.85
    assert np.delete(strengths, 2).max() < 0.21
    assert np.argmax(found.decode.weights[12, 0]) == 3
    away = np.linalg.norm(found.decode.read.key[12, 0] - found.encode.write.key[:, 0], axis=1)
    assert away.min() > 3
    assert np.min(found.decode.read.gate[12:14, 0]) > 0.95


def test_repeat_copy_learned_places_and_not_a_step():
    """What README, the walkthrough and the page of figures say of their pictures."""
    found = zoo_trace("repeat_copy", 5)
    places = found.encode.write.key[-20:, 0]
    degrees = np.degrees(np.arccos(np.sum(places * np.roll(places, -1, axis=0), axis=1)))
    assert degrees[-1] == pytest.approx(27, abs=1)
    assert (degrees[:-1].min(), degrees[:-1].max()) == pytest.approx((7, 40), abs=1)
    gates = found.decode.read.gate
    assert (gates.min(), gates.max()) == pytest.approx((0.18, 0.89), abs=0.01)
    order = np.argmax(found.decode.weights[:-1, 0], axis=1).reshape(5, 20)
    assert (order == order[0]).all()
    assert (np.diff(order[0]) == 1).all()
