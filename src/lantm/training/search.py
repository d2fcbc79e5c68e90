"""The search for a start: in this process, and in others where there are cores to spare.

Starts may end in any order. Which of them goes on is decided as if they had been trained one after
the other, so that the number of processes changes nothing but the time it takes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from lantm.extensions import loaded_files
from lantm.interrupts import deferred_signals
from lantm.processes import SINGLE
from lantm.training.starts import Outcome, wanted

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 30
"""For a helper that was asked to save and to end."""
LOG_FILE = "helpers.log"
SETTINGS = (
    "jax_enable_x64",
    "jax_disable_most_optimizations",
    "jax_default_matmul_precision",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
)
"""What may have been set in this process and decides what programs compute, or where they are."""


class SuperfluousError(Exception):
    """A start is being trained here, and the search has ended with one before it."""


def search(
    starts: int,
    outcome_of: Callable[[int], Outcome | None],
    train_here: Callable[[int, Callable[[], None]], None],
    helpers: "Helpers",
    on_ended: Callable[[int, Outcome], None],
) -> dict[int, Outcome]:
    """Train starts until it is clear which goes on; what came of them, by number.

    `train_here` trains one in this process, and calls a function now and then. `outcome_of` tells
    of any start, `on_ended` hears of each.
    """
    outcomes: dict[int, Outcome] = {}

    def left() -> list[int]:
        for number in range(starts):
            outcome = None if number in outcomes else outcome_of(number)
            if outcome is not None:
                outcomes[number] = outcome
                on_ended(number, outcome)
        return wanted(outcomes, starts)

    def tend(here: int) -> None:
        needed = left()
        helpers.keep_to(needed, outcomes)
        helpers.take(number for number in needed if number != here)
        if here not in needed:
            raise SuperfluousError

    with helpers:
        while needed := left():
            helpers.keep_to(needed, outcomes)
            free = [number for number in needed if number not in helpers.numbers]
            if not free:
                wait()
                continue
            try:
                tend(free[0])
                train_here(free[0], lambda here=free[0]: tend(here))
            except SuperfluousError:
                pass
    return outcomes


def wait() -> None:
    """A little; a signal ends it."""
    with deferred_signals() as check_signals:
        time.sleep(POLL_SECONDS)
        check_signals()


class Helpers:
    """Processes that train starts of the run in a folder, one at a time each.

    They are started when there is something to do. One that dies is not replaced: its start is
    free again, and goes on from its last checkpoint wherever it is taken up.
    """

    def __init__(self, folder: Path, count: int, on_notice: Callable[[str], None] = print):
        self.folder, self.room, self.on_notice = folder, count, on_notice
        self.numbers: dict[int, subprocess.Popen[bytes]] = {}
        """The starts that are being trained."""
        self.idle: list[subprocess.Popen[bytes]] = []
        self.closed: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Helpers":
        return self

    def __exit__(self, *_: Any) -> None:
        """All of them save and end; nobody waits for one that does not."""
        for process in [*self.idle, *self.numbers.values()]:
            self.close(process)
        for process in self.closed:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.numbers, self.idle, self.closed, self.room = {}, [], [], 0

    def keep_to(self, needed: Collection[int], over: Collection[int]) -> None:
        """Stop what is not needed; who is done with a start that is over can have another."""
        for number, process in list(self.numbers.items()):
            if process.poll() is not None:
                del self.numbers[number]
                self.close(process)
                if number in needed:
                    code = process.returncode
                    self.on_notice(f"start {number}: its process ended with {code}")
            elif number not in needed:
                del self.numbers[number]
                self.idle.append(process) if number in over else self.close(process)

    def take(self, numbers: Iterable[int]) -> None:
        """Begin with these starts, as far as there are processes for them."""
        for number in numbers:
            if number in self.numbers:
                continue
            if not self.idle and not self.room:
                return
            if not self.idle:
                self.room -= 1
                self.idle.append(self.start())
            process = self.idle.pop()
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            try:
                process.stdin.write(f"{number}\n".encode())
                process.stdin.flush()
            except BrokenPipeError:  # it died while it had nothing to do
                self.close(process)
            else:
                self.numbers[number] = process

    def start(self) -> subprocess.Popen[bytes]:
        settings = {name.upper(): jax.config.values.get(name) for name in SETTINGS}
        chosen = {name: str(value) for name, value in settings.items() if value is not None}
        words = [sys.executable, "-m", "lantm.training.helper", str(self.folder), *loaded_files]
        with (self.folder / LOG_FILE).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - no shell, our own program
                words,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**SINGLE, **os.environ, **chosen},
                process_group=0,  # Ctrl-C in a terminal reaches only this process
            )

    def close(self, process: subprocess.Popen[bytes]) -> None:
        """A helper ends when its standard input does."""
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):
            process.stdin.close()
        self.closed.append(process)
