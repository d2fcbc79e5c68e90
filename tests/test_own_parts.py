"""Parts that users write: the fast loop serves them, or makes way; traces tell the same."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.inspection.explorer import write_explorer
from lantm.inspection.figures import draw
from lantm.machines import lstm_cell, memory_cell
from lantm.machines.cell import states_for
from spaces import BATCH, HIDDEN, INPUTS, OUTPUTS, TIME, WIDTH

pytest_plugins = ["tiny"]

SMALL = {"hidden_size": HIDDEN, "memory_width": WIDTH}
INPUT = jnp.asarray(np.random.default_rng(0).normal(size=(BATCH, TIME, INPUTS)))
LENGTHS = jnp.array([TIME, 3, 0, 1, 6])
ANSWERS = jnp.array([2, TIME, 4, 0, 1])


def cell(**settings):
    return lantm.build_cell(
        lantm.ModelConfig(**SMALL | settings), INPUTS, OUTPUTS, key=jax.random.key(1)
    )


def with_access(access, **settings):
    return lantm.MemoryCell(
        INPUTS, OUTPUTS, access, hidden_size=HIDDEN, width=WIDTH, key=jax.random.key(1), **settings
    )


def heads(space, many=1):
    return [lantm.Head(space, key=jax.random.key(i)) for i in range(many)]


def both_phases(unroll, cell, lengths=LENGTHS, answers=ANSWERS, room=TIME):
    state = states_for(cell, BATCH, room)
    state, first = unroll(cell, state, INPUT, lengths)
    return unroll(cell, state, INPUT, answers, write=False), first


@eqx.filter_jit
def results_and_gradients(unroll, cell, *lengths):
    def loss(cell):
        results = both_phases(unroll, cell, *lengths)
        leaves = jax.tree.leaves(eqx.filter(results, eqx.is_inexact_array))
        return sum(jnp.sum(jnp.sin(leaf + i)) for i, leaf in enumerate(leaves)), results

    (_, results), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(cell)
    return results, gradients


def difference(left, right):
    """The largest of all numbers, in units of a leaf's largest; infinite for NaN."""

    def of(a, b):
        error = np.max(np.abs(a - b), initial=0.0) / max(1.0, np.max(np.abs(b), initial=0.0))
        return error if np.isfinite(error) else np.inf

    return max(jax.tree.leaves(jax.tree.map(of, left, right)))


def assert_fast_is_reference(cell, *lengths):
    reference = results_and_gradients(lantm.unroll_scan, cell, *lengths)
    assert difference(results_and_gradients(lantm.unroll, cell, *lengths), reference) < 1e-11


@pytest.fixture
def no_scan(monkeypatch):
    """Whoever takes the plain scan fails."""

    def refuse(*args, **kwargs):
        pytest.fail("the plain scan was taken")

    monkeypatch.setattr("lantm.machines.cell.unroll_scan", refuse)


@pytest.fixture
def no_loop(monkeypatch):
    """Whoever takes the fast loop fails."""

    def refuse(*args, **kwargs):
        pytest.fail("the fast loop was taken")

    monkeypatch.setattr(memory_cell, "Loop", refuse)
    monkeypatch.setattr(lstm_cell, "Loop", refuse)


# ---- what is overridden is honoured


class Louder(lantm.MemoryCell):
    """A step of its own: outputs twice as large."""

    def step(self, state, inputs, *, write=True):
        state, output, trace = super().step(state, inputs, write=write)
        return state, 2 * output, trace


class LouderLSTM(lantm.LSTMCell):
    def step(self, state, inputs, *, write=True):
        state, output, trace = super().step(state, inputs, write=write)
        return state, 2 * output, trace


def test_a_step_of_ones_own_is_what_is_unrolled(no_loop):
    access = lantm.LieAccess(lantm.Plane(), heads(lantm.Plane()), heads(lantm.Plane()))
    sizes = {"hidden_size": HIDDEN, "key": jax.random.key(1)}
    for loud in (
        Louder(INPUTS, OUTPUTS, access, width=WIDTH, **sizes),
        LouderLSTM(INPUTS, OUTPUTS, **sizes),
    ):
        layer = lantm.MemoryLayer(loud)
        state = layer.init_state(BATCH, TIME)
        outputs, _ = layer(INPUT, state)
        _, expected = lantm.unroll_scan(loud, state, INPUT)
        assert np.array_equal(outputs, expected)


