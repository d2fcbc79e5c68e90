"""Several starts at once: what comes of a run is what comes of it in one process."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lantm
from lantm import extensions
from lantm.extensions import load_file
from lantm.training import search as searching
from lantm.training.checkpoints import read_arrays
from lantm.training.starts import Outcome, read_outcome, tried, wanted
from lantm.training.trainer import Trainer

pytest_plugins = ["tiny"]

BAD, GOOD = Outcome(5, 0.9, 0.94, -1.0), Outcome(3, 0.1, 0.95, 0.9)
LEARNED = Outcome(10, 0.9, 0.99, 0.8)
LOST = Outcome(2, -1.0, -1.0, -1.0, "the loss became nan at batch 2")


# ---- the rule


@pytest.mark.parametrize(
    ("outcomes", "left", "counted"),
    [
        ({}, [0, 1, 2, 3], []),
        ({0: GOOD}, [], [0]),
        ({1: GOOD}, [0], [1]),
        ({0: BAD, 2: GOOD}, [1], [0, 2]),
        ({0: BAD, 1: GOOD, 2: GOOD}, [], [0, 1]),
        ({0: LOST, 1: BAD, 3: BAD}, [2], [0, 1, 3]),
        ({0: BAD, 1: BAD, 2: BAD, 3: LOST}, [], [0, 1, 2, 3]),
        ({0: LEARNED, 1: LEARNED}, [2, 3], [0, 1]),
        ({0: LEARNED, 1: LEARNED, 2: LEARNED}, [], [0, 1, 2]),
        ({0: LEARNED, 2: LEARNED, 3: LEARNED}, [1], [0, 2, 3]),
        ({0: LEARNED, 1: LEARNED, 2: LEARNED, 3: GOOD}, [], [0, 1, 2]),
    ],
)
def test_which_starts_are_left_and_which_count(outcomes, left, counted):
    assert wanted(outcomes, 4) == left
    assert list(tried(outcomes)) == counted


# ---- processes

TINY = str(Path(__file__).with_name("tiny.py"))

OWN = """
import os, runpy, time
import jax.numpy as jnp
from lantm.training.trainer import Trainer

runpy.run_path({tiny!r})
SCORES = {scores}
step = Trainer.step

def slow_step(trainer, index):
    with (trainer.journal.folder / "pids").open("a") as pids:
        pids.write(str(os.getpid()) + chr(10))
    time.sleep({seconds})
    other = trainer.journal.folder.with_name("1") / "pids"
    while "HELD" in os.environ and trainer.journal.folder.name == "0":
        if other.exists() and len(other.read_text().split()) > index - 3:
            break
        time.sleep(0.01)
    return step(trainer, index)

def look(trainer):
    late = int(trainer.state.batch) >= 0.6 * trainer.config.start_batches
    coarse = SCORES[int(trainer.state.start.number)] if late else 0.0
    scores = jnp.array([coarse, coarse, coarse])
    start = trainer.state.start._replace(scores=scores)
    trainer.state = trainer.state._replace(start=start)
    return {{"look_fine": coarse, "look_coarse": coarse}}

