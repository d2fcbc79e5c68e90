"""Training: the update by hand, and runs that come out the same whatever happens to them."""

import dataclasses
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import lantm
import own_space  # registers the key space "circle"
from lantm.tasks import Copy
from lantm.tasks.streams import training_stream
from lantm.training import trainer as training
from lantm.training.checkpoints import named_arrays, read_arrays, save_tree
from lantm.training.config import FIRST_FIELDS, digest_of, identity
from lantm.training.optimiser import adam, clip_by_usual_norm
from lantm.training.runs import zoo_names
from lantm.training.train import MANY_THREADS, finish
from lantm.training.trainer import NonFiniteError, Trainer
from lantm.training.updates import (
    NOT_OF_UPDATES,
    add_noise,
    compiled_update,
    initial_machine,
    learning_rate,
    make_optimiser,
    noise_key,
    program_of,
    update,
)

pytest_plugins = ["tiny"]

plain = partial(lantm.configure, "plain")
"""Of settings that need no recipe."""


# ---- one update


def test_learning_rate_by_hand():
    """Constant for 10 * decay_delay updates, then times 0.99 after every 20."""
    schedule, rate, rates = learning_rate(plain(lr=0.3, decay_delay=2)), 0.3, []
    for batch in range(101):
        if batch in (40, 60, 80, 100):
            rate *= 0.99
        rates.append(rate)
    assert np.allclose([schedule(batch) for batch in range(101)], rates, rtol=1e-14, atol=0)


def test_learning_rate_along_a_cosine():
    schedule = learning_rate(plain(lr=0.3, decay_delay=None, batches=60))
    angles = np.pi * np.arange(61) / 60
    assert np.allclose([schedule(batch) for batch in range(61)], 0.15 * (1 + np.cos(angles)))


def fan_in(name, shapes):
    """Columns of the weight that a parameter of a linear layer belongs to."""
    return shapes[name.removesuffix(".bias").removesuffix(".weight") + ".weight"][1]


@pytest.mark.parametrize("model", ["lantm", "lstm"])
def test_initialisation_by_fan_in(model):
    parameters = named_arrays(initial_machine(lantm.configure("paper", model=model, layers=2)))
    shapes = {name: leaf.shape for name, leaf in parameters.items()}
    embedding = parameters.pop("embedding.weight")
    assert abs(jnp.mean(embedding)) < 0.1
    assert abs(jnp.std(embedding) - 1) < 0.1
    for name, leaf in parameters.items():
        bound = fan_in(name, shapes) ** -0.5 if name.endswith(("weight", "bias")) else 1
        largest = jnp.max(jnp.abs(leaf)) / bound
        assert largest <= 1
        assert largest > 0.9 or leaf.size < 50


@pytest.mark.parametrize("model", ["lantm", "lstm"])
def test_uniform_initialisation(model):
    machine = initial_machine(lantm.configure("paper", model=model, init="uniform", layers=2))
    for name, leaf in named_arrays(machine).items():
        forget = leaf.size // 4 if name.endswith(("from_input.bias", "from_hidden.bias")) else 0
        assert jnp.all(leaf[:forget] == 1)
        rest = jnp.abs(leaf[forget:])
        assert jnp.max(rest) <= 1
        assert jnp.max(rest) > 0.9 or rest.size < 50


@pytest.mark.parametrize("model", ["lantm", "slantm"])
def test_heads_start_straight_on(model):
    def actions(head):
        """Of all steps of all sequences, as rows of numbers."""
        parts = jax.tree.leaves(head.action)
        return np.concatenate([part.reshape(8 * 21, -1) for part in parts], axis=1)

    inputs = jnp.asarray(Copy().sample(np.random.default_rng(1), 20, 8).inputs)
    usual, straight = (
        initial_machine(plain(model=model, init=init)).trace(inputs, 1).encode
        for init in ("fan_in", "straight")
    )
    for bent, even in ((usual.read, straight.read), (usual.write, straight.write)):
        wandering = [np.linalg.norm(np.std(actions(head), axis=0)) for head in (bent, even)]
        assert wandering[1] < wandering[0] / 4
    both = [np.mean(actions(head), axis=0) for head in (straight.read, straight.write)]
    assert np.allclose(*both, atol=0.1)
    assert np.linalg.norm(both[0]) > 0.2


@pytest.mark.parametrize("model", ["lstm", "ram"])
def test_without_lie_heads_a_straight_start_is_the_plain_one(model):
    usual, straight = (
        initial_machine(plain(model=model, init=init)) for init in ("fan_in", "straight")
    )
    assert eqx.tree_equal(usual, straight)


@pytest.mark.parametrize("init", ["straight", "uniform"])
def test_forget_bias(init):
    usual, raised = (
        named_arrays(initial_machine(plain(init=init, layers=2, forget_bias=bias)))
        for bias in (None, 2.5)
    )
    changed = {name for name in usual if not np.array_equal(usual[name], raised[name])}
    layers = [f"cell.controller.layers.{i}" for i in range(2)]
    ends = ("from_input.bias", "from_hidden.bias")
    assert changed == {f"{layer}.{end}" for layer in layers for end in ends}
    for name in changed:
        forget = usual[name].size // 4
        assert jnp.all(raised[name][:forget] == 2.5)
        assert np.array_equal(usual[name][forget:], raised[name][forget:])


