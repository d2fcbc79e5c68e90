"""Starts of a run, trained in a process beside the one that has the run.

python -m lantm.training.helper RUN [FILE.py ...]

The numbers of the starts come through standard input, a line each. When it closes, the other
process needs no more of them or has died.
"""

import os
import signal
import sys
import threading
from queue import SimpleQueue

from lantm.extensions import load_file
from lantm.interrupts import Stopped, watch_signals
from lantm.training.runs import Run
from lantm.training.trainer import Trainer


def work(numbers: "SimpleQueue[int]", folder: str, *files: str) -> None:
    """Train what is asked for, for ever."""
    for file in files:
        load_file(file)
    run, trainer = Run.open(folder), None
    while True:
        number = numbers.get()
        trainer = trainer or Trainer(run, beside=True)
        trainer.train_start(number)


def listen(numbers: "SimpleQueue[int]") -> None:
    """Pass numbers on; interrupt this process when there will be none any more."""
    for line in sys.stdin:
        numbers.put(int(line))
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    watch_signals()
    numbers: SimpleQueue[int] = SimpleQueue()
    threading.Thread(target=listen, args=(numbers,), daemon=True).start()
    try:
        work(numbers, *sys.argv[1:])
    except Stopped as stopped:
        raise SystemExit(stopped.exit_code) from None


if __name__ == "__main__":
    main()
