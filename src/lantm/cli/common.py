"""What several commands print."""

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

from rich.console import Console

FAILED = 1
"""The exit code of a command that was right and did not succeed."""

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""What a command does; returns its exit code."""
Add: TypeAlias = Callable[[str, Run, str], argparse.ArgumentParser]
"""Adds a command by name, with a line of help; returns its parser for the options."""


def say(console: Console, text: str) -> None:
    """One line as it is, however wide the terminal and whatever brackets it has."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def accuracies(row: dict[str, Any]) -> tuple[float, float]:
    return row["fine"], row["coarse"]
