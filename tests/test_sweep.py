"""Sweeps: every run of a grid is trained once, whatever happens to processes."""

import collections
import dataclasses
import functools
import io
import json
import operator
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lantm
from lantm import cli
from lantm.extensions import load_file
from lantm.studies.entries import Place, paper
from lantm.studies.results import add_results, collect, read_results, result_row
from lantm.studies.sweep import schedule
from lantm.studies.sweep.engines import Local
from lantm.studies.sweep.grids import (
    GRIDS,
    OUR_TRAINING,
    PAPER_MODELS,
    PAPER_TASKS,
    PLAIN_TRAINING,
    find_grid,
    paper_settings,
    parse_settings,
    read_best,
)
from lantm.studies.sweep.schedule import Rates, Sweep, is_free
from lantm.studies.sweep.worker import work
from lantm.training.checkpoints import checksum, read_arrays
from lantm.training.kinds import kind_of
from programs import program, wait_for
from test_cli import refused

pytest_plugins = ["tiny"]

TINY = str(Path(__file__).parent / "tiny.py")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing is written into the repository; workers compile as the tests do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


@pytest.fixture
def arguments(options):
    """Of a sweep over seeds of the tiny task, but for the seeds."""
    settings = [option.removeprefix("--").replace("-", "_") for option in options]
    settings.remove("recipe=plain")  # it is the grid's
    words = f"sweep plain --file {TINY} --tasks tiny --models lantm --regime small --set"
    return [*words.split(), *settings]


def outcome(run):
    weights, _ = read_arrays(run.weights_path("last"))
    return run.result["test"], list(run.metrics()), checksum(weights)


class Threadless:
    """An engine for tests: a run is over as soon as it has started."""

    slots = 2

    def __init__(self, train=work):
        self.train, self.over, self.started = train, [], []

    def start(self, folder):
        self.started.append(folder)
        self.over.append((folder, self.train(str(folder))))

    def ended(self):
        over, self.over = self.over, []
        return over

    def stop(self):
        self.over = None


# ---- grids


@pytest.mark.parametrize(
    ("model", "runs"),
    [
        ("lantm", 2 * 2 * 3 * 3),  # decay delay, init, learning rate, seed
        ("lantm_s", 2 * 2 * 3 * 3),
        ("slantm", 2 * 2 * 3 * 3 * 2),  # and the bound of the angle
        ("slantm_s", 2 * 2 * 3 * 3 * 2),
        ("ram", 2 * 2 * 3 * 3 * 2),  # and the key's size
        ("ram_tape", 2 * 2 * 3 * 3 * 2 * 2),  # and sharpening
        ("lstm", 4 * 2 * 4 * 3),  # layers, decay delay, learning rate, seed
    ],
)
def test_size_of_the_papers_grid(model, runs):
    found = GRIDS["paper"]._replace(tasks=["copy"], models=[model], regimes=["large"]).configs()
    assert len({config.digest for config in found}) == len(found) == runs
    assert {(c.clip, c.averaging, c.model.read_gate_bias) for c in found} == {(32.0, 0.0, 0.0)}


def test_values_of_the_papers_grid():
    found = GRIDS["paper"]._replace(tasks=["copy"], regimes=["small"]).configs()
    tried = collections.defaultdict(set)
    for config in found:
        for name, value in config.flat().items():
            tried[name, config.model.model].add(value)
    assert tried["lr", "ram"] == tried["lr", "slantm_s"] == {0.01, 0.02, 0.04}
    assert tried["lr", "lstm"] == {0.2, 0.02, 0.002, 0.0002}
    assert tried["decay_delay", "lstm"] == {500, 700}
    assert tried["decay_delay", "lantm"] == {300, 600}
    assert tried["init", "lstm"] == {"fan_in"}
    assert tried["init", "lantm"] == {"fan_in", "uniform"}
    assert tried["space", "slantm"] == {"sphere", "bounded_sphere"}
    assert tried["key_size", "ram"] == {2, 20}
    assert tried["sharpen", "ram"] == {False}
    assert tried["seed", "lantm"] == {1, 2, 3}