Trainer.step, Trainer.look = slow_step, look
"""
"""A file of a user's: scores by start, of all but the first looks; steps that take a while, and
those of start 0 wait, where they are held, for start 1 to be as far.
"""


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """Makes and loads such a file; what it changes in this process is undone."""
    monkeypatch.setattr(extensions, "loaded_files", [])
    monkeypatch.setattr(searching, "loaded_files", extensions.loaded_files)
    for name in ("step", "look"):
        monkeypatch.setattr(Trainer, name, getattr(Trainer, name))

    def make(scores, seconds=0.0):
        file = tmp_path / "own.py"
        file.write_text(OWN.format(tiny=TINY, scores=scores, seconds=seconds))
        load_file(str(file))
        return file

    return make


def outcome(run):
    """All that a run leaves, but for the time it took."""
    files = sorted(run.path.rglob("*.safetensors"))
    arrays = {str(file.relative_to(run.path)): read_arrays(file)[0] for file in files}
    content = {name: {k: v.tobytes() for k, v in found.items()} for name, found in arrays.items()}
    result = {name: value for name, value in run.result.items() if name != "seconds"}
    return content, (run.path / "metrics.jsonl").read_text(), result


def pids(run, number):
    """Of the processes that trained a start."""
    file = run.path / "starts" / str(number) / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def wait_for(condition, seconds=300):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_processes_give_the_bits_of_one(tiny, own_file, tmp_path, monkeypatch):
    """Start 2 is accepted at once, while a former one is still trained; start 3 never counts."""
    own_file([0.5, 0.6, 0.96, 0.96], seconds=0.02)
    config = tiny(starts=4, start_batches=5, batches=10, solved=1.0)
    one = lantm.train(config, tmp_path / "one")
    monkeypatch.setenv("HELD", "yes")
    two = lantm.train(config, tmp_path / "two", jobs=2)
    assert outcome(two) == outcome(one)
    assert two.result["start"] == 2
    assert [start["coarse"] for start in two.result["starts"]] == pytest.approx([0.5, 0.6, 0.96])
    assert [start["batch"] for start in two.result["starts"]] == [5, 5, 3]
    assert two.result["ended"] == "after all 10 batches"
    processes = {pid for number in range(3) for pid in pids(two, number)}
    assert len(processes) == 2
    assert set(pids(two, 0)) == {os.getpid()}
    assert not any(map(is_alive, processes - {os.getpid()}))


def test_what_is_stopped_or_killed_leaves_nobody_and_goes_on(tiny, own_file, tmp_path, monkeypatch):
    """The program by Ctrl-C and by a kill, then its helper by a kill."""
    file = own_file([0.5, 0.96], seconds=0.1)
    config = tiny(starts=2, start_batches=20, batches=25)
    whole = lantm.train(config, tmp_path / "whole")
    monkeypatch.setenv("HELD", "yes")
    run = lantm.Run(tmp_path / "killed" / config.name, config, config.digest)
    words = [*shlex.split(config.command)[1:], "--jobs", "2", "--file", str(file)]
    settings = {"JAX_ENABLE_X64": "True", "JAX_DISABLE_MOST_OPTIMIZATIONS": "True"}
    for signum, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        seen = len(pids(run, 1))
        main = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "lantm", *words, "--out", str(run.path.parent)],
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
        )
        wait_for(lambda seen=seen: len(pids(run, 1)) >= seen + 3)
        helper = pids(run, 1)[-1]
        assert helper != main.pid
        main.send_signal(signum)
        assert main.wait(300) == code
        wait_for(lambda helper=helper: not is_alive(helper))
    notices, known = [], set(pids(run, 1))

    def kill_helper(progress):
        for pid in set(pids(run, 1)) - known - {os.getpid()}:
            known.add(pid)
            os.kill(pid, signal.SIGKILL)
            monkeypatch.delenv("HELD")

    root = tmp_path / "killed"
    lantm.train(config, root, on_progress=kill_helper, on_notice=notices.append, jobs=2)
    assert f"start 1: its process ended with {-signal.SIGKILL}" in notices
    assert outcome(run) == outcome(whole)


def test_an_outcome_that_is_damaged_is_named(tmp_path):
    file = tmp_path / "outcome.json"
    assert read_outcome(file) is None
    file.write_text(json.dumps({"batch": 3, "coarse": 0.5}))
    with pytest.raises(ValueError, match=r"outcome\.json is damaged: an outcome must have a fine"):
        read_outcome(file)


def test_a_start_that_has_ended_is_not_trained_again(tiny, own_file, tmp_path, monkeypatch):
    own_file([0.5, 0.6])
    config, seen = tiny(starts=2, start_batches=5, batches=10), []

    def stop_in_second(progress):
        if progress.start == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lantm.train(config, tmp_path, on_progress=stop_in_second)
    run = lantm.train(config, tmp_path, on_progress=seen.append)
    assert [progress.batch for progress in seen if progress.start == 0] == []
    assert run.result["start"] == 1


def test_jobs_that_cannot_be(tiny, tmp_path):
    with pytest.raises(ValueError, match="jobs must be a whole number of at least 1, got 0"):
        lantm.train(tiny(), tmp_path, jobs=0)