@pytest.mark.parametrize("forget_bias", [None, 1.0])
def test_slow_cells_are_the_first_of_every_layer(forget_bias):
    settings = {"layers": 2, "forget_bias": forget_bias}
    usual, slow = (
        named_arrays(initial_machine(plain(slow_cells=cells, **settings))) for cells in (0, 5)
    )
    changed = {name for name in usual if not np.array_equal(usual[name], slow[name])}
    layers = [f"cell.controller.layers.{i}" for i in range(2)]
    ends = ("from_input.bias", "from_hidden.bias")
    assert changed == {f"{layer}.{end}" for layer in layers for end in ends}
    for name in changed:
        assert jnp.all(slow[name][:5] == 2.5)
        assert np.array_equal(usual[name][5:], slow[name][5:])


def test_slow_cells_keep_what_they_hold():
    """Before anything is learned, for some hundred steps; their neighbours do not."""
    config = plain(slow_cells=5, embedding_size=3)
    layer = initial_machine(config).cell.controller.layers[0]
    affine = layer.affine()
    quiet = jnp.zeros(affine.matrix.shape[0]) @ affine.matrix + affine.bias
    forget = jax.nn.sigmoid(quiet[:50])
    assert np.allclose(forget[:5] ** 100, 0.51, atol=0.01)
    assert np.max(forget[5:] ** 100) < 1e-10


def test_the_seed_decides_the_start():
    first, again, other = (initial_machine(plain(seed=seed)) for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    assert not np.array_equal(first.embedding.weight, other.embedding.weight)


@partial(eqx.filter_jit, compiler_options={"xla_backend_optimization_level": 0})
@eqx.filter_value_and_grad
def plain_gradient(machine, inputs, answers):
    """Of the unpadded batch, by a plain scan; the loss is the mean of -log p."""
    state = machine.init_state(*inputs.shape)
    state, _ = lantm.unroll_scan(machine.cell, state, machine.embed(inputs))
    asking = machine.placeholders(state, answers.shape[1])
    _, logits = lantm.unroll_scan(machine.cell, state, asking, write=False)
    likely = jnp.take_along_axis(jax.nn.log_softmax(logits), answers[:, :, None], axis=-1)
    return -jnp.mean(likely)


def plain_updates(config, stream, updates):
    """RMSProp on clipped gradients, and an average of the weights, number by number."""
    arrays, rest = eqx.partition(initial_machine(config), eqx.is_array)
    weights, structure = jax.tree.flatten(arrays)
    average, squares, told = weights, [0.0] * len(weights), []
    for i in range(updates):
        machine = eqx.combine(jax.tree.unflatten(structure, weights), rest)
        loss, gradients = plain_gradient(machine, *map(jnp.asarray, stream[i]))
        norm = np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(gradients)))
        clipped = [g * min(1, config.clip / norm) for g in jax.tree.leaves(gradients)]
        squares = [0.99 * m + 0.01 * g**2 for m, g in zip(squares, clipped, strict=True)]
        steps = [g / (np.sqrt(m) + 1e-8) for g, m in zip(clipped, squares, strict=True)]
        weights = [w - config.lr * step for w, step in zip(weights, steps, strict=True)]
        keep = config.averaging
        average = [keep * a + (1 - keep) * w for a, w in zip(average, weights, strict=True)]
        told.append((loss, norm > config.clip))
    return weights, average, told


def compare_three_updates(config, folder):
    """The state after them, which is that of the updates by hand; and whether any was clipped."""
    trainer = Trainer(lantm.Run.create(config, folder))
    losses = [trainer.step(i) for i in range(3)]
    weights, average, told = plain_updates(config, trainer.feed.stream, 3)
    assert np.allclose(losses, [loss for loss, _ in told], rtol=0, atol=1e-11)
    assert agree(weights, trainer.state.parameters)
    assert agree(average, trainer.state.average)
    return trainer.state, any(clipped for _, clipped in told)


def test_three_updates_by_hand(tiny, tmp_path):
    state, clipped = compare_three_updates(tiny(recipe="paper", averaging=0.99), tmp_path)
    assert not clipped
    assert not eqx.tree_equal(state.average, state.parameters)


def test_clipped_updates_without_averaging(tiny, tmp_path):
    config = tiny(recipe="paper", model="lstm", clip=0.05)
    state, clipped = compare_three_updates(config, tmp_path)
    assert clipped
    assert eqx.tree_equal(state.average, state.parameters)


def test_adam_by_hand():
    """m / (sqrt(v) + 1e-8), both corrected for their start at zero, after clipping."""
    optimiser, w, m, v = adam(0.1, clip=1.0), np.array([1.0, -2.0]), 0.0, 0.0
    state = optimiser.init(jnp.asarray(w))
    for t, g in enumerate([[3.0, 4.0], [0.3, -0.2], [0.0, 0.1]], start=1):
        step, state = optimiser.update(jnp.array(g), state)
        clipped = np.array(g) / max(1.0, np.hypot(*g))
        m, v = 0.9 * m + 0.1 * clipped, 0.999 * v + 0.001 * clipped**2
        by_hand = 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert np.allclose(-step, by_hand, rtol=1e-6)


def norms(transform, gradients):
    """Of what comes out of gradients, one after the other."""
    state, found = transform.init(gradients[0]), []
    for gradient in gradients:
        out, state = transform.update(gradient, state)
        found.append(float(np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(out)))))
    return found


def of_norm(norm):
    return {"a": norm * jnp.array([0.6]), "b": norm * jnp.array([[0.0, -0.8]])}


def test_a_gradient_much_larger_than_usual_is_clipped():
    """To twice the usual norm, which is 1 at first; it keeps its direction, and as it was clipped
    it is 2 % of what is usual from then on.
    """
    transform = clip_by_usual_norm(2.0)
    state = transform.init(of_norm(1.0))
    out, state = transform.update(of_norm(1e6), state)
    assert eqx.tree_equal(out, of_norm(2.0), rtol=1e-12)
    _, state = transform.update(of_norm(1.5), state)
    usual = 0.98 * (0.98 + 0.02 * 2.0) + 0.02 * 1.5
    out, _ = transform.update(of_norm(50.0), state)
    assert eqx.tree_equal(out, of_norm(2 * usual), rtol=1e-12)