def test_every_best_setting_is_in_the_papers_grid():
    assert set(read_best()) == {
        (task, model, regime)
        for task in PAPER_TASKS
        for model in PAPER_MODELS
        for regime in ("small", "large")
    }
    assert all(settings in paper_settings(*cell) for cell, settings in read_best().items())
    assert len(GRIDS["best"].configs()) == 8 * 7 * 2 * 3


def test_best_settings_of_some_cells():
    best = read_best()
    assert best["copy", "lantm", "large"] == {"lr": 0.01, "decay_delay": 600, "init": "uniform"}
    assert best["reverse", "slantm", "small"]["space"] == "bounded_sphere"
    assert best["copy", "slantm", "small"]["space"] == "sphere"
    assert best["copy", "ram_tape", "small"]["sharpen"] is True
    assert best["priority_sort", "lstm", "large"]["layers"] == 1


def test_cells_are_those_of_the_papers_tables():
    found = GRIDS["cells"].configs()
    places = [Place(c.task, c.model.model, c.regime, c.model.action_interpolation) for c in found]
    assert sorted(places) == sorted(paper())
    assert {kind_of(config.flat()) for config in found} == {"paper"}
    assert {config.seed for config in found} == {1}
    plain = {c.digest for c in GRIDS["best"].configs()}
    assert sum(config.digest in plain for config in found) == 112


def test_the_guide_says_how_many_runs_a_grid_has():
    guide = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text()
    table = guide.split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (?:at most )?(\d+) \|", table, re.M))
    assert set(told) == set(GRIDS)
    every = {name: grid._replace(select=lambda runs, _: runs) for name, grid in GRIDS.items()}
    small = {name: len(grid.configs()) for name, grid in every.items() if name != "paper"}
    for name in ("peers", "chomsky"):  # one way of each model, and the whole recipe
        small[name] = len(
            {(c.task, c.model.model, c.starts, c.seed) for c in every[name].configs()}
        )
    assert small == {name: int(told[name]) for name in small}


def test_the_whole_grid_of_lantm_s():
    found = GRIDS["lantm_s"].configs()
    assert len(found) == 12 * 3 * 2
    assert {(c.task, c.model.model) for c in found} == {
        ("double", "lantm_s"),
        ("bigram_flip", "lantm_s"),
    }


def test_grids_of_a_recipe_alone():
    plain, default = (GRIDS[name].configs() for name in ("plain", "default"))
    assert len(plain) == 8 * 7 * 2 * 3
    assert {kind_of(config.flat()) for config in plain} == {"our training"}
    assert default == [
        lantm.configure(task=task, seed=seed, test_far=True)
        for task in PAPER_TASKS
        for seed in range(1, 11)
    ]


def test_a_grid_may_try_another_recipe_than_its_own():
    """With overrides it is still another one."""
    grid = GRIDS["peers"]._replace(tasks=["copy"], models=["lantm"], seeds=[1])
    grid = grid._replace(select=lambda runs, _: runs)
    *tried, once, ours = grid.configs({"validate_every": 250})
    every: dict[str, Any] = {"test_far": True, "validate_every": 250}
    assert ours == lantm.configure("default", **every)
    assert once == lantm.configure(**OUR_TRAINING, **every)
    training = PLAIN_TRAINING | every
    assert tried == [lantm.configure("plain", lr=lr, **training) for lr in (0.001, 0.003)]


