"""Training that goes by how well it goes: the rules by hand, and runs that keep to them."""

import functools
import json
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lantm
from lantm.tasks.streams import SmallestFirst, training_stream
from lantm.training import trainer as training
from lantm.training.checkpoints import read_arrays
from lantm.training.starts import Look, Outcome, best_start, is_over, looks
from lantm.training.steering import (
    TABLE_SIZE,
    first_steering,
    is_forgotten,
    is_solved,
    is_steered,
    normal_table,
    shaken_less,
    slice_normals,
    steer,
)
from lantm.training.train import finish
from lantm.training.trainer import NonFiniteError, Trainer
from lantm.training.updates import (
    CONTROLLER_NOISE,
    NOISE,
    initial_machine,
    noise_key,
    start_key,
)

pytest_plugins = ["tiny"]

ROOT = Path(__file__).parents[1]

plain = functools.partial(lantm.configure, "plain")
"""Where nothing is steered but by settings of one's own."""


# ---- settings


@pytest.mark.parametrize(("recipe", "digest"), [("plain", "3631f990"), ("paper", "65e85dda")])
def test_old_configs_keep_their_digests_and_nothing_of_them_is_steered(recipe, digest):
    config = lantm.configure(recipe)
    assert config.digest == digest
    assert not is_steered(config)


@pytest.mark.parametrize(
    "setting",
    [
        {"growth_by": "performance"},
        {"noise": 1.0},
        {"rate_by": "performance"},
        {"go_back": True},
        {"solved": 0.99},
    ],
)
def test_a_steered_run_has_another_digest(setting):
    config = plain(**setting)
    assert is_steered(config)
    assert config.digest != plain().digest


@pytest.mark.parametrize(
    "setting",
    [
        {"growth_by": "performance", "growth_of": "answers"},
        {"sizes_per_batch": 4},
        {"optimiser": "adam", "steady": 2.0},
        {"slow_cells": 5},
        {"blank": True},
    ],
)
def test_later_settings_are_in_the_digest_only_where_they_are_given(setting):
    before, (name, value) = plain(), setting.popitem()
    neutral = before.flat()[name]
    assert plain(**setting, **{name: value}).digest != plain(**setting).digest
    assert plain(**setting, **{name: neutral}).digest == plain(**setting).digest


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"growth_by": "time"}, "growth_by must be one of clock, performance; got 'time'"),
        ({"rate_by": "x"}, "rate_by must be one of clock, performance; got 'x'"),
        (
            {"growth_by": "performance", "growth": 0.4},
            "growth is only for growth_by clock, got 0.4",
        ),
        ({"noise": -0.1}, "noise must be a number from 0, got -0.1"),
        ({"growth_of": "x"}, "growth_of must be one of sizes, answers, turns; got 'x'"),
        ({"growth_of": "turns"}, "growth_of is only for growth_by performance, got 'turns'"),
        ({"sizes_per_batch": 0}, "sizes_per_batch must be a whole number of at least 1, got 0"),
        ({"sizes_per_batch": 33}, "sizes_per_batch must be at most 32, got 33"),
        ({"steady": 2.0}, "steady is only for adam, got 2.0 for rmsprop"),
        ({"optimiser": "adam", "steady": 0.0}, "steady must be a number above 0, got 0.0"),
        ({"slow_cells": -1}, "slow_cells must be from 0 to 50, got -1"),
        ({"slow_cells": 51}, "slow_cells must be from 0 to 50, got 51"),
        (
            {"controller": "gru", "slow_cells": 5},
            "slow_cells is only for lstm controllers, got 5",
        ),
        (
            {"model": "transformer", "slow_cells": 5},
            "slow_cells is only for lstm controllers, got 5",
        ),
        (
            {"model": "ram", "blank": True},
            "blank is only for lantm, lantm_s, slantm, slantm_s; got True for ram",
        ),
        ({"beta2": 0.9}, "beta2 is only for adam, got 0.9 for rmsprop"),
        ({"optimiser": "adam", "beta2": 1.0}, "beta2 must be from 0 to below 1, got 1.0"),
        ({"solved": 0.0}, "solved must be above 0 and at most 1, got 0.0"),
        ({"solved": 1.1}, "solved must be above 0 and at most 1, got 1.1"),
        ({"starts": 0}, "starts must be a whole number of at least 1, got 0"),
        ({"starts": 2, "batches": 2500}, "start_batches must be below batches, 2500, got 2500"),
    ],
)
def test_bad_values_are_refused_in_one_line(setting, reason):
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        plain(**setting)


