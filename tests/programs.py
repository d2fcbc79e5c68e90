"""The `lantm` program in a process of its own."""

import signal
import subprocess
import sys
import time


def program(*arguments, **settings):
    """The program in a process that hears Ctrl-C also if the tests run in the background."""
    words = [sys.executable, "-m", "lantm", *arguments]
    pipe = subprocess.PIPE
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, **settings)  # noqa: S603
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)
