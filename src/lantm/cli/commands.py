"""From words to a command."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from lantm import __version__
from lantm.cli.common import FAILED, Run
from lantm.cli.options import Parser, fail
from lantm.errors import require_one_of
from lantm.extensions import describe, load_file, own_frames

MODULES = {
    "train": "train",
    "sweep": "sweep",
    "eval": "evaluate",
    "data": "evaluate",
    "zoo": "evaluate",
    "explore": "explore",
    "figure": "figure",
    "animate": "figure",
    "bench": "bench",
    "report": "report",
    "compare": "compare",
}
"""The module of every command; a command starts without the libraries of the others."""


def run(arguments: list[str] | None = None) -> int:
    """Run one command. A foreseeable mistake ends in one line and exit code 2; an error in the
    user's own file shows its place there and ends in exit code 1.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        found = build_parser(arguments).parse_or_suggest(arguments)
        if found.file is not None:
            load_file(found.file)
        return found.command(found)
    except Exception as error:
        own = own_frames(error)
        if own:
            show(error, own)
            return FAILED
        refuse(error)
        raise


def show(error: Exception, own: list[traceback.FrameSummary]) -> None:
    """One line with the place of an error in the user's own file, then how it was reached."""
    print(
        f"lantm: {describe(error)}", *traceback.format_list(own), sep="\n", end="", file=sys.stderr
    )


def refuse(error: Exception) -> None:
    """End with one line where the error says what is wrong with the command."""
    if isinstance(error, ValueError):
        fail(str(error))
    if isinstance(error, OSError):
        fail(f"cannot use {error.filename}: {error.strerror}" if error.filename else str(error))


def build_parser(asked: Sequence[str] = ()) -> Parser:
    """The parser of the command that is asked for; of all commands where none is."""
    parser = Parser("lantm", description="Neural memories whose heads move by Lie group actions.")
    parser.add_argument("--version", action="version", version=f"lantm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=run, parser=sub)
        sub.add_argument(
            "--file", metavar="FILE.py", help="run this first: tasks or key spaces of your own"
        )
        return sub

    names = list(MODULES)
    if asked and not asked[0].startswith("-"):
        require_one_of("command", asked[0], MODULES)
        names = [asked[0]]
    for module in dict.fromkeys(MODULES[name] for name in names):
        import_module(f"lantm.cli.{module}").add(command)
    return parser
