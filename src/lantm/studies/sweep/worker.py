"""One run of a sweep, in a process of its own.

python -m lantm.studies.sweep.worker RUN [FILE.py]
"""

import os
import signal
import sys
import textwrap
import threading
import traceback

from lantm.extensions import describe, load_file
from lantm.interrupts import Stopped, watch_signals
from lantm.training.runs import BusyError, Run
from lantm.training.train import finish

LONGEST_ERROR = 300
ERROR_FILE = "error.log"
"""In the directory of a run that failed: the whole traceback."""


def work(folder: str, file: str | None = None) -> None:
    """Finish the run in a directory, unless another process is at it; an error is its result."""
    if file is not None:
        load_file(file)
    run = Run.open(folder)
    try:
        finish(run)
        (run.path / ERROR_FILE).unlink(missing_ok=True)
    except BusyError:
        pass
    except Exception as error:  # the other runs go on
        (run.path / ERROR_FILE).write_text(traceback.format_exc(), "utf-8")
        short = textwrap.shorten(describe(error), LONGEST_ERROR, placeholder=" ...")
        record_failure(run, f"{short} (see {ERROR_FILE})")


def record_failure(run: Run, error: str) -> None:
    run.write_json("result.json", {"status": "failed", "error": error})


def stop_with_parent() -> None:
    """Interrupt when standard input closes: the parent asks for an end, or has died."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    watch_signals()
    threading.Thread(target=stop_with_parent, daemon=True).start()
    try:
        work(*sys.argv[1:])
    except Stopped as stopped:
        raise SystemExit(stopped.exit_code) from None


if __name__ == "__main__":
    main()
