"""Runs so small that a test can train one, as fixtures: `pytest_plugins = ["tiny"]`."""

import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jaxtyping
import pytest

import lantm
from lantm.tasks import Copy
from lantm.training import train as testing
from lantm.training import trainer as training
from lantm.training import updates


@dataclass(frozen=True)
class Tiny(Copy):
    """All sizes pad to one shape, so that training compiles one program."""

    name: ClassVar[str] = "tiny"
    symbols: ClassVar[int] = 7
    largest: ClassVar[int] = 3


lantm.TASKS["tiny"] = Tiny()

SETTINGS = {
    "task": "tiny",
    "hidden_size": 5,
    "memory_width": 3,
    "embedding_size": 4,
    "batches": 20,
    "validate_every": 5,
    "validate_from": 5,
    "validation_examples": 32,
    "test_examples": 37,
}


def config(**settings):
    """A run of some milliseconds, its compilation aside."""
    return lantm.configure(**{"recipe": "plain"} | SETTINGS | settings)


@pytest.fixture
def own_updates():
    """For a test that changes what updates are traced from: none are shared with other tests."""
    updates.compiled_update.cache_clear()
    yield
    updates.compiled_update.cache_clear()


@pytest.fixture
def unchecked():
    """Without the type checks of the tests, which users do not have and which would come first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def tiny():
    """Makes configs: of the tiny task, with settings of one's own."""
    return config


@pytest.fixture(scope="session")
def options():
    """The same recipe and settings for the command line, but for the task."""
    settings = {"recipe": "plain"} | {n: value for n, value in SETTINGS.items() if n != "task"}
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


@pytest.fixture(scope="session")
def trained(tiny, tmp_path_factory):
    """A finished run, to look at."""
    return lantm.train(tiny(), tmp_path_factory.mktemp("runs"))


DEATHS = {
    "before the first checkpoint": (training.Trainer, "step", lambda _, index: index == 3),
    "after an update that nobody knows of": (training.Trainer, "log", lambda _, done: done == 10),
    "amid a validation": (training, "evaluate_batches", lambda *_: True),
    "while a checkpoint is written": (os, "replace", lambda _, to: to.name == "000015.safetensors"),
    "at the end, before the test": (testing, "evaluate", lambda *_: True),
}
"""Phases in which a run is killed: when this function is about to be called with such arguments."""


def train_and_die(config, root, phase):
    """Train until killed in that phase."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    owner, name, is_time = DEATHS[phase]
    function = getattr(owner, name)

    def call_or_die(*arguments, **settings):
        if is_time(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **settings)

    setattr(owner, name, call_or_die)
    lantm.train(config, root)


@pytest.fixture
def deaths(monkeypatch):
    """By phase: a function that trains in a process of its own and returns its exit code."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tiny"])

    def start(phase, config, root):
        process = processes.Process(target=train_and_die, args=(config, root, phase))
        process.start()
        process.join()
        return process.exitcode

    return {phase: partial(start, phase) for phase in DEATHS}
