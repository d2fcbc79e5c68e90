"""Double precision for every test, no silent broadcasting between ranks, and programs that are
compiled in a hurry and only once: they are kept between runs of the tests.
"""

import gc
import os
import time
from pathlib import Path

os.environ.setdefault("NPROC", "1")  # as many threads as a worker has cores

import hypothesis
import jax
import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lantm-tests"
KEPT_SECONDS = 14 * 24 * 3600
"""After that a program is compiled anew: those of former versions of the code go."""

# For the processes that tests start, too.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_disable_most_optimizations", True)  # most programs run only a few times
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("lantm", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("lantm")


def pytest_sessionstart(session):
    if hasattr(session.config, "workerinput"):  # the process that starts the others does it
        return
    for program in CACHE.glob("*"):
        if time.time() - program.stat().st_mtime > KEPT_SECONDS:
            program.unlink()


MOST_MAPS = 25_000
MAPS = Path("/proc/self/maps")


@pytest.fixture(autouse=True)
def few_programs():
    """Loaded programs go when there are many: each takes several of the 65,530 pieces of memory
    that Linux gives a process, and without one LLVM aborts.
    """
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


def compile_as_for_users():
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


optimised = pytest.fixture(compile_as_for_users)
optimised_module = pytest.fixture(compile_as_for_users, scope="module")


@pytest.fixture(autouse=True)
def registries():
    """What a test adds to the registries goes when it ends."""
    import lantm  # noqa: PLC0415 - the type checks are put in at its first import

    parts = (lantm.CONTROLLERS, lantm.OUTPUTS, lantm.WEIGHTINGS, lantm.MODELS)
    known = [(registry, dict(registry)) for registry in (lantm.SPACES, lantm.TASKS, *parts)]
    yield
    for registry, before in known:
        registry.clear()
        registry.update(before)