def test_the_command_of_a_steered_run():
    assert lantm.configure().command == "lantm train copy"
    assert plain().command == "lantm train copy --recipe plain"
    other = lantm.configure(anchored=False, starts=2, solved=None)
    assert other.command == "lantm train copy --solved none --starts 2 --no-anchored"


# ---- the rules, on made-up accuracies and losses


def after(config, coarse, loss=0.0, /, batch=1, **before):
    """The steering after a batch with that share of right answers and that loss."""
    changes = {name: jnp.array(value, float) for name, value in before.items()}
    steering = first_steering(config)._replace(**changes)
    return steer(config, steering, jnp.array(batch), jnp.array(coarse), jnp.array(loss))


def test_the_means_forget_slowly():
    config = plain(solved=1.0)
    first = after(config, 1.0, 0.3)
    assert np.allclose([first.mean, first.loss], [0.02, 0.98 + 0.02 * 0.3])
    second = steer(config, first, jnp.array(2), jnp.array(0.5), jnp.array(0.1))
    assert np.isclose(second.mean, 0.98 * 0.02 + 0.02 * 0.5)
    assert np.isclose(second.loss, 0.98 * first.loss + 0.02 * 0.1)


@pytest.mark.parametrize(
    ("of", "mean", "batches"),
    [
        *(("sizes", mean, pace) for mean, pace in [(0.95, 500), (0.35, 1500), (0.25, 6000)]),
        *(("answers", mean, pace) for mean, pace in [(0.95, 500), (0.65, 1500), (0.55, 20_000)]),
    ],
)
def test_problems_grow_the_faster_the_better_it_goes(of, mean, batches):
    config = plain(growth_by="performance", growth_of=of)
    first = first_steering(config)
    assert np.isclose(first.share, 0.1)
    assert np.isclose(after(config, mean, mean=mean).share - first.share, 0.9 / batches)


def test_starts_take_turns_to_be_patient():
    config, given = plain(growth_by="performance", growth_of="turns"), map(jnp.array, (1, 0.0, 1.0))
    batch, coarse, loss = given
    shares = [
        steer(config, first_steering(config), batch, coarse, loss, jnp.array(start)).share
        for start in range(4)
    ]
    assert np.allclose(shares, [0.1 + 0.9 / pace for pace in (6000, 20_000) * 2], atol=1e-9)


def test_problems_stop_growing_when_all_are_there():
    assert after(plain(growth_by="performance"), 1.0, share=0.99999).share == 1


@pytest.mark.parametrize(
    ("mean", "noise", "expected"),
    [(0.95, 0.2, 0.201), (0.85, 0.2, 0.2), (0.7, 0.2, 0.199), (0.95, 0.5, 0.5), (0.7, 0.0, 0.0)],
)
def test_noise_goes_up_and_down_below_its_ceiling(mean, noise, expected):
    assert np.isclose(after(plain(noise=0.5), mean, mean=mean, noise=noise).noise, expected)


@pytest.mark.parametrize(
    "growing",
    [{"growth_by": "performance"}, {"growth": 0.4, "batches": 1000}],
)
def test_while_problems_grow_there_is_no_noise(growing):
    config = plain(noise=1.0, **growing)
    assert after(config, 1.0, batch=400, mean=1.0).noise == 0
    assert np.isclose(after(config, 1.0, batch=401, mean=1.0, share=1.0).noise, 0.001)


@pytest.mark.parametrize(
    ("loss", "mean", "rate"),
    [
        (0.15, 1.0, 0.5),
        (0.06, 1.0, 0.2),
        (0.06, 0.5, 0.35),
        (0.0, 0.5, 0.15),
        (0.0, 1.0, 0.1),  # not less than a tenth
        (0.3, 1.0, 1.0),
        (0.6, 0.0, 1.0),  # not more than all of it
    ],
)
def test_the_rate_follows_the_loss_and_what_is_wrong(loss, mean, rate):
    config = plain(rate_by="performance", growth_by="performance")
    assert np.isclose(after(config, mean, loss, loss=loss, mean=mean).rate, rate)


