"""Whatever cannot be right is refused in one sentence that says what is allowed."""

import errno
import os
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import lantm
from lantm import ModelConfig, Plane, Sphere, Vocabulary
from lantm.parts import RandomAccess
from spaces import BATCH, INPUTS, OUTPUTS, TIME, layer, machine

KEY = jax.random.key(0)


@pytest.fixture
def unchecked():
    """Without the type checks of the tests, which users do not have and which would come first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def head(space):
    return lantm.Head(space, key=KEY)


def cell(name):
    return layer(name).cell


WHOLE = "must be a whole number of at least 1, got"
LIE = "is only for lantm, lantm_s, slantm, slantm_s; got"
RAM = "is only for ram, ram_tape; got"
NAMES = ", ".join(lantm.MODELS)

BAD_ARGUMENTS = {
    **{f"Plane({n})": (lambda n=n: Plane(n), f"key_size {WHOLE} {n}") for n in (0, -1, 2.5, True)},
    "Vocabulary(0)": (lambda: Vocabulary(0), f"symbols {WHOLE} 0"),
    **{
        f"{name}={size}": (
            lambda o=(name, size): ModelConfig(**dict([o])),
            f"{name} {WHOLE} {size}",
        )
        for name in ("layers", "hidden_size", "embedding_size", "memory_width")
        for size in (0, -3, 2.5)
    },
    "ram's key_size": (lambda: ModelConfig("ram", key_size=0), f"key_size {WHOLE} 0"),
    "access's key_size": (lambda: RandomAccess(-2, key=KEY), f"key_size {WHOLE} -2"),
    "model": (
        lambda: ModelConfig(model="lantn"),
        f"model must be one of {NAMES}; got 'lantn' (did you mean 'lantm'?)",
    ),
    "space": (
        lambda: ModelConfig(space="sphare"),
        f"space must be one of {', '.join(lantm.SPACES)}; got 'sphare' (did you mean 'sphere'?)",
    ),
    "slantm's key_size": (
        lambda: ModelConfig("slantm", key_size=3),
        f"key_size {RAM} 3 for slantm",
    ),
    "lantm's sharpen": (lambda: ModelConfig(sharpen=True), f"sharpen {RAM} True for lantm"),
    "ram's space": (
        lambda: ModelConfig("ram", space="plane"),
        f"space {LIE} 'plane' for ram",
    ),
    "ram's interpolation": (
        lambda: ModelConfig("ram", action_interpolation=True),
        f"action_interpolation {LIE} True for ram",
    ),
    "a head of another space": (
        lambda: lantm.LieAccess(Plane(), [head(Plane())], [head(Sphere())]),
        "writes must have heads of this space, got one of another",
    ),
    "no read head": (
        lambda: lantm.LieAccess(Plane(), [], [head(Plane())]),
        "reads must have at least one head",
    ),
    "controller": (
        lambda: ModelConfig(controller="grru"),
        "controller must be one of lstm, gru; got 'grru' (did you mean 'gru'?)",
    ),
    "lstm's heads": (
        lambda: ModelConfig("lstm", read_heads=2),
        "read_heads is only for lantm, lantm_s, slantm, slantm_s, ntm, dnc; got 2 for lstm",
    ),
    "input size": (lambda: lantm.LSTMCell(0, OUTPUTS, key=KEY), f"input_size {WHOLE} 0"),
    "output size": (lambda: lantm.LSTMCell(INPUTS, 0, key=KEY), f"output_size {WHOLE} 0"),
    "width": (
        lambda: lantm.MemoryCell(INPUTS, OUTPUTS, cell("ram").access, width=-1, key=KEY),
        f"width {WHOLE} -1",
    ),
    "another vocabulary": (
        lambda: lantm.Machine(Vocabulary(4), cell("lstm"), key=KEY),
        f"cell.output_size must be 7, the vocabulary's size; got {OUTPUTS}",
    ),
    "no steps": (lambda: layer("ram").init_state(BATCH, 0), f"steps {WHOLE} 0"),
    "no batch": (lambda: layer("ram").init_state(0, TIME), f"batch {WHOLE} 0"),
    "no capacity": (lambda: cell("ram").init_state(0), f"capacity {WHOLE} 0"),
    "less than the initial memories": (
        lambda: lantm.init_states(cell("ram_tape"), BATCH, 1),
        "capacity must be at least 2, the initial memories; got 1",
    ),
    "no answer": (
        lambda: machine("lstm").decode(machine("lstm").init_state(BATCH, TIME), 0),
        f"steps {WHOLE} 0",
    ),
}


def test_whole_numbers_of_numpy_are_sizes(unchecked):
    assert Vocabulary(np.int64(5)).size == 8


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_arguments(name, unchecked):
    call, message = BAD_ARGUMENTS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()


def run(lengths=None, *, inputs=INPUTS, steps=TIME, transform=lambda f: f, model="lstm"):
    """A layer on a batch with something wrong about it."""
    chosen = layer(model)
    state = chosen.init_state(BATCH, steps)
    lengths = None if lengths is None else jnp.asarray(lengths)
    return transform(chosen)(jnp.ones((BATCH, TIME, inputs)), state, lengths)


def test_features(unchecked):
    message = f"inputs must have shape (batch, time, {INPUTS}), got ({BATCH}, {TIME}, 2)"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(inputs=2)


@pytest.mark.parametrize("shape", [(), (BATCH + 1,), (BATCH, 1)])
def test_shape_of_lengths(shape, unchecked):
    message = f"lengths must have shape ({BATCH}), got {shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(jnp.ones(shape, int))


def test_shape_of_tokens(unchecked):
    message = f"tokens must have shape (batch, time), got ({TIME},)"
    with pytest.raises(ValueError, match=re.escape(message)):
        machine("lstm").encode(jnp.zeros(TIME, int))


REFUSED = (ValueError, eqx.EquinoxRuntimeError)
"""The second where a value is known only once the compiled program runs."""
over_transforms = pytest.mark.parametrize(
    "transform", [lambda f: f, eqx.filter_jit], ids=["", "jit"]
)


@over_transforms
@pytest.mark.parametrize("wrong", [-1, TIME + 1])
def test_lengths_outside_the_time(wrong, transform):
    with pytest.raises(REFUSED, match=f"lengths must be between 0 and {TIME}"):
        run([wrong, 1, 2, 3, 4], transform=transform)


@pytest.mark.parametrize("wrong", [-1, TIME + 1])
def test_lengths_outside_the_tokens(wrong):
    tokens = jnp.zeros((BATCH, TIME), int)
    with pytest.raises(ValueError, match=f"^lengths must be between 0 and {TIME}"):
        machine("lstm")(tokens, 1, jnp.array([wrong, 1, 2, 3, 4]))


@over_transforms
@pytest.mark.parametrize("lengths", [None, [1, 2, 3, 4, 0]])
def test_more_steps_than_the_buffer_has_room_for(lengths, transform):
    with pytest.raises(REFUSED, match="lengths must fit the state's buffer of memories"):
        run(lengths, steps=3, transform=transform, model="lantm")


def test_a_full_memory_is_named_first():
    with pytest.raises(ValueError, match=r"^lengths must fit the state's buffer of memories"):
        run(steps=3, model="lantm")


def state_of(model, batch=BATCH):
    return layer(model).init_state(batch, TIME)


ONES = jnp.ones((BATCH, TIME, INPUTS))
BAD_CALLS = {
    "no state": (lambda: layer("lantm")(ONES, None), "state must be given: init_state makes one"),
    "another batch": (
        lambda: layer("lantm")(ONES, state_of("lantm", BATCH + 1)),
        f"state must be of {BATCH} sequences, got one of {BATCH + 1}",
    ),
    "another cell": (
        lambda: layer("lantm")(ONES, state_of("lstm")),
        "state must be of this cell, got one of another",
    ),
    "other sizes": (
        lambda: layer("lantm")(ONES, state_of("slantm")),
        "state must be of this cell, got one of other sizes",
    ),
    "no steps": (
        lambda: layer("lantm")(ONES[:, :0], state_of("lantm")),
        "time must be a whole number of at least 1, got 0",
    ),
    "lengths in a list": (
        lambda: layer("lantm")(ONES, state_of("lantm"), [1] * BATCH),
        "lengths must be an array of whole numbers, got list",
    ),
    "lengths with a point": (
        lambda: layer("lantm")(ONES, state_of("lantm"), jnp.ones(BATCH)),
        "lengths must be an array of whole numbers, got one of float64",
    ),
    "two precisions": (
        lambda: layer("lantm")(ONES.astype("float32"), state_of("lantm")),
        "inputs must be float64, as the parameters are; got float32",
    ),
    "a token too large": (
        lambda: machine("lantm").encode(jnp.array([[0, OUTPUTS]])),
        f"tokens must be from 0 to {OUTPUTS - 1}, got {OUTPUTS}",
    ),
    "a negative token": (
        lambda: machine("lantm").encode(jnp.array([[0, -1]])),
        f"tokens must be from 0 to {OUTPUTS - 1}, got -1",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_calls(name, unchecked):
    call, message = BAD_CALLS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


class Long(Plane):
    def project(self, raw):
        return jnp.append(raw, 0.0)


class Flat(Plane):
    def squared_distance(self, key, keys):
        return jnp.sum((keys - key[None]) ** 2)


BAD_SPACES = {
    "project": (Long(), "Long.project must return shape (2,), got shape (3,)"),
    "distance": (Flat(), "Flat.squared_distance must return shape (5,), got shape ()"),
}


@pytest.mark.parametrize("name", BAD_SPACES)
def test_a_key_space_that_returns_the_wrong_shape_is_told_which(name, unchecked):
    space, message = BAD_SPACES[name]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        lantm.LieAccess(space, [head(space)], [head(space)])


def test_writing_into_a_full_memory():
    small, x = cell("lantm"), jnp.ones(INPUTS)
    state, _, _ = small.step(small.init_state(2), x)
    with pytest.raises(ValueError, match=r"^capacity must be above 2: the memory is full$"):
        small.step(state, x)
    small.step(state, x, write=False)


TREE = {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.array(True)}


@pytest.fixture
def saved(tmp_path):
    """A file with a small tree in it."""
    lantm.save_tree(tmp_path / "tree", TREE)
    return tmp_path / "tree"


def test_every_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for length in range(len(content)):
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match="is damaged"):
            lantm.load_tree(saved, TREE)


def test_a_flipped_bit_anywhere_is_refused(saved):
    content = saved.read_bytes()
    for i in range(len(content)):
        damaged = bytearray(content)
        damaged[i] ^= 1 << i % 8
        saved.write_bytes(damaged)
        with pytest.raises(ValueError, match=re.escape(str(saved))):
            lantm.load_tree(saved, TREE)


OTHERS = {
    "names": ({"a": TREE["a"], "c": TREE["b"]}, "b is only on one side (2 such)"),
    "shape": (TREE | {"a": jnp.zeros((3, 2))}, "a is float64[2, 3], expected float64[3, 2]"),
    "type": (TREE | {"b": jnp.array(1.0)}, "b is bool[], expected float64[]"),
    "precision": (
        TREE | {"a": jnp.zeros((2, 3), "float32")},
        "a is float64[2, 3], expected float32[2, 3]",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_file_of_something_else(name, saved):
    other, message = OTHERS[name]
    with pytest.raises(ValueError, match=re.escape(f"{saved} does not fit: {message}")):
        lantm.load_tree(saved, other)


def test_file_of_another_model(tmp_path):
    lantm.save_tree(tmp_path / "model", machine("lantm"))
    with pytest.raises(ValueError, match=r"does not fit: cell.* is float64.*, expected float64"):
        lantm.load_tree(tmp_path / "model", machine("slantm"))
    with pytest.raises(ValueError, match=r"does not fit: cell.* is only on one side"):
        lantm.load_tree(tmp_path / "model", machine("lstm"))


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        lantm.load_tree(tmp_path / "nowhere", {})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        lantm.save_tree(tmp_path / "nowhere" / "tree", {"a": jnp.zeros(1)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file_and_no_litter(failing, saved, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left on device"):
        lantm.save_tree(saved, {"a": jnp.zeros(9)})
    assert list(saved.parent.iterdir()) == [saved]
    assert eqx.tree_equal(lantm.load_tree(saved, TREE), TREE)
