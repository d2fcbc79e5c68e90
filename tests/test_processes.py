"""Processes on one core."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lantm.processes import SINGLE, cache_folder, cores, one_core, own_gpu

FAULTS = """
import resource, threading, numpy as np
{first}
def allocate():
    [np.full(2**17, 1.0) for _ in range(16)]
    np.full(2**24, 1.0)
def allocate_elsewhere():
    thread = threading.Thread(target=allocate)
    thread.start()
    thread.join()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    allocate_elsewhere()
before = faults()
for _ in range(20):
    allocate_elsewhere()
print((faults() - before) / 20)
"""
KEEP = "from lantm.processes import keep_memory; keep_memory()"


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
@pytest.mark.parametrize(
    ("first", "env", "kept"), [("", {}, False), (KEEP, {}, True), ("", SINGLE, True)]
)
def test_freed_memory_is_kept(first, env, kept):
    """Sixteen times a megabyte and once 128, freed and asked for again by another thread: no page
    has to be fetched, but for some of the thread's own.
    """
    plain = {name: text for name, text in os.environ.items() if not name.startswith("MALLOC_")}
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FAULTS.format(first=first)],
        env={**plain, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (float(found.stdout) < 100) == kept


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


COMPILE = "import jax; jax.jit(lambda x: x + 1)(1.0)"


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"])
def test_the_program_keeps_what_it_compiles(variable, tmp_path):
    """In a place that the user may choose; the file is run by the program as any other is."""
    (tmp_path / "compile.py").write_text(COMPILE)
    own = (
        "XDG_CACHE_HOME",
        "JAX_COMPILATION_CACHE_DIR",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    )
    env = {name: text for name, text in os.environ.items() if name not in own}
    env |= {"HOME": str(tmp_path / "home"), variable: str(tmp_path / "chosen")}
    words = [sys.executable, "-m", "lantm", "zoo", "--file", "compile.py"]
    subprocess.run(words, env=env, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    folder = tmp_path / "chosen" / ("lantm" if variable == "XDG_CACHE_HOME" else "")
    assert any(folder.glob("jit_*"))
    assert not (tmp_path / "home").exists()


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() is None


def test_where_nothing_can_be_written_there_is_no_cache(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_folder() is None


@pytest.mark.parametrize(
    ("visible", "given"),
    [
        ("3, 5", ["3", "5", "3"]),
        ("GPU-a,GPU-b,GPU-c", ["GPU-a", "GPU-b", "GPU-c"]),
        ("0", [None] * 3),
        ("", [None] * 3),
    ],
)
def test_processes_share_out_the_gpus(visible, given, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [own_gpu(slot).get("CUDA_VISIBLE_DEVICES") for slot in range(3)] == given
