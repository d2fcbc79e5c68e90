"""Starts of a run, trained in a process beside the one that has the run.

python -m lantm.training.helper RUN [FILE.py ...]

The numbers of the starts come through standard input, a line each. When it closes, the other
process needs no more of them or has died.
"""

import sys
from queue import SimpleQueue
from typing import NoReturn

from lantm.extensions import load_file
from lantm.interrupts import serve
from lantm.training.runs import Run
from lantm.training.trainer import Trainer


def work(numbers: "SimpleQueue[str]", folder: str, *files: str) -> NoReturn:
    """Train what is asked for, for ever."""
    for file in files:
        load_file(file)
    run, trainer = Run.open(folder), None
    while True:
        number = int(numbers.get())
        trainer = trainer or Trainer(run, beside=True)
        trainer.train_start(number)


if __name__ == "__main__":
    serve(lambda numbers: work(numbers, *sys.argv[1:]))