def test_the_rate_is_whole_at_first_and_comes_back_when_the_loss_does():
    """As long as problems grow."""
    config = plain(rate_by="performance", growth_by="performance")
    steering = first_steering(config)
    assert steering.rate == 1

    def rate_after(steering, batches, coarse, loss):
        for batch in range(batches):
            numbers = jnp.array(batch + 1), jnp.array(coarse), jnp.array(loss)
            steering = steer(config, steering, *numbers)
        return steering, float(steering.rate)

    steering, low = rate_after(steering, 300, 1.0, 0.0)
    assert np.isclose(low, 0.1)
    _, high = rate_after(steering, 300, 0.0, 0.5)
    assert np.isclose(high, 1.0)


def test_the_rate_stays_low_once_the_training_sizes_were_learned():
    config = plain(rate_by="performance", growth_by="performance")
    bad = {"loss": 0.6, "share": 1.0}
    learning, learned = (after(config, mean, 0.6, mean=mean, **bad) for mean in (0.85, 0.95))
    assert (learning.rate, learned.rate) == (1.0, jnp.array(0.3))
    assert after(config, 0.95, 0.6, mean=0.95, loss=0.6, share=0.99).rate == 1, "still growing"
    lost = steer(config, learned._replace(mean=jnp.array(0.2)), *map(jnp.array, (9, 0.0, 0.6)))
    assert lost.rate == jnp.array(0.3)
    low = steer(config, learned._replace(loss=jnp.array(0.0)), *map(jnp.array, (9, 1.0, 0.0)))
    assert np.isclose(low.rate, 0.1, atol=0.02)


def test_one_bad_batch_does_not_count_for_many():
    config = plain(rate_by="performance")
    bad, worse = (after(config, 1.0, loss, loss=0.03, mean=1.0) for loss in (0.6, 1e6))
    assert bad.loss == worse.loss
    assert np.isclose(worse.rate, (0.98 * 0.03 + 0.02 * 0.6) / 0.3)


def test_the_rate_of_the_clock_is_not_touched():
    assert after(plain(solved=1.0), 1.0, loss=0.0, mean=1.0).rate == 1


def test_what_is_forgotten_and_how_it_is_shaken_less():
    assert is_forgotten(0.95, 0.84)
    assert not is_forgotten(0.95, 0.86)
    assert not is_forgotten(0.8, 0.1), "it was not learned yet"
    assert not is_forgotten(-1.0, 0.0)
    steering = first_steering(plain(go_back=True, noise=1.0))
    for noise, ceiling in ((0.8, 0.4), (0.1, 0.3)):
        back = shaken_less(steering._replace(noise=jnp.array(noise)))
        assert np.allclose([back.noise, back.ceiling], [noise / 2, ceiling])
    low = shaken_less(steering._replace(ceiling=jnp.array(0.2), noise=jnp.array(0.2)))
    assert np.allclose([low.noise, low.ceiling], [0.1, 0.2]), "the ceiling never rises"
    lost = shaken_less(steering._replace(mean=jnp.array(0.1), loss=jnp.array(0.6)))
    assert (lost.mean, lost.loss) == (1, 0), "the rate is not that of the weights that were lost"


@pytest.mark.parametrize(
    ("settings", "changes", "coarse", "solved"),
    [
        ({}, {}, 0.99, True),
        ({}, {}, 0.98, False),
        ({"noise": 1.0}, {"noise": 0.1}, 1.0, True),
        ({"noise": 1.0}, {"noise": 0.09}, 1.0, False),
        ({"noise": 0.05}, {"noise": 0.05}, 1.0, True),
        ({"growth_by": "performance"}, {"share": 0.9}, 1.0, False),
        ({"growth_by": "performance"}, {"share": 1.0}, 1.0, True),
        ({"growth": 0.5, "batches": 200}, {}, 1.0, False),
        ({"solved": None}, {}, 1.0, False),
    ],
)
def test_when_a_task_is_solved(settings, changes, coarse, solved):
    config = plain(**{"solved": 0.99} | settings)
    arrays = {name: jnp.array(value) for name, value in changes.items()}
    steering = first_steering(config)._replace(**arrays)
    assert is_solved(config, steering, 100, coarse) == solved


# ---- draws