def test_usual_gradients_are_left_as_they_are():
    gradients = [of_norm(norm) for norm in (1.0, 0.3, 1.9, 0.9)]
    assert np.allclose(norms(clip_by_usual_norm(2.0), gradients), [1.0, 0.3, 1.9, 0.9])


def test_gradients_that_stay_large_are_followed():
    found = norms(clip_by_usual_norm(2.0), [of_norm(10.0)] * 150)
    assert found[0] == pytest.approx(2.0)
    assert found[40] < 5
    assert found[-1] == pytest.approx(10.0)
    assert found == sorted(found)


def test_a_gradient_of_zero_stays_finite():
    """Of norm zero for once and for long, in single precision too."""
    for dtype in (jnp.float64, jnp.float32):
        gradients = [jax.tree.map(lambda g, d=dtype: g.astype(d), of_norm(n)) for n in [0.0] * 100]
        assert norms(clip_by_usual_norm(2.0), gradients) == [0.0] * 100
    after = norms(clip_by_usual_norm(2.0), [of_norm(n) for n in [0.0] * 100 + [1.0] * 200])
    assert 0 < after[100] < 0.3
    assert after[-1] == pytest.approx(1.0)


def test_adam_takes_steady_gradients():
    """It is that of gradients clipped by hand; without the setting it is as it was."""
    sequence = [jnp.array(g) for g in ([0.3, 0.4], [6.0, 8.0], [0.0, 0.5])]
    by_hand, usual = [], 1.0
    for gradient in sequence:
        norm = float(np.hypot(*gradient))
        most = min(norm, 2 * usual)
        by_hand.append(gradient * most / norm)
        usual = 0.98 * usual + 0.02 * most
    settings = {"optimiser": "adam", "clip": 32.0, "decay_delay": 10_000}
    steady, loose = (make_optimiser(plain(**settings, steady=s)) for s in (2.0, None))

    def steps(optimiser, gradients):
        state, found = optimiser.init(gradients[0]), []
        for gradient in gradients:
            step, state = optimiser.update(gradient, state)
            found.append(step)
        return np.array(found)

    assert np.allclose(steps(steady, sequence), steps(loose, by_hand), rtol=1e-12)
    assert not np.allclose(steps(steady, sequence), steps(loose, sequence), rtol=0.1)


def test_weight_noise_is_learned_from_and_not_kept(tiny, tmp_path):
    """The loss of an update is that of shaken parameters; the step is made from those before."""
    config = tiny(weight_noise=0.5, lr=1e-3)
    trainer = Trainer(lantm.Run.create(config, tmp_path))
    for done in range(3):
        before = trainer.state.parameters
        key = noise_key(config.seed, done)
        noise = jnp.array(0.5 * done / config.batches)
        shaken = eqx.combine(add_noise(before, noise, key), trainer.rest)
        loss, _ = plain_gradient(shaken, *map(jnp.asarray, trainer.feed.stream[done]))
        assert np.isclose(trainer.step(done), loss, rtol=0, atol=1e-11)
    pairs = zip(*map(jax.tree.leaves, (trainer.state.parameters, before)), strict=True)
    assert 0 < max(np.max(np.abs(now - then)) for now, then in pairs) < 0.0101


def test_no_key_is_used_twice():
    """Neither for two batches nor for the noise and the initial parameters."""
    drawn = [noise_key(5, batch) for batch in range(50)]
    drawn += [*jax.random.split(jax.random.key(5), 50), jax.random.key(5)]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in drawn}) == len(drawn)