def test_more_seeds_where_the_first_is_behind():
    """The paper has 100 on copy with LANTM, and 0 on repeat_copy."""

    def row(config, coarse):
        test = [{"checkpoint": "best", "source": 2, "fine": 1.0, "coarse": coarse}]
        ended = {"status": "failed", "error": "x", "test": []}
        known = {"status": "finished", "test": test} if coarse is not None else ended
        common = {"digest": config.digest, "config": config.flat(), "grid": None}
        return common | {"command": "", "seconds": 1.0, "versions": {}} | known

    first = GRIDS["cells"]._replace(models=["lantm"], regimes=["small"]).configs()
    by_place = {(c.task, c.model.action_interpolation): c for c in first}
    rows = [
        row(by_place["copy", False], 0.89),
        row(by_place["copy", True], 0.91),
        row(by_place["reverse", False], None),
        row(by_place["repeat_copy", False], 0.0),
        row(dataclasses.replace(by_place["double", False], seed=2), 0.0),
    ]
    found = GRIDS["behind"].configs({}, rows)
    assert [(c.task, c.model.action_interpolation, c.seed) for c in found] == [
        ("copy", False, 2),
        ("copy", False, 3),
        ("reverse", False, 2),
        ("reverse", False, 3),
    ]


def test_own_grid(tmp_path):
    (tmp_path / "own.toml").write_text(
        'base = {recipe = "paper", model = "slantm", decay_delay = "none"}\n'
        'grid = {lr = [0.1, 0.2], seed = [1, 2, 3], task = ["copy", "reverse"]}\n'
    )
    found = find_grid("own.toml").configs(parse_settings(["batches=7"]))
    assert len(found) == 12
    assert {c.name.rsplit("-", 2)[0] for c in found} == {
        "copy-slantm-small",
        "reverse-slantm-small",
    }
    assert {(c.clip, c.batches, c.decay_delay) for c in found} == {(32.0, 7, None)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grid = {lr = ", "own.toml: "),
        ("grid = {lr = 0.1}", "own.toml: grid.lr must be a list of values, got 0.1"),
        ("grid = {rate = [0.1]}", "own.toml: setting must be one of"),
        ('grid = {lr = ["x"]}', "own.toml: lr must be of type float, got 'x'"),
        ("base = 5", "own.toml: base must be a table of settings, got 5"),
        ("[[grid]]", "own.toml: grid must be a table of settings, got [{}]"),
        ("[gird]", "own.toml: table must be one of base, grid; got 'gird' (did you mean 'grid'?)"),
        ('base = {model = "lstm", sharpen = true}', "own.toml: sharpen is only for ram"),
    ],
)
def test_bad_grid_files(text, said, tmp_path, capsys):
    (tmp_path / "own.toml").write_text(text)
    assert said in refused(capsys, "sweep", "own.toml")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "sweep",
            f"grid must be given: {', '.join(GRIDS)}, or a file",
        ),
        ("sweep bset", "did you mean 'best'?"),
        ("sweep none.toml", "cannot use none.toml: No such file"),
        ("sweep best --tasks cpoy", "did you mean 'copy'?"),
        ("sweep best --tasks priority_sort_symbols", "task of the grid best must be one of"),
        ("sweep paper --models lantn", "did you mean 'lantm'?"),
        ("sweep paper --regime tiny", "regime must be one of small, large"),
        ("sweep best --models lantn --dry-run", "did you mean 'lantm'?"),
        (
            "sweep best --regime tiny --dry-run",
            "regime of the grid best must be one of small, large",
        ),
        ("sweep best --set task=copy", "task is chosen by a list of its own, not for every run"),
        ("sweep best --set lr", "a setting must be NAME=VALUE, got 'lr'"),
        ("sweep default --set data=none.txt --dry-run", "none.txt: cannot be read: No such file"),
        ("sweep best --dry-run --workers -1", "workers must be a whole number of at least 1"),
        ("sweep best --dry-run --engine slurm", "engine must be one of local, ray"),
        ("sweep --collect", "--collect needs a folder of runs, got runs"),
        ("sweep best --set lr=x", "lr must be of type float, got 'x'"),
        ("sweep best --set lrr=1", "did you mean 'lr'?"),
        ("sweep best --models lstm --action-interpolation", "action_interpolation is only for"),
        ("sweep best --engine slurm", "engine must be one of local, ray"),
        ("sweep best --workers 0", "workers must be a whole number of at least 1"),
        ("sweep best --address here", "--address is only for the engine ray"),
    ],
)
def test_bad_input(command, said, capsys):
    assert said in refused(capsys, *command.split())
    assert not Path("runs").exists()


