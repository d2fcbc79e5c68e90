"""Training that goes by how well it goes: the rules by hand, and runs that keep to them."""

import json
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.tasks.streams import SmallestFirst, training_stream
from lantm.training import trainer as training
from lantm.training.checkpoints import read_arrays
from lantm.training.starts import (
    Outcome,
    best_start,
    is_accepted,
    looks,
)
from lantm.training.steering import (
    TABLE_SIZE,
    first_steering,
    gone_back,
    is_lost,
    is_solved,
    is_steered,
    is_worth_keeping,
    keep,
    normal_table,
    shaken_less,
    slice_normals,
    steer,
)
from lantm.training.trainer import NonFiniteError, Trainer, finish
from lantm.training.updates import (
    CONTROLLER_NOISE,
    NOISE,
    initial_machine,
    noise_key,
    start_key,
)

pytest_plugins = ["tiny"]

ROOT = Path(__file__).parents[1]


# ---- settings


@pytest.mark.parametrize(("recipe", "digest"), [("default", "3631f990"), ("paper", "65e85dda")])
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
    config = lantm.configure(**setting)
    assert is_steered(config)
    assert config.digest != lantm.configure().digest


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
        lantm.configure(**setting)


def test_the_command_of_a_steered_run():
    assert lantm.configure("steered").command == "lantm train copy --recipe steered"
    other = lantm.configure("steered", anchored=False, starts=2, solved=None)
    assert other.command == (
        "lantm train copy --recipe steered --solved none --starts 2 --no-anchored"
    )


# ---- the rules, on made-up accuracies


def steered_by(config, accuracies):
    """What there is after each batch with these shares of right answers."""
    steering, all_of_them = first_steering(config, None, None), []
    for batch, coarse in enumerate(accuracies, start=1):
        steering = steer(config, steering, jnp.array(batch), jnp.array(coarse))
        all_of_them.append(steering)
    return all_of_them


def test_the_mean_forgets_slowly():
    first, second = steered_by(lantm.configure(solved=1.0), [1.0, 0.5])
    assert np.isclose(first.mean, 0.02)
    assert np.isclose(second.mean, 0.98 * 0.02 + 0.02 * 0.5)


@pytest.mark.parametrize(("coarse", "batches"), [(0.95, 500), (0.5, 1500), (0.3, 6000)])
def test_sizes_grow_the_faster_the_better_it_goes(coarse, batches):
    config = lantm.configure(growth_by="performance")
    first = first_steering(config, None, None)
    assert np.isclose(first.share, 0.1)
    learned = first._replace(mean=jnp.array(coarse))
    after = steer(config, learned, jnp.array(1), jnp.array(coarse))
    assert np.isclose(after.share - first.share, 0.9 / batches)


def test_sizes_stop_growing_when_all_are_there():
    config = lantm.configure(growth_by="performance")
    almost = first_steering(config, None, None)._replace(share=jnp.array(0.99999))
    assert steer(config, almost, jnp.array(1), jnp.array(1.0)).share == 1


@pytest.mark.parametrize(
    ("mean", "noise", "after"),
    [(0.95, 0.2, 0.201), (0.85, 0.2, 0.2), (0.7, 0.2, 0.199), (0.95, 0.5, 0.5), (0.7, 0.0, 0.0)],
)
def test_noise_follows_the_mean_within_its_bounds(mean, noise, after):
    config = lantm.configure(noise=0.5)
    before = first_steering(config, None, None)
    before = before._replace(mean=jnp.array(mean), noise=jnp.array(noise))
    assert np.isclose(steer(config, before, jnp.array(1), jnp.array(mean)).noise, after)


