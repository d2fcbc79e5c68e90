"""Runs so small that a test can train one, as fixtures: `pytest_plugins = ["tiny"]`."""

import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import jax
import jaxtyping
import pytest

import lantm
from lantm.tasks import Copy


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
    return lantm.configure(**SETTINGS | settings)


def use_cache(folder):
    """Keep compiled programs: most of the time of a small run goes into compiling it."""
    jax.config.update("jax_compilation_cache_dir", None if folder is None else str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Where programs are kept, so that many runs of one small machine are cheap."""
    folder = tmp_path_factory.mktemp("compiled")
    use_cache(folder)
    yield folder
    use_cache(None)


@pytest.fixture
def unoptimised():
    """Programs that run only once are compiled in a hurry."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def unchecked():
    """Without the type checks of the tests, which users do not have and which would come first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def tiny(cache):
    """Makes configs: of the tiny task, with settings of one's own."""
    return config


@pytest.fixture(scope="session")
def options(cache):
    """The same settings for the command line, but for the task."""
    settings = {name: value for name, value in SETTINGS.items() if name != "task"}
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


@pytest.fixture(scope="session")
def trained(tiny, tmp_path_factory):
    """A finished run, to look at."""
    return lantm.train(tiny(), tmp_path_factory.mktemp("runs"))


def train_slowly(config, root, cache, telling):
    """Tell every batch, then wait a little: there is time to be killed."""
    jax.config.update("jax_enable_x64", True)
    use_cache(cache)

    def tell(progress):
        telling.send(progress.batch)
        time.sleep(0.003)

    lantm.train(config, root, on_progress=tell)


@pytest.fixture
def start_slowly(cache, monkeypatch):
    """Starts a process that trains, and returns it with the pipe that tells its batches."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tiny"])

    def start(config, root):
        told, telling = processes.Pipe(duplex=False)
        process = processes.Process(target=train_slowly, args=(config, root, cache, telling))
        process.start()
        telling.close()
        return process, told

    return start