class Stubborn(lantm.LieAccess):
    """A `__call__` of its own: every memory counts alike."""

    def __call__(self, command, heads, slots):
        found = super().__call__(command, heads, slots)
        even = slots.valid / jnp.sum(slots.valid)
        return found._replace(weights=jnp.broadcast_to(even, found.weights.shape))


def test_addressing_of_ones_own_is_what_is_unrolled(no_loop):
    layer = lantm.MemoryLayer(
        with_access(Stubborn(lantm.Plane(), heads(lantm.Plane()), heads(lantm.Plane())))
    )
    state = layer.init_state(BATCH, TIME)
    layer(INPUT, state)
    weights = layer.trace(INPUT, state).weights
    assert np.allclose(weights[:, -1, 0, :TIME], 1 / TIME)


class Backwards(lantm.LieAccess):
    """A `move` of its own, without short cuts for it: read heads go against their actions."""

    def move(self, command, heads):
        movement, read, write = super().move(command, heads)
        turned = jax.tree.map(lambda new, old: 2 * old - new, movement.heads, heads)
        return movement._replace(heads=turned), read, write


def test_a_movement_of_ones_own_is_made_in_both_phases(no_scan):
    plane = lantm.Plane()
    assert_fast_is_reference(with_access(Backwards(plane, heads(plane, 2), heads(plane, 3))))


class Shifted(lantm.LieAccess):
    """Writes beside its heads, by a learned offset."""

    offset: jax.Array

    def __init__(self, space, reads, writes):
        super().__init__(space, reads, writes)
        self.offset = jnp.full(space.key_size, 0.3)

    def write_keys(self, movement):
        return super().write_keys(movement) + self.offset[None]


def test_keys_may_depend_on_parameters(no_scan):
    plane = lantm.Plane()
    shifted = with_access(Shifted(plane, heads(plane), heads(plane)))
    assert_fast_is_reference(shifted)
    _, gradients = results_and_gradients(lantm.unroll, shifted)
    assert np.all(np.abs(gradients.access.offset) > 1e-6)


def test_a_weighting_overrides_what_machines_call():
    with pytest.raises(TypeError, match="Loud must override scores or masses, not __call__"):

        class Loud(lantm.InverseSquare):
            def __call__(self, *args):
                return 2 * super().__call__(*args)


# ---- several memories


def test_heads_see_their_own_memory_only(no_scan):
    """Two memories with two read heads and one write head each, and a memory to begin with."""
    own = cell(model="lantm", memories=2, read_heads=2, anchored=True)
    assert (own.access.read_heads, own.access.write_heads, own.initial_memories) == (4, 2, 2)
    assert_fast_is_reference(own)
    layer = lantm.MemoryLayer(own)
    weights = layer.trace(INPUT, layer.init_state(BATCH, TIME)).weights[:, -1]
    slots = 2 + 2 * (TIME - 1)  # a step sees what was written before it
    for head in range(4):
        mine, others = weights[:, head, head % 2 : slots : 2], weights[:, head, 1 - head % 2 :: 2]
        assert np.all(mine > 0)
        assert np.all(others == 0)


def test_memories_share_heads_out_evenly():
    plane = lantm.Plane()
    with pytest.raises(ValueError, match=r"reads must have equally many heads .* got 3 for 2$"):
        lantm.LieAccess(plane, heads(plane, 3), heads(plane, 2), memories=2)


# ---- controllers


class PlainState(NamedTuple):
    hidden: jax.Array


class PlainLayer(lantm.Layer):
    """h' = tanh(M [x; h] + b), with a rectifier to see that masks of bits survive the loop."""

    linear: eqx.nn.Linear
    initial: PlainState

    def __init__(self, input_size, hidden_size, *, key):
        self.linear = eqx.nn.Linear(input_size + hidden_size, hidden_size, key=key)
        self.initial = PlainState(jnp.full(hidden_size, 0.1))

    def affine(self):
        return lantm.Affine(self.linear.weight.T, self.linear.bias)

    @staticmethod
    def activate(z, state):
        return PlainState(jnp.tanh(jax.nn.relu(z) + 0.1 * z) + 0.1 * state.hidden)


class Reset(PlainLayer):
    """A `__call__` of its own: it forgets."""

    def __call__(self, state, inputs):
        return super().__call__(PlainState(0 * state.hidden), inputs)


