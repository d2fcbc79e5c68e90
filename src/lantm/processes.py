"""Processes: with one thread, on one core, to be compared or run side by side; their memory."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

KEEPING = {"MMAP_THRESHOLD": (-3, 32 << 20), "TRIM_THRESHOLD": (-1, 1 << 30)}
"""Settings of glibc's allocator, with the numbers that `mallopt` knows them by: freed memory is
kept, instead of thousands of pages that the system has to clear for every training step."""

ONE_THREAD = {"NPROC": "1"}
"""The environment in which XLA adds in the same order whatever the number of cores."""

SINGLE = {
    **ONE_THREAD,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    **{f"MALLOC_{name}_": str(size) for name, (_, size) in KEEPING.items()},
}
"""The environment of a process with one thread, which keeps its memory."""


def keep_memory() -> None:
    """Keep freed memory in this process, where the C library can do that."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        for number, size in KEEPING.values():
            set_option(number, size)


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
