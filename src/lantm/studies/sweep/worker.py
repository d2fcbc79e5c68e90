"""Runs of a sweep, one after the other, in a process of their own.

python -m lantm.studies.sweep.worker [FILE.py]

The directories of the runs come through standard input, a line each, and go back through standard
output when they are over. What is said meanwhile is kept in the directory.
"""

import os
import sys
import textwrap
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

import jax

from lantm.extensions import describe, load_file, loaded_files
from lantm.interrupts import serve
from lantm.training.config import TrainConfig
from lantm.training.runs import BusyError, Run
from lantm.training.train import finish
from lantm.training.updates import program_of

LONGEST_ERROR = 300
ERROR_FILE = "error.log"
"""In the directory of a run that failed: the whole traceback."""
LOG_FILE = "worker.log"
"""In the directory of a run: what was said while it was trained."""

_programs: list[TrainConfig] = []
"""What this process has compiled is for runs of this kind."""


def work(folder: str, file: str | None = None) -> None:
    """Finish the run in a directory, unless another process is at it; an error is its result."""
    if file is not None and file not in loaded_files:
        load_file(file)
    run = Run.open(folder)
    keep_programs_of(run.config)
    try:
        finish(run)
        (run.path / ERROR_FILE).unlink(missing_ok=True)
    except BusyError:
        pass
    except Exception as error:  # the other runs go on
        (run.path / ERROR_FILE).write_text(traceback.format_exc(), "utf-8")
        short = textwrap.shorten(describe(error), LONGEST_ERROR, placeholder=" ...")
        record_failure(run, f"{short} (see {ERROR_FILE})")


def keep_programs_of(config: TrainConfig) -> None:
    """Drop those of other runs: they would fill the memory in the course of a sweep."""
    program = program_of(config)
    if _programs and _programs != [program]:
        jax.clear_caches()
    _programs[:] = [program]


def record_failure(run: Run, error: str) -> None:
    run.write_json("result.json", {"status": "failed", "error": error})


def answer(folders: "SimpleQueue[str]") -> NoReturn:
    """Work on what is asked for, for ever."""
    with os.fdopen(os.dup(1), "w") as answers:
        while True:
            folder = folders.get()
            with (Path(folder) / LOG_FILE).open("ab") as log:
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                    os.dup2(log.fileno(), stream.fileno())
            work(folder, *sys.argv[1:])
            print(folder, file=answers, flush=True)


if __name__ == "__main__":
    serve(answer)