@pytest.mark.parametrize("model", ["lantm", "lstm"])
def test_an_own_controller_in_the_fast_loop(model, monkeypatch, no_scan):
    monkeypatch.setitem(lantm.CONTROLLERS, "plain", PlainLayer)
    assert_fast_is_reference(cell(model=model, controller="plain", layers=2))


@pytest.mark.parametrize("model", ["lantm", "lstm"])
def test_a_layer_with_a_call_of_its_own_is_scanned(model, monkeypatch, no_loop):
    monkeypatch.setitem(lantm.CONTROLLERS, "reset", Reset)
    own = cell(model=model, controller="reset")
    assert difference(both_phases(lantm.unroll, own), both_phases(lantm.unroll_scan, own)) == 0


def test_a_gru_has_no_forget_bias():
    with pytest.raises(ValueError, match=r"^forget_bias is only for lstm controllers, got 1\.0$"):
        lantm.configure("plain", controller="gru", forget_bias=1.0)


def test_the_gru_is_that_of_equinox():
    own = lantm.CONTROLLERS["gru"](INPUTS, HIDDEN, key=jax.random.key(0))
    theirs = eqx.nn.GRUCell(INPUTS, HIDDEN, key=jax.random.key(1))
    first, other = own.from_input.bias, own.from_hidden.bias
    gates = 2 * HIDDEN
    theirs = eqx.tree_at(
        lambda cell: (cell.weight_ih, cell.weight_hh, cell.bias, cell.bias_n),
        theirs,
        (
            own.from_input.weight,
            own.from_hidden.weight,
            jnp.concatenate([(first + other)[:gates], first[gates:]]),
            other[gates:],
        ),
    )
    state, x = own.initial, INPUT[0, 0]
    assert np.allclose(own(state, x).hidden, theirs(x, state.hidden), rtol=0, atol=1e-14)


@pytest.mark.parametrize("model", ["lantm", "lstm"])
def test_noise_is_added_to_what_the_controller_activates(model):
    """As if the inputs had it, through a map that adds it; in results and gradients."""
    own = cell(model=model)
    size = own.noise_size
    noise = 0.3 * jax.random.normal(jax.random.key(0), (TIME, BATCH, size))
    weight = own.controller.layers[0].from_input.weight
    wider = jnp.concatenate([weight[:, :INPUTS], jnp.eye(size), weight[:, INPUTS:]], axis=1)
    wide = eqx.tree_at(lambda c: c.controller.layers[0].from_input.weight, own, wider)
    inputs = jnp.concatenate([INPUT, jnp.swapaxes(noise, 0, 1)], axis=2)

    def gradients(cell, inputs, noise):
        def loss(cell):
            return jnp.sum(jnp.sin(cell.unroll(states, inputs, LENGTHS, noise=noise)[1]))

        states = states_for(cell, BATCH, TIME)
        return eqx.filter_jit(eqx.filter_value_and_grad(loss))(cell)

    (value, shaken), (expected, told) = gradients(own, INPUT, noise), gradients(wide, inputs, None)
    still, _ = gradients(own, INPUT, None)
    assert np.allclose(value, expected, rtol=1e-12)
    assert not np.allclose(value, still, rtol=1e-3)
    assert difference(shaken.interface, told.interface) < 1e-11
    found = shaken.controller.layers[0].from_input.weight[:, :INPUTS]
    assert np.allclose(found, told.controller.layers[0].from_input.weight[:, :INPUTS], atol=1e-11)


def test_noise_is_refused_where_nothing_could_take_it():
    loud = LouderLSTM(INPUTS, OUTPUTS, HIDDEN, key=jax.random.key(1))
    with pytest.raises(ValueError, match="noise is only for cells in the fast loop"):
        loud.unroll(states_for(loud, BATCH, TIME), INPUT, noise=jnp.zeros((TIME, BATCH, 1)))


# ---- spaces with holes


class Annulus(lantm.EmbeddedKeySpace):
    """The plane without 0 under rotations, in code that divides by the radius as it stands."""

    key_size: ClassVar[int] = 2
    algebra_size: ClassVar[int] = 1

    def project(self, raw):
        radius = jnp.sqrt(raw[0] ** 2 + raw[1] ** 2)
        return raw * (1 + 1 / radius)

    def exp(self, velocity):
        return velocity[0]

    def log(self, action):
        return jnp.stack([action])

    def act(self, action, key):
        # By the angle, which has no derivative at 0.
        radius = jnp.sqrt(key[0] ** 2 + key[1] ** 2)
        angle = jnp.arctan2(key[1], key[0]) + action
        return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def mix(self, gate, candidate, key):
        return gate * candidate + (1 - gate) * key

    def inverse(self, action):
        return -action

    def compose(self, second, first):
        return second + first


