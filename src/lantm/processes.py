"""Processes: with one thread, on one core, to be compared or run side by side; their memory."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEEPING = {
    "MALLOC_MMAP_MAX_": (-4, 0),
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**31 - 1),
}
"""Settings of glibc's allocator, with the numbers that `mallopt` knows them by: freed memory is
kept, instead of thousands of pages that the system has to clear for every training step. It comes
from one heap, which all threads share and which has no largest piece, and never from `mmap`."""

ONE_THREAD = {"NPROC": "1"}
"""The environment in which XLA adds in the same order whatever the number of cores."""

SINGLE = {
    **ONE_THREAD,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    **{name: str(value) for name, (_, value) in KEEPING.items()},
}
"""The environment of a process with one thread, which keeps its memory."""


CACHE = "JAX_COMPILATION_CACHE_DIR"


def choose_environment() -> None:
    """Of the `lantm` program and of the processes it starts, before jax is imported.

    It computes with one thread, so that a command gives the same numbers on any number of cores.
    Compiled programs are kept, so that a second start is quick. What the user has set stays.
    """
    prefer_one_thread()
    keep_programs()


def prefer_one_thread() -> None:
    """For what jax computes in this process. It has no effect once jax has computed something."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


def computing_threads() -> int | None:
    """How many threads jax computes with on the processor, where the system tells."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count("tf_XLAEigen") or None


def keep_programs() -> None:
    """Let jax keep what it compiles, also the quick programs: a start compiles dozens of those."""
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    if CACHE not in os.environ:
        folder = cache_folder()
        if folder is not None:
            os.environ[CACHE] = str(folder)


def cache_folder() -> Path | None:
    """Made if need be; none where nothing can be written, since jax would warn of it each time."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lantm"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: no HOME, and a user that the system lacks
        return None
    return folder if os.access(folder, os.W_OK) else None


def keep_memory() -> None:
    """Keep freed memory in this process, where the C library can do that."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        for number, value in KEEPING.values():
            set_option(number, value)


def require_memory(what: str, needed: int) -> None:
    """So many bytes are less than all that this machine has."""
    there = total_memory()
    if there is not None and needed > there:
        gigabytes = f"{needed / 1e9:,.0f} GB of memory; this machine has {there / 1e9:,.0f} GB"
        raise ValueError(f"{what} would need at least {gigabytes}")


def total_memory() -> int | None:
    """The bytes of memory that this machine has, where the system tells."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(names):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_core(core: int = 0) -> Iterator[None]:
    """Processes started here stay on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cores()[core % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> list[int]:
    """Those that may be used; the last one, which systems use least, comes first."""
    return sorted(os.sched_getaffinity(0), reverse=True)


def visible_gpus() -> list[str]:
    """The graphics processors that may be used, by the names that CUDA has for them."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip()]
    files = Path("/dev").glob("nvidia[0-9]*")
    return sorted((file.name.removeprefix("nvidia") for file in files), key=int)


def own_gpu(slot: int) -> dict[str, str]:
    """The environment of one process of several, where there are several graphics processors."""
    gpus = visible_gpus()
    return {"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]} if len(gpus) > 1 else {}
