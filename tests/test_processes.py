"""Processes on one core."""

import os
import subprocess
import sys

import pytest

from lantm.processes import SINGLE, cores, one_core

FAULTS = """
import resource, numpy as np
{first}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    [np.full(2**17, 1.0) for _ in range(16)]
before = faults()
for _ in range(20):
    [np.full(2**17, 1.0) for _ in range(16)]
print((faults() - before) / 20)
"""
KEEP = "from lantm.processes import keep_memory; keep_memory()"


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
@pytest.mark.parametrize(
    ("first", "env", "kept"), [("", {}, False), (KEEP, {}, True), ("", SINGLE, True)]
)
def test_freed_memory_is_kept(first, env, kept):
    """Sixteen times a megabyte freed and asked for again: no page has to be fetched."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("MALLOC_")}
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FAULTS.format(first=first)],
        env={**plain, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (float(found.stdout) < 10) == kept


PRODUCT = """
import jax
from lantm import cli
def main():
    x, y = jax.random.normal(jax.random.key(0), (2, 2048, 128))
    print(jax.jit(lambda x, y: x.T @ y)(x, y).tobytes().hex())
cli.main = main
cli.start()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a setting of Linux")
def test_the_program_computes_the_same_on_any_number_of_cores():
    env = {name: text for name, text in os.environ.items() if name != "NPROC"}

    def product(**more):
        words = [sys.executable, "-c", PRODUCT]
        return subprocess.check_output(words, env={**env, **more})  # noqa: S603

    with one_core():
        alone = product()
    assert product() == alone
    assert product(NPROC="2") != alone, "the choice is the user's"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a setting of Linux")
def test_one_core():
    before = cores()
    with one_core(1):
        assert cores() == [before[1 % len(before)]]
    assert cores() == before