class Hyperboloid(Annulus):
    """x^2 + y^2 - z^2 = -1 under rotations, with an arccosh as it stands."""

    key_size: ClassVar[int] = 3

    def project(self, raw):
        return jnp.stack([raw[0], raw[1], jnp.sqrt(1 + raw[0] ** 2 + raw[1] ** 2)])

    def act(self, action, key):
        cos, sin = jnp.cos(action), jnp.sin(action)
        x, y, z = key
        return jnp.stack([cos * x - sin * y, sin * x + cos * y, z])

    def mix(self, gate, candidate, key):
        return self.project(gate * candidate + (1 - gate) * key)

    def squared_distance(self, key, keys):
        inner = keys[:, 2] * key[2] - keys[:, 0] * key[0] - keys[:, 1] * key[1]
        return jnp.arccosh(inner) ** 2


@pytest.mark.parametrize("space", [Annulus(), Hyperboloid()], ids=["annulus", "hyperboloid"])
@pytest.mark.parametrize("longest", [TIME, TIME - 2, 0])
def test_what_was_not_reached_has_no_derivative(space, longest, no_scan):
    """Steps after all lengths, and slots without a memory, are not off the manifold."""
    own = with_access(lantm.LieAccess(space, heads(space), heads(space)))
    assert_fast_is_reference(own, jnp.minimum(LENGTHS, longest), jnp.minimum(ANSWERS, longest))


# ---- the reference


def test_the_reference_has_every_derivative():
    small = cell(model="lantm")
    layer = lantm.MemoryLayer(small, reference=True)
    state = layer.init_state(BATCH, TIME)

    def total(inputs):
        return jnp.sum(layer(inputs, state, LENGTHS)[0] ** 2)

    direction = jnp.ones_like(INPUT)
    _, forward = jax.jvp(total, (INPUT,), (direction,))
    assert np.allclose(forward, jnp.vdot(jax.grad(total)(INPUT), direction))
    _, second = jax.jvp(jax.grad(total), (INPUT,), (direction,))
    assert np.all(np.isfinite(second))
    fast = lantm.MemoryLayer(small)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: fast(x, state, LENGTHS)[0], (INPUT,), (direction,))


def test_the_layer_takes_the_reference_when_asked(no_loop):
    layer = lantm.MemoryLayer(cell(model="lantm"), reference=True)
    outputs, _ = layer(INPUT, layer.init_state(BATCH, TIME))
    _, expected = lantm.unroll_scan(layer.cell, layer.init_state(BATCH, TIME), INPUT)
    assert np.array_equal(outputs, expected)


# ---- from settings to trained machines


def test_a_machine_by_settings_alone_trains_and_is_shown(tiny, tmp_path, no_scan):
    parts = {"controller": "gru", "weighting": "inverse_power", "output": "nonlinear"}
    run = lantm.train(tiny(**parts, read_heads=2, write_heads=2, batches=40), tmp_path)
    losses = [row["loss"] for row in run.metrics()]
    assert losses[-1] < losses[0]
    draw("memory", run).savefig(tmp_path / "memory.png")
    write_explorer([run], tmp_path / "page.html", examples=1)


def small_lie(config, key):
    """An access of one's own, as the guide shows it."""
    space = lantm.find_space(config.chosen("space"))
    keys = jax.random.split(key)
    return Backwards(space, *([lantm.Head(space, key=k)] for k in keys))


def test_a_model_of_ones_own_trains_as_it_traces(tiny, tmp_path, monkeypatch):
    build = lantm.with_memory(small_lie, gated_output=True)
    sizes = {"hidden_size": 5, "embedding_size": 4, "space": "plane"}
    monkeypatch.setitem(lantm.MODELS, "backwards", lantm.Design(build, sizes))
    run = lantm.train(tiny(model="backwards"), tmp_path)
    machine = run.machine()
    assert isinstance(machine.cell.access, Backwards)
    inputs, answers = (
        jnp.asarray(part) for part in run.task.sample(np.random.default_rng(0), 3, 2)
    )
    logits = machine(inputs, answers.shape[1])
    assert np.allclose(machine.trace(inputs, answers.shape[1]).logits, logits, atol=1e-11)
