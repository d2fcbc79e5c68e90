"""Command-line options out of the fields of a dataclass, with one-line errors."""

import argparse
import dataclasses
import difflib
import sys
import typing
from typing import Any, NoReturn

from lantm.settings import field_docs, plain_type, reader


class Parser(argparse.ArgumentParser):
    """An argument parser that says in one line what is wrong, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")

    def parse_or_suggest(self, arguments: list[str]) -> argparse.Namespace:
        """As `parse_args`, but an unknown option gets its nearest match."""
        found, unknown = self.parse_known_args(arguments)
        if unknown:
            known = [name for action in found.parser._actions for name in action.option_strings]
            near = difflib.get_close_matches(unknown[0].split("=")[0], known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else f"; see {found.parser.prog} --help"
            found.parser.error(f"unknown argument {unknown[0]!r}{hint}")
        return found


def add_options(parser: argparse.ArgumentParser, usual: Any, skip: tuple[str, ...] = ()) -> None:
    """An option for every field of a dataclass, absent from the result unless given.

    The help shows the values that `usual` has.
    """
    docs, hints = field_docs(type(usual)), typing.get_type_hints(type(usual))
    for field in dataclasses.fields(usual):
        if field.name not in skip:
            kind = plain_type(hints[field.name])
            value = getattr(usual, field.name)
            told = "" if value is None else f" [{value}]"
            settings: dict[str, Any] = {
                "default": argparse.SUPPRESS,
                "help": (docs.get(field.name, "") + told).replace("%", "%%"),
            }
            if kind is bool:
                settings["action"] = argparse.BooleanOptionalAction
            else:
                settings |= {"type": reader(hints[field.name]), "metavar": kind.__name__.upper()}
            parser.add_argument("--" + field.name.replace("_", "-"), **settings)


def given_options(found: argparse.Namespace, *configs: type) -> dict[str, Any]:
    """The fields that were given on the command line."""
    names = {field.name for config in configs for field in dataclasses.fields(config)}
    return {name: value for name, value in vars(found).items() if name in names}


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    print("lantm: " + " ".join(message.split()), file=sys.stderr)
    raise SystemExit(2)
