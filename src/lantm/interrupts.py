"""Ctrl-C and SIGTERM end the program in one line, and at a moment when everything is saved.

Python would raise an exception amid what jax does. While jax compiles that happens much too late,
and the program can then crash as it ends. So a thread waits for signals: it ends the program at
once where there is nothing to save, and leaves them to `deferred_signals` where there is.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = "\x1b[?25h"

_words: list[Callable[[], str]] = [lambda: "stopped"]
"""What to say when the program is stopped; the last one holds."""


_watched = threading.Event()
"""Set once a thread watches the signals of this process."""


class Stopped(KeyboardInterrupt):
    """A signal asked for an end, and this is the moment for it."""

    def __init__(self, signum: int):
        super().__init__()
        self.exit_code = exit_code(signum)


def exit_code(signum: int) -> int:
    """Of a program that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + signum


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """A signal waits for the next check, which raises `Stopped`. A second one does not wait."""
    asked: list[int] = []

    def remember(signum: int, frame: Any) -> None:
        if asked and not _watched.is_set():  # else the watcher ends the program
            raise SystemExit(exit_code(signum))
        asked.append(signum)

    def check() -> None:
        if asked:
            raise Stopped(asked[0])

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    before = {signum: signal.signal(signum, remember) for signum in SIGNALS}
    try:
        yield check
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler or signal.SIG_DFL)  # none: not of Python's making


@contextmanager
def if_stopped(words: Callable[[], str]) -> Iterator[None]:
    """What the program says when it is stopped in this block."""
    _words.append(words)
    try:
        yield
    finally:
        _words.pop()


def serve(work: Callable[["SimpleQueue[str]"], NoReturn]) -> NoReturn:
    """A process that works for another one, on what comes as lines through standard input. Where
    that closes, the other needs no more of it or has died: what is in progress is saved.
    """
    watch_signals()
    asked: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(line.removesuffix("\n"))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=listen, daemon=True).start()
    try:
        work(asked)
    except Stopped as stopped:
        raise SystemExit(stopped.exit_code) from None


def watch_signals() -> None:
    """From now on the signals end this program at once, but for blocks of `deferred_signals`."""
    if os.name != "posix":
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for signum in SIGNALS:
        if signal.getsignal(signum) != signal.SIG_IGN:  # as a program in the background has it
            signal.signal(signum, leave_to_watcher)
    threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    _watched.set()


def leave_to_watcher(signum: int, frame: Any) -> None:
    """A handler that does nothing: raising something is not safe everywhere."""


def _watch(reading: int) -> None:
    """Wait for signals; the system writes the number of each into the pipe."""
    asked = False
    while True:
        (signum,) = os.read(reading, 1)
        if asked or signal.getsignal(signum) is leave_to_watcher:
            _end(signum)
        asked = True
        _tell("stopping as soon as everything is saved; once more stops at once")


def _end(signum: int) -> NoReturn:
    """Without the clean-up of Python, in which jax can crash amid a compilation."""
    for stream in (sys.stdout, sys.stderr):
        flushing = threading.Thread(target=stream.flush, daemon=True)
        flushing.start()
        flushing.join(timeout=1)  # nobody may be reading what was written
    _tell((SHOW_CURSOR if sys.stderr.isatty() else "") + _words[-1]())
    os._exit(exit_code(signum))


def _tell(text: str) -> None:
    os.write(2, f"lantm: {text}\n".encode())
