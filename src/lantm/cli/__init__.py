"""The command line; one module for each group of commands."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lantm.cli import bench, evaluate, explore, figure, report, sweep, train
from lantm.cli.common import Run
from lantm.cli.options import Parser, fail
from lantm.errors import require_one_of
from lantm.extensions import load_file
from lantm.processes import ONE_THREAD, keep_memory

MODULES = (train, sweep, evaluate, explore, figure, bench, report)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every foreseeable mistake ends in one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        found = build_parser(arguments).parse_or_suggest(arguments)
        if found.file is not None:
            load_file(found.file)
        return found.command(found)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot use {error.filename}: {error.strerror}" if error.filename else str(error))


def build_parser(asked: Sequence[str] = ()) -> Parser:
    """All commands; the first word that was asked for has to be one of them."""
    parser = Parser("lantm", description="Neural memories whose heads move by Lie group actions.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=run, parser=sub)
        sub.add_argument(
            "--file", metavar="FILE.py", help="run this first: tasks or key spaces of your own"
        )
        return sub

    for module in MODULES:
        module.add(command)
    if asked and not asked[0].startswith("-"):
        require_one_of("command", asked[0], commands.choices)
    return parser


def start() -> None:
    """The `lantm` program.

    It computes with one thread, so that a command gives the same numbers on any number of cores.
    Compiled programs are kept, so that a second start is quick.
    """
    keep_memory()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lantm"
    for name, usual in {**ONE_THREAD, "JAX_COMPILATION_CACHE_DIR": str(cache)}.items():
        os.environ.setdefault(name, usual)
    raise SystemExit(main())