# ---- results


def test_results_are_merged_by_digest(trained, tmp_path):
    row, file = result_row(trained), tmp_path / "new" / "results.jsonl"
    other = row | {"digest": "00000000", "config": row["config"] | {"seed": 0}}
    add_results(file, [row, row | {"seconds": 7}])
    assert add_results(file, [other]) == [other, row | {"seconds": 7}] == read_results(file)
    assert max(map(len, file.read_text().splitlines())) < 2000


def test_results_are_rebuilt_from_runs(trained, capsys):
    assert cli.main(["sweep", "--collect", "--out", str(trained.path.parent)]) == 0
    rows = read_results(trained.path.parent / "results.jsonl")
    assert rows == collect(trained.path.parent)
    row = next(row for row in rows if row["digest"] == trained.digest)
    assert row["test"] == trained.result["test"]
    assert {(part["checkpoint"], part["source"]) for part in row["test"]} == {
        *(("best", 1), ("best", 2), ("last", 1), ("last", 2))
    }
    assert row["config"] == trained.config.flat()


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b'{"digest": "1"}', b"\xff"])
def test_damaged_results_are_named(line, tmp_path):
    (tmp_path / "results.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ValueError, match=r"results.jsonl, line 1 is no result"):
        read_results("results.jsonl")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ((), "status", None),
        ((), "seconds", "7"),
        ((), "grid", ["best"]),
        ((), "command", 5),
        (("config",), "task", ["copy"]),
        (("config",), "batches", None),
        (("test", 0), "fine", "1"),
        (("test", 0), "coarse", float("nan")),
        (("test", 0), "coarse", 1.5),
        ((), "status", "running"),
        (("config",), "regime", "medium"),
        (("test",), 0, 5),
    ],
)
def test_rows_have_fields_of_their_types(part, name, value, trained, tmp_path):
    row = json.loads(json.dumps(result_row(trained)))
    functools.reduce(operator.getitem, part, row)[name] = value
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=r"line 1 is no result: .*(cannot be|must be)"):
        read_results("results.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"{}",
        b"[]",
        b'{"status": "done"}',
        b'{"status": "finished"}',
        b'{"status": "finished", "seconds": 1, "test": [{}]}',
        b"\xff",
    ],
)
def test_a_damaged_result_of_a_run_is_named(content, tiny, tmp_path, capsys):
    run = lantm.Run.create(tiny(), tmp_path / "runs")
    (run.path / "result.json").write_bytes(content)
    assert "result.json is damaged" in refused(capsys, "sweep", "--collect")


# ---- the schedule


def test_finished_runs_are_skipped(tiny, tmp_path):
    configs = [tiny(seed=1), tiny(seed=2)]
    lantm.train(configs[0], tmp_path)
    engine = Threadless()
    rows = Sweep(configs, tmp_path, grid="own").train(engine)
    assert [folder.name for folder in engine.started] == [configs[1].name]
    assert rows == read_results(tmp_path / "results.jsonl")
    assert [(row["status"], row["grid"]) for row in rows] == [
        *(("finished", None), ("finished", "own"))
    ]
    assert Sweep(configs, tmp_path).train(Threadless(None)) == rows