def test_draws_depend_on_seed_number_and_share_alone():
    stream = training_stream(lantm.TASKS["copy"], "small", 1)
    drawn, again, other = (SmallestFirst(stream, seed) for seed in (1, 1, 2))
    few = [drawn.position(i, 0.1) for i in range(200)]
    assert few == [again.position(i, 0.1) for i in range(200)]
    assert few != [other.position(i, 0.1) for i in range(200)]
    sizes = sorted(map(stream.size, range(len(stream))))
    assert max(map(stream.size, few)) <= sizes[50]
    half = [stream.size(drawn.position(i, 0.5)) for i in range(200)]
    assert sizes[50] < max(half) <= sizes[250]
    assert [drawn.position(i, 1.0) for i in (3, 700)] == [3, 700]


def test_slices_of_the_table_are_normals_and_differ_by_key():
    table = normal_table()
    assert table.size == TABLE_SIZE
    keys = [noise_key(1, batch, CONTROLLER_NOISE) for batch in (0, 0, 1)]
    first, again, other = (slice_normals(table, (50, 40, 30), key) for key in keys)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert abs(np.mean(first)) < 0.02
    assert abs(np.std(first) - 1) < 0.02


def test_a_table_that_is_too_small_is_repeated():
    table = jnp.arange(10.0)
    slices = slice_normals(table, (5, 7), jax.random.key(3)).ravel()
    assert np.array_equal(np.diff(slices) % 10, np.ones(34))


def test_no_key_serves_two_purposes():
    keys = [noise_key(5, n, purpose) for n in range(9) for purpose in (NOISE, CONTROLLER_NOISE)]
    keys += [start_key(plain(seed=5), n) for n in range(1, 9)]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == len(keys)


# ---- the machine


def test_noise_reaches_both_phases_of_the_machine(tiny):
    machine = initial_machine(tiny(seed=4))
    tokens = jnp.zeros((2, 3), int)
    plain = machine(tokens, 4)
    none = jnp.zeros((7, 2, machine.cell.noise_size))
    assert np.allclose(machine(tokens, 4, noise=none), plain, atol=1e-12)
    while_asking = machine(tokens, 4, noise=none.at[1, 0].set(1.0))
    assert not np.allclose(while_asking[0], plain[0])
    assert np.allclose(while_asking[1], plain[1], atol=1e-12)
    while_answering = machine(tokens, 4, noise=none.at[5].set(1.0))
    assert np.allclose(while_answering[:, :2], plain[:, :2], atol=1e-12)
    assert not np.allclose(while_answering[:, 2], plain[:, 2])
    with pytest.raises(ValueError, match=r"noise must have shape \(7, 2, noise_size\)"):
        machine(tokens, 4, noise=none[1:])


# ---- runs

STEERED = {
    "optimiser": "adam",
    "beta2": 0.99,
    "steady": 2.0,
    "slow_cells": 2,
    "blank": True,
    "anchored": True,
    "sizes_per_batch": 4,
    "growth_by": "performance",
    "growth_of": "turns",
    "noise": 1.0,
    "rate_by": "performance",
    "go_back": True,
    "solved": 1.0,
    "starts": 2,
    "start_batches": 5,
}
"""Everything on."""


@pytest.fixture
def eager(own_updates, monkeypatch):
    """Rules under which everything happens within a few batches."""
    for pace in ("EAGER", "PATIENT"):
        monkeypatch.setattr(f"lantm.training.steering.{pace}", {0.9: 3, 0.3: 3, 0.0: 3})
    monkeypatch.setattr("lantm.training.steering.GOOD", -1.0)
    monkeypatch.setattr("lantm.training.steering.FULL_RATE_LOSS", 3.0)
    monkeypatch.setattr("lantm.training.trainer.LOG_EVERY", 2)


def outcome(run):
    """All that a run leaves: states, weights, metrics and result, but for the time it took."""
    files = sorted(run.path.rglob("*.safetensors"))
    arrays = {str(file.relative_to(run.path)): read_arrays(file) for file in files}
    content = {
        name: ({k: v.tobytes() for k, v in found.items()}, said.get("batch"))
        for name, (found, said) in arrays.items()
    }
    result = {name: value for name, value in run.result.items() if name != "seconds"}
    return content, (run.path / "metrics.jsonl").read_text(), result


def interrupt_after(updates):
    """Control-C after so many updates, of whatever start."""
    seen = []

    def on_progress(progress):
        seen.append(progress.batch)
        if len(seen) == updates:
            raise KeyboardInterrupt

    return on_progress