def test_noise_is_gaussian_and_new_for_every_key():
    zeros = {"a": jnp.zeros((100, 50)), "b": jnp.zeros(5000)}
    scale = jnp.array(0.2)
    first, again, other = (add_noise(zeros, scale, jax.random.key(seed)) for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    for noise in (*first.values(), first["a"].ravel() - first["b"], first["b"] - other["b"]):
        both = noise is not first["a"] and noise is not first["b"]
        assert abs(np.mean(noise)) < 0.02
        assert np.isclose(np.std(noise), 0.2 * (2**0.5 if both else 1), rtol=0.05)


def test_settings_of_the_updates_reach_them(tiny, tmp_path):
    """A run with Adam and growing sizes is another run than one without. It has another seed than
    other tests' runs, whose initial machine would come from a program that is not optimised.
    """
    usual, other = (
        Trainer(lantm.Run.create(tiny(**settings), tmp_path))
        for settings in ({"seed": 2}, {"seed": 2, "optimiser": "adam", "growth": 0.5})
    )
    assert [other.feed.stream.size(i) for i in range(5)] == [2] * 5
    assert [usual.feed.stream.size(i) for i in range(5)] != [2] * 5
    usual.feed = other.feed
    assert usual.step(0) == other.step(0)
    assert not eqx.tree_equal(usual.state.parameters, other.state.parameters)


@pytest.mark.parametrize("noisy", [{"weight_noise": 0.5}, {"noise": 1.0}], ids=" ".join)
def test_one_program_serves_all_seeds(noisy, tiny, tmp_path):
    """Though noise is of the seed: that of the run, not of the config it was compiled for."""
    one, two = (Trainer(lantm.Run.create(tiny(seed=seed, **noisy), tmp_path)) for seed in (1, 2))
    padded = one.feed.batch(0)
    batch = [padded.inputs, padded.input_lengths, padded.answers, padded.answer_lengths]
    programs = [
        trainer.update.lower(trainer.state, *batch, trainer.normals, np.uint32(seed)).as_text()
        for seed, trainer in enumerate((one, two), start=1)
    ]
    assert programs[0] == programs[1]
    late = one.state._replace(batch=jnp.array(10, jnp.int32))
    if late.steering is not None:
        late = late._replace(steering=late.steering._replace(noise=jnp.array(0.5)))
    losses = [one.update(late, *batch, one.normals, np.uint32(seed))[1] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("space", ["plane", "circle", "sphere2"])
def test_an_update_needs_one_program(space, tiny, tmp_path):
    """What comes out of it has the types of what went in, also the weak ones of plain numbers."""
    trainer = Trainer(lantm.Run.create(tiny(recipe="default", space=space), tmp_path))
    padded = trainer.feed.batch(0)
    batch = [padded.inputs, padded.input_lengths, padded.answers, padded.answer_lengths]
    after, _ = jax.eval_shape(trainer.update, trainer.state, *batch, trainer.normals, 1)
    for state in (trainer.state, trainer.fresh(start=1)):
        same = jax.tree.map(lambda old, new: old.aval == new_type(new), state, after)
        assert all(jax.tree.leaves(same)), same


def new_type(leaf):
    return jax.core.ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)


def test_the_papers_updates_are_made_of_the_papers_settings_alone(tiny, tmp_path):
    """Nothing that came later is in a run of it: no steering, no noise, whole batches in order."""
    trainer = Trainer(lantm.Run.create(tiny(recipe="paper"), tmp_path))
    assert trainer.state.steering is trainer.state.start is trainer.normals is None
    assert trainer.feed.smallest_first is None
    fresh = training_stream(lantm.TASKS["tiny"], "small", 1)
    for index in (0, 7, 503):
        padded, (inputs, answers) = trainer.feed.batch(index), fresh[index]
        assert np.array_equal(padded.inputs[:, : inputs.shape[1]], inputs)
        assert np.array_equal(padded.answers[:, : answers.shape[1]], answers)


def agree(leaves, tree):
    found = jax.tree.leaves(tree)
    return all(np.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(leaves, found, strict=True))


@dataclass(frozen=True)
class Watched(lantm.TrainConfig):
    """Refuses to be asked for what runs that share their updates may differ in."""

    def __getattribute__(self, name):
        if name in NOT_OF_UPDATES and "watched" in vars(type(self)):
            raise AssertionError(f"{name} decides what an update does")
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "settings",
    [
        {"recipe": "default", "starts": 2, "batches": 5000},
        {"recipe": "default", "starts": 1, "rate_by": "clock", "growth_of": "sizes"},
        {"growth": 0.5, "weight_noise": 0.1, "decay_delay": None},
    ],
    ids=["default", "one start", "plain"],
)
def test_an_update_does_not_know_of_which_run_it_is(settings, tiny, tmp_path, monkeypatch):
    config = tiny(**settings)
    trainer = Trainer(lantm.Run.create(config, tmp_path))
    own = Watched(**{f.name: getattr(config, f.name) for f in dataclasses.fields(config)})
    monkeypatch.setattr(Watched, "watched", True, raising=False)
    padded = dataclasses.astuple(trainer.feed.batch(0))
    arguments = (trainer.state, *padded, trainer.normals, np.uint32(1))
    jax.eval_shape(partial(update, own, make_optimiser(own), trainer.rest), *arguments)
    other = dataclasses.replace(config, seed=7, task="copy", validate_every=3)
    assert program_of(config) == program_of(other)
    assert program_of(config) != program_of(dataclasses.replace(config, lr=0.5))
    assert compiled_update(program_of(other), trainer.rest) is trainer.update


# ---- runs


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ({"clip": 1}, {"clip": 1.0}),
        ({"clip": np.float32(2)}, {"clip": 2.0}),
        ({"seed": np.int64(3), "layers": np.int32(2)}, {"seed": 3, "layers": 2}),
        ({"read_gate_bias": -2}, {"read_gate_bias": -2.0}),
        ({"growth": -0.0, "write_gate_bias": np.float64(-0.0)}, {"write_gate_bias": 0}),
        ({"keep_all": np.True_}, {"keep_all": True}),
        ({"data": Path("a") / "b"}, {"data": os.path.join("a", "b")}),
    ],
)
def test_equal_configs_have_equal_digests(one, same, unchecked):
    one, same = plain(**one), plain(**same)
    assert one == same
    assert one.digest == same.digest
    assert json.dumps(one.to_dict()) == json.dumps(same.to_dict())


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"lr": "0.1"}, "lr must be of type float, got '0.1'"),
        ({"lr": True}, "lr must be of type float, got True"),
        ({"lr": None}, "lr must be of type float, got None"),
        ({"forget_bias": float("inf")}, "forget_bias must be a finite number, got inf"),
        ({"read_gate_bias": float("nan")}, "read_gate_bias must be a finite number, got nan"),
        ({"write_gate_bias": "x"}, "write_gate_bias must be of type float, got 'x'"),
        ({"batches": 2.0}, "batches must be of type int, got 2.0"),
        ({"seed": True}, "seed must be of type int, got True"),
        ({"keep_all": "no"}, "keep_all must be of type bool, got 'no'"),
        ({"keep_all": 1}, "keep_all must be of type bool, got 1"),
        ({"task": 5}, "task must be of type str, got 5"),
    ],
)
def test_settings_of_other_types_are_refused(setting, reason, unchecked):
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        plain(**setting)


ROOT = Path(__file__).parents[1]
ROWS = [json.loads(line) for line in (ROOT / "results" / "results.jsonl").read_text().splitlines()]