@pytest.mark.parametrize(
    "growing",
    [{"growth_by": "performance"}, {"growth": 0.4, "batches": 1000}],
)
def test_while_sizes_grow_neither_noise_nor_rate_changes(growing):
    config = lantm.configure(noise=1.0, rate_by="performance", **growing)
    steering = first_steering(config, None, None)._replace(mean=jnp.array(1.0))
    growing = steer(config, steering, jnp.array(400), jnp.array(1.0))
    assert (growing.noise, growing.rate) == (0, 1)
    grown = steer(config, steering._replace(share=jnp.array(1.0)), jnp.array(420), jnp.array(1.0))
    assert (grown.noise, grown.rate) == (jnp.array(0.001), jnp.array(0.97))


def test_the_rate_falls_every_twenty_batches_to_a_tenth():
    config = lantm.configure(rate_by="performance")
    good = first_steering(config, None, None)._replace(mean=jnp.array(0.95))
    rates = [
        float(steer(config, good, jnp.array(batch), jnp.array(0.95)).rate) for batch in range(1, 41)
    ]
    assert [i for i, rate in enumerate(rates, start=1) if rate < 1] == [20, 40]
    assert np.isclose(rates[19], 0.97)
    low = good._replace(rate=jnp.array(0.101))
    assert np.isclose(steer(config, low, jnp.array(20), jnp.array(0.95)).rate, 0.1)
    poor = good._replace(mean=jnp.array(0.85))
    assert steer(config, poor, jnp.array(20), jnp.array(0.85)).rate == 1


def test_going_back_by_hand():
    config = lantm.configure(go_back=True, noise=1.0)
    steering = first_steering(config, "first", "moments")._replace(noise=jnp.array(0.4))
    assert not is_worth_keeping(steering._replace(mean=jnp.array(0.5)))
    assert not is_lost(steering)
    kept = keep(steering._replace(mean=jnp.array(0.9)), "weights", "moments")
    assert (kept.kept.average, kept.peak) == ("weights", 0.9)
    assert is_worth_keeping(kept._replace(mean=jnp.array(0.86)))
    assert not is_worth_keeping(kept._replace(mean=jnp.array(0.84)))
    assert not is_lost(kept._replace(mean=jnp.array(0.55)))
    lost = kept._replace(mean=jnp.array(0.53), noise=jnp.array(0.7))
    assert is_lost(lost)
    back = gone_back(lost, lost.kept.noise)
    assert np.allclose([back.mean, back.rate, back.noise, back.ceiling], [0.9, 0.5, 0.2, 1.0])
    for noise, ceiling in ((0.8, 0.4), (0.1, 0.3)):
        back = shaken_less(lost._replace(noise=jnp.array(noise)))
        assert np.allclose([back.noise, back.ceiling], [noise / 2, ceiling])


@pytest.mark.parametrize(
    ("settings", "changes", "coarse", "solved"),
    [
        ({}, {}, 0.99, True),
        ({}, {}, 0.98, False),
        ({"noise": 1.0}, {"noise": 0.3}, 1.0, True),
        ({"noise": 1.0}, {"noise": 0.29}, 1.0, False),
        ({"noise": 0.2}, {"noise": 0.2}, 1.0, True),
        ({"growth_by": "performance"}, {"share": 0.9}, 1.0, False),
        ({"growth_by": "performance"}, {"share": 1.0}, 1.0, True),
        ({"growth": 0.5, "batches": 200}, {}, 1.0, False),
        ({"solved": None}, {}, 1.0, False),
    ],
)
def test_when_a_task_is_solved(settings, changes, coarse, solved):
    config = lantm.configure(**{"solved": 0.99} | settings)
    arrays = {name: jnp.array(value) for name, value in changes.items()}
    steering = first_steering(config, None, None)._replace(**arrays)
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
    keys += [start_key(lantm.configure(seed=5), n) for n in range(1, 9)]
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
    "growth_by": "performance",
    "noise": 1.0,
    "rate_by": "performance",
    "go_back": True,
    "solved": 1.0,
    "starts": 2,
    "start_batches": 5,
}
"""Everything on."""