@pytest.mark.usefixtures("eager")
def test_a_run_with_everything_on_resumes_bit_for_bit(tiny, tmp_path):
    """Stopped in the first start, between two, in the second, and after one was chosen."""
    config = tiny(**STEERED, batches=16)
    whole = lantm.train(config, tmp_path / "whole")
    for updates in (2, 3, 1, 2, 4):
        with pytest.raises(KeyboardInterrupt):
            lantm.train(config, tmp_path / "parts", on_progress=interrupt_after(updates))
    parts = lantm.train(config, tmp_path / "parts")
    assert outcome(parts)[1:] == outcome(whole)[1:]
    for name in ("best", "last"):
        assert eqx.tree_equal(parts.machine(name), whole.machine(name))
    rows = list(whole.rows())
    assert {row["start"] for row in rows} == {0, 1}
    last = rows[-1]
    assert last["share"] == 1
    assert last["noise"] > 0
    assert last["rate"] < 1


@pytest.mark.usefixtures("eager")
def test_a_run_that_is_killed_amid_its_starts(tiny, tmp_path, monkeypatch):
    """Nothing is saved at that moment: what was since the last checkpoint comes again."""
    config = tiny(**STEERED, batches=16)
    whole = lantm.train(config, tmp_path / "whole")
    step, steps = Trainer.step, []

    def mortal(trainer, index):
        steps.append(index)
        if len(steps) in (4, 9, 13):
            raise MemoryError  # as a kill: nobody saves
        return step(trainer, index)

    monkeypatch.setattr(Trainer, "step", mortal)
    for _ in range(3):
        with pytest.raises(MemoryError):
            lantm.train(config, tmp_path / "killed")
    assert outcome(lantm.train(config, tmp_path / "killed")) == outcome(whole)


def test_noise_and_rate_reach_the_update(tiny, tmp_path):
    trainer = Trainer(lantm.Run.create(tiny(noise=1.0, rate_by="performance", seed=3), tmp_path))
    before = trainer.state
    losses, steps = [], []
    for noise, rate in ((0.0, 1.0), (0.5, 1.0), (0.5, 1.0), (0.0, 0.5)):
        steering = before.steering._replace(noise=jnp.array(noise), rate=jnp.array(rate))
        trainer.state = before._replace(steering=steering)
        losses.append(trainer.step(0))
        moved = trainer.state.parameters.embedding.weight - before.parameters.embedding.weight
        steps.append(np.asarray(moved))
    assert losses[0] == losses[3] != losses[1] == losses[2]
    assert np.allclose(steps[3], steps[0] / 2, rtol=1e-9)


@pytest.mark.usefixtures("own_updates")
def test_noise_is_spread_over_a_batch(tiny, tmp_path, monkeypatch):
    """From none for the first problem to the largest for the last."""

    def sums(logits, *_):
        return lantm.Scores(jnp.sum(logits[0]), jnp.sum(logits[-1]))

    monkeypatch.setattr("lantm.training.updates.score", sums)
    trainer = Trainer(lantm.Run.create(tiny(noise=1.0, seed=8), tmp_path))
    before = trainer.state

    def logits_of_first_and_last(noise):
        steering = before.steering._replace(noise=jnp.array(noise))
        trainer.state = before._replace(steering=steering)
        trainer.step(0)
        return trainer.state.tally[1:3]

    still, shaken = map(logits_of_first_and_last, (0.0, 0.5))
    assert np.isclose(still[0], shaken[0], rtol=1e-12)
    assert not np.isclose(still[1], shaken[1], rtol=1e-3)


def scores_of(monkeypatch, by_call):
    """Evaluations as they come: coarse accuracies, the last one for ever."""
    given = list(by_call)

    def fake(machine, batches):
        coarse = given.pop(0) if len(given) > 1 else given[0]
        return lantm.Evaluation(32, coarse, coarse)

    monkeypatch.setattr(training, "evaluate_batches", fake)


def test_a_validation_far_below_the_best_goes_back_to_its_weights(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.95, 0.86, 0.84])
    steps = {"optimiser": "adam", "validate_every": 1, "validate_from": 1}
    config = tiny(go_back=True, noise=1.0, seed=3, **steps)
    run = lantm.Run.create(config, tmp_path)
    trainer, rows = Trainer(run), []
    shaken = trainer.state.steering._replace(noise=jnp.array(0.8))
    for done in (1, 2, 3):
        trainer.state = trainer.state._replace(steering=shaken)
        trainer.step(done - 1)
        rows.append(trainer.log(done))
        if done == 1:
            best = trainer.state.average
    assert ["gone_back" in row for row in rows] == [False, False, True]
    for tree in (trainer.state.parameters, trainer.state.average):
        assert eqx.tree_equal(tree, best)
    steering = trainer.state.steering
    assert np.allclose([steering.noise, steering.ceiling], [0.4, 0.4], atol=0.001)
    momentum = optax.tree.get(trainer.state.optimiser, "mu")
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(momentum))
    assert eqx.tree_equal(run.machine("last"), run.machine("best"))


