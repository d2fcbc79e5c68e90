"""The command line; one module for each group of commands."""

import sys
from typing import NoReturn

from lantm.interrupts import watch_signals
from lantm.processes import choose_environment, keep_memory


def start() -> NoReturn:
    """The `lantm` program."""
    watch_signals()
    keep_memory()
    choose_environment()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    raise SystemExit(main())


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    from lantm.cli.commands import run  # noqa: PLC0415 - jax reads the environment when imported

    return run(arguments)