def test_the_results_keep_their_identity():
    found = {row["digest"]: plain(**row["config"]).digest for row in ROWS}
    assert len(ROWS) >= 214
    assert all(digest == again for digest, again in found.items())


def test_the_zoo_keeps_its_identity():
    """Weights carry the digest they were trained under."""
    for name in zoo_names():
        assert lantm.Run.open(name).config.weight_noise == 0
        with jax.enable_x64(False):
            lantm.Run.open(name).machine()


@dataclass(frozen=True)
class LaterModel(lantm.ModelConfig):
    heads: int = 1


@dataclass(frozen=True)
class LaterConfig(lantm.TrainConfig):
    patience: float | None = None


def test_a_new_field_at_its_default_changes_no_digest():
    """Neither one of the run's nor one of the model's; in another way it does."""
    row = ROWS[0]
    config = plain(**row["config"])
    own = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    model = LaterModel(**dataclasses.asdict(config.model))
    later = LaterConfig(**{**own, "model": model})
    assert later.digest == row["digest"]
    others = [
        dataclasses.replace(later, patience=1.0),
        dataclasses.replace(later, model=dataclasses.replace(model, heads=2)),
    ]
    assert len({row["digest"], *(other.digest for other in others)}) == 3


def test_every_first_field_is_still_there():
    """A config that has lost one is damaged; one from before a later field is not."""
    values = lantm.TrainConfig().to_dict()
    assert lantm.TrainConfig().flat().keys() >= FIRST_FIELDS
    del values["weight_noise"]
    assert lantm.TrainConfig.from_dict(values) == lantm.TrainConfig()
    for damaged in ({**values, "model": {}}, {n: v for n, v in values.items() if n != "lr"}):
        with pytest.raises(KeyError):
            lantm.TrainConfig.from_dict(damaged)


def outcome(run):
    """All that may not depend on what happened on the way."""
    content = {
        path.name: read_arrays(path)
        for path in [
            run.weights_path("best"),
            run.weights_path("last"),
            run.path / "checkpoints" / f"{run.config.batches:06d}.safetensors",
        ]
    }
    tensors = {
        name: (
            {key: (a.dtype, a.shape, a.tobytes()) for key, a in arrays.items()},
            {key: text for key, text in metadata.items() if key != "seconds"},
        )
        for name, (arrays, metadata) in content.items()
    }
    result = {name: value for name, value in run.result.items() if name != "seconds"}
    return tensors, (run.path / "metrics.jsonl").read_text(), result


def interrupt_at(batch):
    def on_progress(progress):
        if progress.batch == batch:
            raise KeyboardInterrupt

    return on_progress


def files(run):
    return sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))