def test_without_going_back_nothing_is_brought_back(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.95, 0.1])
    config = tiny(rate_by="performance", validate_every=1, validate_from=1, seed=3)
    trainer = Trainer(lantm.Run.create(config, tmp_path))
    for done in (1, 2):
        trainer.step(done - 1)
        row = trainer.log(done)
    assert "gone_back" not in row


def test_a_solved_run_ends_and_says_so(tiny, tmp_path, monkeypatch):
    config = tiny(solved=0.9)
    scores_of(monkeypatch, [0.5, 0.95])
    run = lantm.train(config, tmp_path)
    assert run.result["solved"] == 10
    rows = list(run.metrics())
    assert [row["batch"] for row in rows] == [5, 10]
    assert [row.get("solved") for row in rows] == [None, True]


def test_a_run_that_is_killed_when_solved_stays_solved(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.5, 0.95])
    config = tiny(solved=0.9)

    def killed(*arguments, **settings):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("lantm.training.train.evaluate", killed)
        with pytest.raises(MemoryError):
            lantm.train(config, tmp_path)
    scores_of(monkeypatch, [0.0])
    seen = []
    run = lantm.train(config, tmp_path, on_progress=seen.append)
    assert seen == []
    assert run.result["solved"] == 10


def test_a_run_that_is_not_solved_says_nothing_of_it(trained):
    assert "solved" not in trained.result
    assert "start" not in trained.result


def test_checkpoints_of_plain_runs_are_as_they_were(trained):
    """Those from before there was any steering can be gone on from."""
    arrays, _ = read_arrays(trained.path / "checkpoints" / "000020.safetensors")
    parts = {name.split(".")[0] for name in arrays}
    assert parts == {"parameters", "average", "optimiser", "batch", "tally", "best"}


# ---- starts


def test_when_starts_are_looked_at_and_which_goes_on():
    assert looks(plain(starts=4)) == list(range(500, 5001, 500))
    assert looks(plain(starts=4, batches=2600)) == list(range(500, 2501, 500))
    assert Look(0.0, 0.95, 0.9).is_general, "fine accuracy decides, then coarse"
    assert not Look(1.0, 0.94, 1.0).is_learned
    assert not Look(1.0, 1.0, 0.89).is_general
    good, poor = Look(0.0, 0.5), Look(0.0, 0.4)
    config = plain(starts=4)
    assert [is_over(config, batch, good) for batch in (1500, 2000, 2500)] == [False, False, True]
    assert [is_over(config, batch, poor) for batch in (1000, 1500, 2500)] == [False, True, True]
    scores = [(0.1, 0.9, -1.0), (0.3, 0.5, -1.0), (0.3, 0.6, -1.0), (0.3, 0.6, -1.0)]
    outcomes = {number: Outcome(5, *found) for number, found in enumerate(scores)}
    assert best_start(outcomes) == 2
    assert best_start(outcomes | {4: Outcome(10, 0.2, 0.95, 0.1)}) == 4, "it has learned"


def test_the_first_start_is_the_machine_of_a_run_without_starts(tiny):
    config = tiny(seed=6)  # not made by a program that another test did not optimise
    alone = initial_machine(config)
    keys = [start_key(config, number) for number in range(3)]
    first, second, third = (initial_machine(config, key) for key in keys)
    assert eqx.tree_equal(alone, first)
    different = [m.cell.interface.weight for m in (first, second, third)]
    assert not np.array_equal(different[0], different[1])
    assert not np.array_equal(different[1], different[2])


