"""Processes on one core with one thread: to be compared, or to run side by side."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

SINGLE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The environment of a process with one thread."""


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