def test_runs_among_the_results_are_skipped_on_another_machine(trained, tiny, tmp_path):
    """There the file of results is all there is of them."""
    row = result_row(trained)
    add_results("known.jsonl", [row, row | {"digest": tiny(seed=9).digest, "status": "failed"}])
    configs = [trained.config, tiny(seed=9)]
    assert Sweep(configs, tmp_path, results="known.jsonl").train(Threadless(None))[0] == row
    for settings, expected in [
        ({"results": "known.jsonl", "retry": True}, [9]),
        ({}, [trained.config.seed, 9]),
    ]:
        waiting = Sweep(configs, tmp_path, **settings).waiting
        assert [run.config.seed for run in waiting] == expected


def test_a_failure_is_recorded_and_the_others_go_on(tiny, tmp_path):
    bad, good = tiny(lr=1e300), tiny()
    rows = Sweep([bad, good], tmp_path).train(Threadless())
    assert [row["status"] for row in rows] == ["failed", "finished"]
    failed = next(row for row in read_results("results.jsonl") if row["status"] == "failed")
    assert failed["digest"] == bad.digest
    assert failed["error"].startswith("NonFiniteError: ")
    assert failed["error"].endswith(" (see error.log)")
    log = (tmp_path / bad.name / "error.log").read_text()
    assert "Traceback" in log
    assert "in step" in log
    Sweep([bad, good], tmp_path).train(Threadless(None))
    again = Threadless()
    Sweep([bad, good], tmp_path, retry=True).train(again)
    assert [folder.name for folder in again.started] == [bad.name]


OWN = """
import lantm
from tiny import Tiny

class Broken(Tiny):
    name = "broken"
    def problems(self, rng, size, batch):
        raise ValueError("a long story " * 100)

lantm.TASKS["broken"] = Broken()
"""