@pytest.mark.parametrize(
    ("scores", "chosen", "trained_to"),
    [
        ([0.96, 0.9, 0.0], 0, [1]),
        ([0.1, 0.96, 0.9, 0.0], 0, [2]),
        ([0.1, 0.2, 0.45, 0.3, 0.94, 0.4, 0.5, 0.95, 0.9, 0.0], 1, [4, 4]),
        ([0.1, 0.2, 0.5, 0.5, 0.94, 0.4, 0.5, 0.95, 0.9, 0.0], 1, [5, 3]),
        ([0.1, 0.2, 0.44, 0.4, 0.95, 0.9, 0.0], 1, [3, 2]),
        ([*[0.96, 0.89] * 10, 0.96, 0.9, 0.0], 1, [10, 1]),
        ([*[0.96, 0.89] * 7, 0.94, 0.96, 0.9, 0.0], 1, [8, 1]),
        ([*[0.5] * 5, *[0.5] * 4, 0.7, *[0.8] * 4, 0.6, 0.0], 1, [5, 5, 5]),
    ],
)
def test_starts_are_chosen_by_the_rule(scores, chosen, trained_to, tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, scores)
    run = lantm.train(tiny(starts=3, start_batches=5, batches=10), tmp_path)
    assert run.result["start"] == chosen
    rows = list(run.rows())
    looked = [row for row in rows if "look_coarse" in row]
    ends = {row["start"]: row["batch"] for row in looked}
    assert list(ends.values()) == trained_to
    assert {row["start"] for row in run.metrics()} == {chosen}
    validated = [(row["start"], row["batch"]) for row in rows if "validation_coarse" in row]
    assert validated == [(chosen, batch) for batch in sorted({trained_to[chosen], 5, 10})]


def test_a_start_goes_on_by_its_fine_accuracy(tiny, tmp_path, monkeypatch):
    """Answers of which hardly any is right as a whole: only few of their symbols are wrong."""
    looked = iter([(0.94, 0.5), (0.96, 0.1), (0.99, 0.9)])  # fine and coarse
    monkeypatch.setattr(
        training, "evaluate_batches", lambda *_: lantm.Evaluation(32, *next(looked, (0.0, 0.0)))
    )
    run = lantm.train(tiny(starts=3, start_batches=5, batches=10), tmp_path)
    assert [start["batch"] for start in run.result["starts"]] == [2]


def test_a_start_may_have_solved_the_task(tiny, tmp_path, monkeypatch):
    """It is validated before it goes on."""
    scores_of(monkeypatch, [0.1, 0.96, 0.9, 0.95, 0.0])
    config = tiny(starts=2, start_batches=5, batches=10, solved=0.9)
    run = lantm.train(config, tmp_path)
    assert run.result["solved"] == 2
    assert eqx.tree_equal(run.machine("best"), run.machine("last"))
    assert [row["batch"] for row in run.metrics()] == [1, 2, 2]


def test_a_start_that_does_not_stay_finite_is_passed_over(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.1])
    step, config, notices = Trainer.step, tiny(starts=2, start_batches=5, batches=6), []

    def spoilt(trainer, index):
        if trainer.numbered["start"] in bad and index == 1:
            raise NonFiniteError("the loss became nan at batch 2")
        return step(trainer, index)

    monkeypatch.setattr(Trainer, "step", spoilt)
    bad = {0}
    run = lantm.train(config, tmp_path / "one", on_notice=notices.append)
    assert run.result["start"] == 1
    assert notices[0] == "start 0: the loss became nan at batch 2"
    bad = {0, 1}
    with pytest.raises(NonFiniteError, match="no start stayed finite"):
        lantm.train(config, tmp_path / "none", on_notice=notices.append)


def test_saved_is_that_of_the_newest_start(tiny, tmp_path):
    config = tiny(starts=2, start_batches=5, batches=6)
    with pytest.raises(KeyboardInterrupt):
        lantm.train(config, tmp_path, on_progress=interrupt_after(5))
    run = lantm.Run.open(tmp_path / config.name)
    assert run.saved == 2
    assert finish(run).saved == 6


# ---- what pages say


def test_the_page_has_every_setting_and_the_recipe():
    page = (ROOT / "docs" / "learning.md").read_text()
    names = [
        "homing",
        "blank",
        "growth-by",
        "growth-of",
        "sizes-per-batch",
        "noise",
        "rate-by",
        "beta2",
        "steady",
        "slow-cells",
        "go-back",
        "solved",
        "starts",
        "start-batches",
    ]
    assert [name for name in names if f"`--{name}" not in page] == []
    assert "--recipe plain" in page


def test_rows_are_plain_json(tiny, tmp_path):
    run = lantm.train(tiny(solved=1.0, noise=0.1), tmp_path)
    assert all(json.loads(line) for line in run.metrics_lines())