@pytest.fixture
def eager(monkeypatch):
    """Rules under which everything happens within a few batches."""
    monkeypatch.setattr("lantm.training.steering.GROWTH_BATCHES", {0.9: 3, 0.3: 3, 0.0: 3})
    monkeypatch.setattr("lantm.training.steering.GOOD", -1.0)
    monkeypatch.setattr("lantm.training.steering.RATE_EVERY", 2)
    monkeypatch.setattr("lantm.training.steering.WORTH_KEEPING", -1.0)
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


@pytest.mark.usefixtures("eager")
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


def test_going_back_brings_the_kept_weights(tiny, tmp_path):
    trainer = Trainer(lantm.Run.create(tiny(go_back=True, seed=3), tmp_path))
    first = trainer.state.average
    trainer.step(0)
    steering = trainer.state.steering._replace(peak=jnp.array(0.9))
    trainer.state = trainer.state._replace(steering=steering)
    row = trainer.log(1)
    assert row["gone_back"]
    assert eqx.tree_equal(trainer.state.parameters, first)
    assert np.isclose(trainer.state.steering.rate, 0.5)


def scores_of(monkeypatch, by_call):
    """Evaluations as they come: coarse accuracies, the last one for ever."""
    given = list(by_call)

    def fake(machine, batches):
        coarse = given.pop(0) if len(given) > 1 else given[0]
        return lantm.Evaluation(32, coarse, coarse)

    monkeypatch.setattr(training, "evaluate_batches", fake)


def test_a_validation_far_below_the_best_goes_back_to_its_weights(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.8, 0.71, 0.69])
    config = tiny(go_back=True, rate_by="performance", validate_every=1, validate_from=1, seed=3)
    run = lantm.Run.create(config, tmp_path)
    trainer, rows = Trainer(run), []
    for done in (1, 2, 3):
        trainer.step(done - 1)
        rows.append(trainer.log(done))
        if done == 1:
            best = trainer.state.average
    assert ["gone_back" in row for row in rows] == [False, False, True]
    for tree in (trainer.state.parameters, trainer.state.average):
        assert eqx.tree_equal(tree, best)
    assert np.isclose(trainer.state.steering.rate, 0.5)
    assert eqx.tree_equal(run.machine("last"), run.machine("best"))


def test_without_going_back_nothing_is_brought_back(tiny, tmp_path, monkeypatch):
    scores_of(monkeypatch, [0.8, 0.1])
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
        patch.setattr(training, "evaluate", killed)
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
    assert looks(lantm.configure(starts=4)) == [1500, 2000, 2500]
    assert is_accepted((0.8, 0.9))
    assert not is_accepted((0.79, 1.0))
    scores = [(0.1, 0.9), (0.3, 0.5), (0.3, 0.6), (0.3, 0.6)]
    outcomes = {number: Outcome(5, *pair) for number, pair in enumerate(scores)}
    assert best_start(outcomes) == 2


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
        ([0.9, 0.0], 0, [3]),
        ([0.1, 0.85, 0.0], 0, [4]),
        ([0.1, 0.2, 0.3, 0.4, 0.8, 0.0], 1, [5, 4]),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.6, 0.5, 0.0], 1, [5, 5, 5]),
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
    assert [row["batch"] for row in rows if "validation_coarse" in row] == sorted(
        {10} | ({5} if trained_to[chosen] < 5 else set())
    )


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
        lantm.train(config, tmp_path, on_progress=interrupt_after(7))
    run = lantm.Run.open(tmp_path / config.name)
    assert run.saved == 2
    assert finish(run).saved == 6


# ---- what pages say


def test_the_page_has_every_setting_and_the_recipe():
    page = (ROOT / "docs" / "learning.md").read_text()
    names = [
        "homing",
        "feeling",
        "growth-by",
        "noise",
        "rate-by",
        "beta2",
        "go-back",
        "solved",
        "starts",
        "start-batches",
    ]
    assert [name for name in names if f"`--{name}" not in page] == []
    assert "--recipe steered" in page


def test_rows_are_plain_json(tiny, tmp_path):
    run = lantm.train(tiny(solved=1.0, noise=0.1), tmp_path)
    assert all(json.loads(line) for line in run.metrics_lines())