def checkpoints(run):
    return sorted(path.name for path in (run.path / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def stopped(tiny, tmp_path_factory):
    """A run that was interrupted after batch 12, its checkpoints at 10 and 12."""
    root = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        lantm.train(tiny(), root, on_progress=interrupt_at(12))
    return lantm.Run.open(root / tiny().name)


@pytest.fixture
def run(stopped, tmp_path):
    """The same run, to do as one likes with."""
    return lantm.Run.open(shutil.copytree(stopped.path, tmp_path / stopped.path.name))


def test_files_of_a_run(trained):
    assert files(trained) == [
        "checkpoints",
        "checkpoints/000015.safetensors",
        "checkpoints/000020.safetensors",
        "config.json",
        "lock",
        "metrics.jsonl",
        "result.json",
        "weights",
        "weights/best.safetensors",
        "weights/last.safetensors",
    ]
    content = json.loads((trained.path / "config.json").read_text())
    assert content["versions"]["lantm"] == lantm.__version__
    assert content["versions"]["jax"] == jax.__version__
    assert content["digest"] == trained.config.digest
    assert lantm.TrainConfig.from_dict(content["config"]) == trained.config
    assert lantm.Run.open(trained.path) == trained


def test_metrics_of_a_run(trained):
    rows = list(trained.metrics())
    names = ["batch", "loss", "fine", "coarse", "validation_fine", "validation_coarse"]
    assert [row["batch"] for row in rows] == [5, 10, 15, 20]
    assert all(list(row) == names for row in rows)
    assert all(0 <= row[name] <= 1 for row in rows for name in names[2:])


def test_result_of_a_run(trained):
    assert trained.result["status"] == "finished"
    rows = trained.result["test"]
    found = [(row["checkpoint"], row["source"], row["examples"]) for row in rows]
    assert found == [("best", 1, 37), ("best", 2, 37), ("last", 1, 37), ("last", 2, 37)]


def test_every_checkpoint_can_be_kept(tiny, trained, tmp_path):
    run = lantm.train(tiny(keep_all=True), tmp_path)
    rows = [[r["validation_coarse"], r["validation_fine"], r["batch"]] for r in run.metrics()]
    best = max(rows)[-1]
    kept = sorted(path.stem for path in (run.path / "weights").iterdir())
    assert kept == ["000005", "000010", "000015", "000020", "best", "last"]
    assert eqx.tree_equal(run.machine("000020"), run.machine("last"))
    assert eqx.tree_equal(run.machine("last"), trained.machine("last"))
    assert eqx.tree_equal(run.machine("best"), run.machine(f"{best:06d}"))
    assert not eqx.tree_equal(run.machine("000005"), run.machine("last"))


def test_a_kept_checkpoint_by_its_number(tiny, tmp_path):
    run = lantm.Run.create(tiny(), tmp_path)
    assert run.weights_path("10") == run.weights_path("000010")
    assert run.weights_path("1234567").stem == "1234567"


def test_equal_trees_give_equal_files(tmp_path):
    tree = {name: jnp.arange(3.0) for name in "abc"}
    metadata = {name: name for name in "qwertzuiop"}
    content = set()
    for number in range(5):
        save_tree(tmp_path / str(number), tree, metadata)
        content.add((tmp_path / str(number)).read_bytes())
        metadata = dict(reversed(metadata.items()))
    assert len(content) == 1
    assert eqx.tree_equal(lantm.load_tree(tmp_path / "0", tree, metadata), tree)


def test_a_finished_run_is_not_trained_again(tiny, trained, monkeypatch):
    monkeypatch.delattr(training, "Trainer")
    assert lantm.train(tiny(), trained.path.parent) == trained


def test_the_same_config_gives_the_same_run(tiny, trained, tmp_path):
    again = lantm.train(tiny(), tmp_path)
    assert outcome(again) == outcome(trained)
    for name in ("best", "last"):
        assert again.weights_path(name).read_bytes() == trained.weights_path(name).read_bytes()
    other = initial_machine(tiny(seed=2))
    assert not eqx.tree_equal(other, initial_machine(tiny()))


THREADS = """
import lantm
from tiny import config
run = lantm.train(config(batches=1), "runs")
print(run.result.get("threads"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted on Linux only")
@pytest.mark.parametrize(("chosen", "told"), [(None, "None"), ("2", "2")])
def test_from_python_too_a_run_has_one_thread_or_says_how_many(chosen, told, tmp_path):
    env = {name: text for name, text in os.environ.items() if name != "NPROC"}
    env |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", THREADS],
        env=env if chosen is None else {**env, "NPROC": chosen},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    *notices, last = done.stdout.splitlines()
    assert last == told
    assert notices == ([] if chosen is None else [MANY_THREADS.format(2)])


# ---- as users have it: in single precision


@pytest.fixture
def single():
    with jax.enable_x64(False):
        yield


@pytest.mark.usefixtures("single", "optimised")
def test_a_run_in_single_precision(tiny, tmp_path):
    config = tiny(keep_all=True)
    with pytest.raises(KeyboardInterrupt):
        lantm.train(config, tmp_path / "stopped", on_progress=interrupt_at(7))
    whole, resumed = (lantm.train(config, tmp_path / name) for name in ("whole", "stopped"))
    assert outcome(whole) == outcome(resumed)
    rows = [[r["validation_coarse"], r["validation_fine"], r["batch"]] for r in whole.metrics()]
    assert eqx.tree_equal(whole.machine("best"), whole.machine(f"{max(rows)[-1]:06d}"))
    assert whole.machine().embedding.weight.dtype == jnp.float32


@pytest.mark.usefixtures("single", "optimised")
@pytest.mark.parametrize("right", [1, 7])
def test_rounding_does_not_choose_the_best(right, tiny, tmp_path, monkeypatch):
    """In single precision 1/640 is more, and 7/640 is less, than in double precision."""
    trainer, coarse = Trainer(lantm.Run.create(tiny(), tmp_path)), right / 640
    chosen = []
    for fine in (0.5, 0.4, 0.6, 0.6):
        monkeypatch.setattr(
            training, "evaluate_batches", lambda *_, fine=fine: lantm.Evaluation(640, fine, coarse)
        )
        before = trainer.run.weights_path("best").read_bytes() if chosen else b""
        trainer.validate(len(chosen))
        chosen.append(trainer.run.weights_path("best").read_bytes() != before)
    assert chosen == [True, False, True, True]


# ---- runs that are stopped


@pytest.mark.parametrize("batch", [3, 20])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(batch, tiny, trained, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        lantm.train(tiny(), tmp_path, on_progress=interrupt_at(batch))
    seen = []
    run = lantm.train(tiny(), tmp_path, on_progress=lambda progress: seen.append(progress.batch))
    assert seen == list(range(batch + 1, 21))
    assert outcome(run) == outcome(trained)


def test_control_c_amid_a_validation(run, trained, monkeypatch):
    """It waits until the batch is done with: what is saved is whole."""
    evaluate_batches = training.evaluate_batches

    def interrupted(machine, batches):
        signal.raise_signal(signal.SIGINT)
        return evaluate_batches(machine, batches)

    monkeypatch.setattr(training, "evaluate_batches", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finish(run)
    monkeypatch.undo()
    assert "000015.safetensors" in checkpoints(run)
    assert outcome(finish(run)) == outcome(trained)


def test_seconds_are_of_all_parts_of_a_run(run):
    path = run.path / "checkpoints" / "000012.safetensors"
    arrays, said = read_arrays(path)
    path.write_bytes(safetensors.numpy.save(arrays, {**said, "seconds": "1000.0"}))
    assert 1000 <= finish(run).result["seconds"] < 1100


def test_a_checkpoint_from_before_seconds_were_counted(run):
    path = run.path / "checkpoints" / "000012.safetensors"
    arrays, said = read_arrays(path)
    assert float(said.pop("seconds")) >= 0
    path.write_bytes(safetensors.numpy.save(arrays, said))
    assert 0 <= finish(run).result["seconds"] < 100


def test_files_have_the_mode_that_the_umask_asks_for(tmp_path):
    before = os.umask(0o027)
    try:
        save_tree(tmp_path / "x.safetensors", {"a": jnp.zeros(1)})
        (tmp_path / "plain").touch()
    finally:
        os.umask(before)
    modes = {(tmp_path / name).stat().st_mode & 0o777 for name in ("x.safetensors", "plain")}
    assert modes == {0o640}


def test_killed_in_five_phases(tiny, trained, deaths, tmp_path):
    """One run, killed again and again; `tools/kill_runs.py` does it at random moments."""
    saved = []
    for phase, die in deaths.items():
        assert die(tiny(), tmp_path) == -signal.SIGKILL, phase
        run = lantm.Run.open(tmp_path / tiny().name)
        assert run.result is None
        saved.append(run.saved)
    assert saved == [None, 5, 5, 10, 20]
    assert outcome(finish(run)) == outcome(trained)
    assert files(run) == files(trained)


# ---- damage


def truncate(path, other):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path, other):
    path.write_bytes(b"")


def flip_a_bit(path, other):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    path.write_bytes(content)


def replace_by_another(path, other):
    shutil.copy(other, path)


@pytest.fixture(scope="module")
def foreign(stopped, tmp_path_factory):
    """A sound checkpoint of another config."""
    folder = tmp_path_factory.mktemp("foreign")
    other = lantm.Run.create(plain(**{**as_settings(stopped.config), "seed": 2}), folder)
    trainer = Trainer(other)
    trainer.save()
    return other.path / "checkpoints" / "000000.safetensors"


def as_settings(config):
    values = config.to_dict()
    return {**values.pop("model"), **values}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "is damaged: "),
        (empty, "is damaged: "),
        (flip_a_bit, "is damaged: its checksum does not fit its content"),
        (replace_by_another, "does not fit: config is "),
    ],
)
def test_a_bad_checkpoint_is_stepped_over(damage, reason, run, foreign, trained):
    newest, notices = run.path / "checkpoints" / "000012.safetensors", []
    damage(newest, foreign)
    finish(run, on_notice=notices.append)
    assert len(notices) == 1
    assert notices[0].startswith(f"stepping over a checkpoint: {newest} {reason}")
    assert "\n" not in notices[0]
    assert outcome(run) == outcome(trained)


def test_without_a_good_checkpoint_a_run_starts_anew(run, trained):
    for path in (run.path / "checkpoints").iterdir():
        truncate(path, None)
    notices, seen = [], []
    finish(run, on_notice=notices.append, on_progress=lambda p: seen.append(p.batch))
    assert len(notices) == 2
    assert seen[0] == 1
    assert outcome(run) == outcome(trained)


def test_a_run_whose_checkpoints_were_removed_is_refused(run, trained):
    """It would begin again, and cut the metrics."""
    shutil.rmtree(run.path / "checkpoints")
    before = (run.path / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"has no checkpoint to go on from, .* go to batch 10; "):
        finish(run)
    assert (run.path / "metrics.jsonl").read_bytes() == before
    (run.path / "metrics.jsonl").unlink()
    assert outcome(finish(run)) == outcome(trained)


@pytest.mark.parametrize("garbage", [b"garbage", b"[1]", b'{"loss": 1}', b"\xff\xfe"])
def test_a_garbage_line_costs_no_other_row(garbage, run, trained):
    file, notices = run.path / "metrics.jsonl", []
    first, second = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([first, garbage, second, b'{"batch": 1']))
    finish(run, on_notice=notices.append)
    assert notices == [f"{file}: leaving out what is damaged, lines of 4: 1"]
    assert outcome(run) == outcome(trained)


@pytest.mark.parametrize(
    ("old", "new"), [('"lr": 0.01', '"lr": 0.02'), ('"layers": 1', '"layers": 2')]
)
def test_a_config_that_was_changed_is_refused(old, new, run):
    file = run.path / "config.json"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ValueError, match="was changed: its settings do not have the digest"):
        lantm.Run.open(run.path)


def test_a_config_from_when_1_differed_from_1_0_keeps_its_digest(run, unchecked):
    file = run.path / "config.json"
    content = json.loads(file.read_text())
    content["config"]["clip"] = 1
    content["digest"] = digest_of({**identity(run.config), "clip": 1})
    file.write_text(json.dumps(content))
    assert lantm.Run.open(run.path).digest == content["digest"] != run.digest


def test_bad_checkpoints_do_not_crowd_out_good_ones(run, foreign):
    """Two of another config, with higher numbers than this run will ever have."""
    for name in ("000098.safetensors", "000099.safetensors"):
        shutil.copy(foreign, run.path / "checkpoints" / name)
    notices, seen = [], []
    with pytest.raises(KeyboardInterrupt):
        finish(run, on_progress=interrupt_at(17), on_notice=notices.append)
    finish(run, on_progress=lambda p: seen.append(p.batch), on_notice=notices.append)
    assert len(notices) == 2
    assert seen == [18, 19, 20]


def test_a_million_batches(tiny, tmp_path):
    """The newest checkpoint is the one with the highest number, however it is spelt."""
    trainer = Trainer(lantm.Run.create(tiny(), tmp_path))
    for batch in (999_998, 999_999, 1_000_000):
        trainer.state = trainer.state._replace(batch=jnp.array(batch, jnp.int32))
        trainer.save()
    assert checkpoints(trainer.run) == ["1000000.safetensors", "999999.safetensors"]
    assert int(Trainer(trainer.run).state.batch) == 1_000_000


def test_metrics_survive_a_resumption(run):
    """They are not emptied to be written anew: being killed at that moment would lose them."""
    path = run.path / "metrics.jsonl"
    with path.open("a") as file:
        file.write('{"batch": 13, "loss": 1.0}\n')
    with path.open() as before:
        Trainer(run)
        assert [json.loads(line)["batch"] for line in before] == [5, 10, 13]
    assert [row["batch"] for row in run.metrics()] == [5, 10]


def test_damage_is_noticed_wherever_it_is(tmp_path):
    """A bit flipped in any byte of a small file, and any length it can be cut to."""
    tree, path = {"a": jnp.arange(3.0), "b": {"c": jnp.arange(2)}}, tmp_path / "x.safetensors"
    save_tree(path, tree, {"config": "1"})
    content = path.read_bytes()
    for i, byte in enumerate(content):
        flipped = content[:i] + bytes([byte ^ 1 << i % 8]) + content[i + 1 :]
        for damaged in (flipped, content[:i]):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"x\.safetensors (is damaged|does not fit): "):
                lantm.load_tree(path, tree, {"config": "1"})


def test_a_full_disk_leaves_the_last_checkpoint(run, trained, monkeypatch):
    before = {path: path.read_bytes() for path in run.path.rglob("*.safetensors")}

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left") as error:
        finish(run)
    monkeypatch.undo()
    assert str(run.path) in str(error.value)
    assert {path: path.read_bytes() for path in run.path.rglob("*.safetensors*")} == before
    assert outcome(finish(run)) == outcome(trained)


@pytest.mark.parametrize(
    ("damage", "reason"), [(truncate, "is damaged"), (flip_a_bit, "is damaged")]
)
def test_damaged_weights_are_refused(damage, reason, run):
    weights = run.weights_path("best")
    assert run.machine().vocabulary == lantm.TASKS["tiny"].vocabulary
    damage(weights, None)
    with pytest.raises(ValueError, match=rf"best\.safetensors {reason}"):
        run.machine()


def test_weights_of_another_run_are_refused(run, tiny, tmp_path):
    other = lantm.Run.create(tiny(seed=2), tmp_path / "other")
    shutil.copy(run.weights_path("best"), other.weights_path("best"))
    with pytest.raises(ValueError, match=r"best\.safetensors does not fit: config is "):
        other.machine()
    with pytest.raises(ValueError, match="checkpoint must be one of best; got 'last'"):
        other.machine("last")


# ---- losses that are no numbers


def spoil(monkeypatch, index, *, before):
    """Make the parameters infinite before or after an update."""
    step = Trainer.step

    def spoilt_step(trainer, i):
        loss = None if before and i == index else step(trainer, i)
        if i == index:
            parameters = jax.tree.map(lambda leaf: leaf * jnp.inf, trainer.state.parameters)
            trainer.state = trainer.state._replace(parameters=parameters, average=parameters)
        return step(trainer, i) if loss is None else loss

    monkeypatch.setattr(Trainer, "step", spoilt_step)


@pytest.mark.parametrize(
    ("before", "index", "reason"),
    [
        (True, 12, "the loss became nan at batch 13"),
        (False, 14, "a parameter was not finite any more after batch 15"),
    ],
)
def test_a_loss_that_is_no_number_stops_the_run(before, index, reason, run, trained, monkeypatch):
    kept = checkpoints(run), {name: run.machine(name) for name in ("best", "last")}
    spoil(monkeypatch, index, before=before)
    with pytest.raises(NonFiniteError) as error:
        finish(run)
    monkeypatch.undo()
    assert str(error.value) == reason
    assert run.result == {"status": "failed", "error": reason}
    assert checkpoints(run) == kept[0]
    assert all(eqx.tree_equal(run.machine(name), machine) for name, machine in kept[1].items())
    assert outcome(finish(run)) == outcome(trained)


# ---- what users add


@dataclass(frozen=True)
class Remainder(Copy):
    """As many symbols as the size has beyond a multiple of three, and one: 3, 1, 2."""

    name: ClassVar[str] = "remainder"
    symbols: ClassVar[int] = 7
    largest: ClassVar[int] = 4

    def problems(self, rng, size, batch):
        inputs = self.draw(rng, batch, size)
        return inputs, inputs[:, : size % 3 + 1]


def test_the_largest_size_need_not_have_the_longest_answer(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(lantm.TASKS, "remainder", Remainder())
    trainer = Trainer(lantm.Run.create(tiny(task="remainder"), tmp_path))
    sizes = [trainer.feed.stream.size(i) for i in range(20)]
    assert np.isfinite(trainer.step(sizes.index(2)))


def test_data_of_growing_sizes(tiny, tmp_path):
    """Every batch of the file has room, also those that come late."""
    (tmp_path / "data.txt").write_text("^1234561#1$\n" + "^1#1$\n" * 19)
    trainer = Trainer(lantm.Run.create(tiny(data=str(tmp_path / "data.txt"), growth=0.9), tmp_path))
    feed = trainer.feed
    for stream in (feed.stream, feed.stream.stream):
        assert stream.longest() == (8, 4)
    feed.stream = feed.stream.stream
    assert np.isfinite(trainer.step(0))


def test_problems_of_one_size_that_differ_in_length(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(lantm.TASKS, "remainder", Remainder())
    trainer = Trainer(lantm.Run.create(tiny(task="remainder"), tmp_path))
    trainer.feed.stream = {0: lantm.Batch(np.zeros((32, 9), int), np.zeros((32, 2), int))}
    with pytest.raises(ValueError, match=r"^a problem has 9 time steps, 5 is the most expected"):
        trainer.step(0)


@dataclass(frozen=True)
class Successor(Copy):
    """Every symbol's successor."""

    name: ClassVar[str] = "successor"
    symbols: ClassVar[int] = 7
    largest: ClassVar[int] = 3

    def problems(self, rng, size, batch):
        inputs = self.draw(rng, batch, size)
        return inputs, (inputs + 1) % self.symbols


def test_an_own_task_on_an_own_key_space(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(lantm.TASKS, "successor", Successor())
    run = lantm.train(tiny(task="successor", space="turntable"), tmp_path)
    assert isinstance(run.machine().cell.access.space, own_space.Turntable)
    losses = [row["loss"] for row in run.metrics()]
    assert losses[-1] < losses[0]
    scores = lantm.evaluate(run, [3], examples=32)
    assert [(score.checkpoint, score.source) for score in scores] == [("best", 3), ("last", 3)]
