"""Ctrl-C and SIGTERM: one line, the right exit code, true words, and no crash."""

import os
import shlex
import signal
from pathlib import Path

import pytest

import lantm
from programs import program

pytest_plugins = ["tiny"]

TINY = str(Path(__file__).parent / "tiny.py")
CACHE = os.environ["JAX_COMPILATION_CACHE_DIR"]
HANGING = "import time; print('ready', flush=True); time.sleep(60)"
over_signals = pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing is written into the repository, and nothing is found in a cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def stop(process, signum, line="ready"):
    """Send the signal once the program has said so; what it says in the end."""
    for said in process.stdout:
        if said.startswith(line):
            break
    process.send_signal(signum)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors


@over_signals
def test_during_imports(signum, code, tmp_path):
    (tmp_path / "jax.py").write_text(HANGING)
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    process = program("train", "copy", env={**os.environ, "PYTHONPATH": search})
    assert stop(process, signum) == (code, "", "lantm: stopped\n")


@pytest.mark.parametrize("command", ["eval zoo:copy", "bench", "sweep best"])
def test_in_other_commands(command, tmp_path):
    (tmp_path / "hanging.py").write_text(HANGING)
    process = program(*command.split(), "--file", "hanging.py")
    assert stop(process, signal.SIGINT) == (130, "", "lantm: stopped\n")


@over_signals
def test_while_it_compiles(signum, code):
    """At once, also out of the compiler, which knows nothing of signals."""
    process = program("train", "copy")
    code_found, _, errors = stop(process, signum, "compiling")
    assert (code_found, errors) == (code, "lantm: stopped; nothing saved yet\n")


@over_signals
def test_amid_training(signum, code, options, monkeypatch):
    """It saves, says at which batch, and the command it names goes on from there."""
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", CACHE)
    process = program("train", "tiny", "--file", TINY, *options, "--batches=100000")
    found, out, errors = stop(process, signum, "batch     10")
    assert found == code
    assert errors == "lantm: stopping as soon as everything is saved; once more stops at once\n"
    *_, last = out.splitlines()
    run = lantm.Run.open(*Path("runs").iterdir())
    assert last.startswith(f"stopped; saved at batch {run.saved}; go on with: lantm train --resume")
    assert (run.path / "checkpoints" / f"{run.saved:06d}.safetensors").exists()
    again = program(*shlex.split(last.partition("lantm ")[2]))
    _, _, errors = stop(again, signum, "compiling")
    assert f"lantm: stopped; saved at batch {run.saved}; " in errors
    assert lantm.Run.open(run.path).saved == run.saved


def test_a_second_signal_does_not_wait(tmp_path):
    (tmp_path / "own.py").write_text(
        "import signal, time, lantm.interrupts\n"
        "with lantm.interrupts.deferred_signals():\n"
        "    print('ready', flush=True); time.sleep(1); signal.raise_signal(2); time.sleep(60)\n"
    )
    code, _, errors = stop(program("zoo", "--file", "own.py"), signal.SIGINT)
    assert code == 130
    assert errors.splitlines()[-1] == "lantm: stopped"