def test_an_error_in_a_file_of_ones_own_is_kept_with_its_place(tiny, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    load_file("own.py")
    run = lantm.Run.create(tiny(task="broken"), tmp_path)
    work(str(run.path), "own.py")
    assert run.result["error"].startswith("own.py, line 8, in problems: ValueError: a long story")
    assert len(run.result["error"]) < 350
    log = (run.path / "error.log").read_text()
    assert 'File "own.py", line 8, in problems' in log
    assert "a long story " * 100 in log


def test_a_worker_that_always_dies_is_given_up(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "POLL_SECONDS", 0)
    engine = Threadless(lambda folder: "killed by SIGKILL")
    (row,) = Sweep([tiny()], tmp_path).train(engine)
    assert len(engine.started) == schedule.ATTEMPTS
    assert row["status"] == "failed"
    assert row["error"] == "its process died 3 times: killed by SIGKILL"


def test_a_run_in_use_is_waited_for(tiny, tmp_path):
    run = lantm.Run.create(tiny(), tmp_path)
    sweep, engine = Sweep([tiny()], tmp_path), Threadless()
    with run.held():
        sweep.fill(engine)
        work(str(run.path))
        assert engine.started == []
        assert run.result is None
    sweep.fill(engine)
    assert engine.started == [run.path]


def test_runs_that_share_programs_follow_each_other(tiny, tmp_path):
    """And two workers begin with different ones."""
    first, second = ([tiny(lr=lr, seed=seed) for seed in (1, 2)] for lr in (0.1, 0.2))
    sweep, engine = Sweep([*first, *second], tmp_path), Threadless(lambda folder: None)
    sweep.fill(engine)
    assert [folder.name for folder in engine.started] == [first[0].name, second[0].name]
    for ended in (second[0], first[0]):
        run = sweep.running.pop(tmp_path / ended.name)
        run.write_json("result.json", {"status": "failed", "error": "over"})
        sweep.settle(run, None)
        sweep.fill(engine)
    assert [folder.name for folder in engine.started[2:]] == [second[1].name, first[1].name]


def test_expected_time(tiny, tmp_path):
    def row(task, model, seconds):
        config = {"task": task, "model": model, "batches": 10}
        return {"status": "finished", "seconds": seconds, "config": config}

    rates = Rates([row("tiny", "lantm", 1.0), row("tiny", "lantm", 3.0), row("copy", "ram", 50.0)])
    assert rates.expect(tiny(batches=100)) == pytest.approx(20)
    assert rates.expect(tiny(batches=100), done=60) == pytest.approx(8)
    assert rates.expect(tiny(batches=10, model="ram")) == pytest.approx(50)
    assert rates.expect(tiny(batches=10, model="lstm", task="copy")) == pytest.approx(50)
    paused = "the median, which one run of 50 s does not shift"
    assert rates.expect(tiny(batches=10, model="lstm", task="double")) == pytest.approx(3), paused
    sweep = Sweep([tiny(batches=100, seed=seed) for seed in (1, 2)], tmp_path)
    assert rates.left(sweep, slots=2) == pytest.approx(20)
    assert rates.left(sweep) == pytest.approx(40)
    assert rates.unmeasured(sweep) == []
    assert rates.unmeasured(Sweep([tiny(model="lstm")], tmp_path)) == ["lstm"]
    assert Rates([]).left(sweep, slots=2) is None


def test_a_sweep_says_what_it_has_found_so_far(trained, tmp_path, capsys):
    """Also one that is running somewhere else, by what is among its results."""
    row = result_row(trained)
    config = lantm.configure("paper", task="copy", model="lantm", decay_delay=300, init="fan_in")
    scores = [part | {"coarse": 0.995} for part in row["test"]]
    add_results(
        "known.jsonl", [row | {"config": config.flat(), "digest": config.digest} | {"test": scores}]
    )
    command = "sweep best --tasks copy --models lantm lstm --regime small --dry-run --results"
    assert cli.main([*command.split(), "known.jsonl"]) == 0
    told = capsys.readouterr().out
    assert "6 runs of the grid best; 1 finished" in told
    assert "99  1/1" in told
    assert "lstm taken for another model" in told


def test_dry_run_trains_nothing(capsys):
    command = "sweep best --dry-run --tasks copy --seeds 1 2 --workers 2 --name again"
    assert cli.main(command.split()) == 0
    told = capsys.readouterr().out
    assert "28 runs of the grid again; 0 finished, 0 failed, 0 running, 28 waiting" in told
    assert "with 2 at a time" in told
    assert not Path("runs").exists()


# ---- processes


class NoProcess(subprocess.Popen):
    """What would be started, but is not."""

    def __init__(self, *words, env, **more):
        self.env, self.stdin, self.stdout = env, io.StringIO(), io.StringIO()
        self.returncode = None

    def __del__(self):
        """There is nothing to end."""


def test_workers_side_by_side_have_gpus_of_their_own(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    folders = [lantm.Run.create(tiny(seed=seed), tmp_path).path for seed in range(3)]
    monkeypatch.setattr(subprocess, "Popen", NoProcess)
    engine = Local(3)
    for folder in folders:
        engine.start(folder)
    found = [worker.process.env["CUDA_VISIBLE_DEVICES"] for worker in engine.busy.values()]
    assert found == ["3", "5", "3"]


def test_a_killed_worker_costs_no_more_than_its_last_checkpoint(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "POLL_SECONDS", 0.01)
    config = tiny(batches=1000, validate_every=100)
    killed, whole = (Sweep([config], tmp_path / name) for name in ("killed", "whole"))
    run, other = (lantm.Run(sweep.root / config.name, config, "") for sweep in (killed, whole))
    engine = Local(1, TINY)

    def kill():
        saved = sorted(run.path.glob("checkpoints/*.safetensors"))
        if not killed.deaths and len(saved) == 2:
            engine.busy[run.path].process.kill()

    (row,) = killed.train(engine, on_poll=kill)
    assert row["status"] == "finished"
    assert killed.deaths[run.path] == 1
    whole.train(Local(1, TINY))
    assert outcome(run) == outcome(other)


def test_a_worker_trains_one_run_after_the_other(tiny, tmp_path):
    """As if each had a process of its own, and with what it says in its own folder."""
    Path("file.py").write_text(f"import runpy\nrunpy.run_path({TINY!r})\nprint('loaded')\n")
    configs = [tiny(seed=1), tiny(seed=2), tiny(seed=2, lr=0.02)]
    one, each = Local(1, "file.py"), Local(1, "file.py")
    processes = []
    starting = one.launch
    one.launch = lambda folder: processes.append(starting(folder)) or processes[-1]
    Sweep(configs, tmp_path / "one").train(one)
    assert len(processes) == 1
    assert processes[0].process.returncode in (0, 130)
    for config in configs:
        Sweep([config], tmp_path / "each").train(each)
    for config in configs:
        left, right = (lantm.Run.open(tmp_path / n / config.name) for n in ("one", "each"))
        assert left.result["status"] == "finished"
        assert outcome(left) == outcome(right)
    logs = [(tmp_path / "one" / config.name / "worker.log").read_text() for config in configs]
    assert [log.count("loaded") for log in logs] == [1, 0, 0]


def test_two_sweeps_at_once_train_each_run_once(arguments, tmp_path):
    sweeps = [program(*arguments, "--seeds", "1", "2", "--workers", "1") for _ in range(2)]
    told = [sweep.communicate(timeout=100) for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], told
    rows = read_results(tmp_path / "runs" / "results.jsonl")
    assert [row["status"] for row in rows] == ["finished"] * 2
    for folder in Path("runs").glob("tiny-*"):
        batches = [row["batch"] for row in lantm.Run.open(folder).metrics()]
        assert batches == [5, 10, 15, 20]


def test_an_interrupt_saves_and_the_same_command_goes_on(arguments, tmp_path):
    command = [*arguments, "batches=100000", "--seeds", "1"]
    sweep = program(*command)
    wait_for(lambda: list(Path("runs").glob("tiny-*/checkpoints/*.safetensors")))
    os.kill(sweep.pid, signal.SIGINT)
    told, errors = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, errors
    assert "stopped and saved" in told
    assert "the same command goes on" in told
    (folder,) = Path("runs").glob("tiny-*")
    assert is_free(lantm.Run.open(folder)), "the worker has ended"
    saved = sorted((folder / "checkpoints").iterdir())[-1]
    assert saved.stem != "000000"
    assert not (folder / "result.json").exists()


def test_workers_end_with_a_sweep_that_is_killed(arguments):
    sweep = program(*arguments, "batches=100000", "--seeds", "1")
    wait_for(lambda: list(Path("runs").glob("tiny-*/checkpoints/*.safetensors")))
    sweep.kill()
    sweep.communicate()
    (folder,) = Path("runs").glob("tiny-*")
    wait_for(lambda: is_free(lantm.Run.open(folder)))


def test_ray_with_two_nodes_and_a_worker_that_is_killed(arguments, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed")
    Path("file.py").write_text(ON_A_NODE.format(file=TINY, folder=str(tmp_path)))
    command = [*arguments, "--seeds", "1", "2", "--file", "file.py", "--engine", "ray"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CLUSTER, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in read_results("runs/results.jsonl")] == ["finished"] * 2
    assert (tmp_path / "killed").exists()
    assert len(list(tmp_path.glob("node-*"))) == 2


ON_A_NODE = """
import os, pathlib, runpy, signal, ray
runpy.run_path({file!r})
if ray.is_initialized():
    folder = pathlib.Path({folder!r})
    try:
        (folder / "killed").touch(exist_ok=False)
    except FileExistsError:
        (folder / ("node-" + ray.get_runtime_context().get_node_id())).touch()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
from lantm import cli
from lantm.training.checkpoints import checksum, read_arrays
from lantm.training.kinds import kind_of

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
cluster.add_node(num_cpus=1)
code = cli.main([*sys.argv[1:], "--address", cluster.address])
cluster.shutdown()
raise SystemExit(code)
"""
