"""What several commands print."""

import argparse
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from lantm.errors import require_one_of

WIDE = 10_000
"""Columns enough for any table."""
FAILED = 1
"""The exit code of a command that was right and did not succeed."""

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""What a command does; returns its exit code."""
Add: TypeAlias = Callable[[str, Run, str], argparse.ArgumentParser]
"""Adds a command by name, with a line of help; returns its parser for the options."""


def make_console(width: int | None = None) -> Console:
    """Text is shown as it is: brackets in the name of a file are no markup."""
    return Console(width=width, markup=False, highlight=False, emoji=False)


def say(console: Console, text: str) -> None:
    """One line, however wide the terminal."""
    console.print(text, soft_wrap=True)


def show_table(console: Console, table: Table) -> None:
    """As wide as it has to be: a narrow terminal breaks lines rather than leave cells empty."""
    for column in table.columns:
        column.overflow = "fold"
    least = Measurement.get(console, console.options.update(width=WIDE), table).minimum
    make_console(width=max(least, console.width)).print(table)


def picture_file(name: str) -> Path:
    """Where a picture will be: PNG if no suffix says otherwise; refused if it cannot be."""
    from matplotlib.backend_bases import FigureCanvasBase  # noqa: PLC0415 - slow, and not for all

    path = Path(name) if Path(name).suffix else Path(f"{name}.png")
    require_one_of(f"suffix of {path}", path.suffix[1:].lower(), FigureCanvasBase.filetypes)
    require_writable(path)
    return path


def require_writable(path: Path) -> None:
    """A file can be made there, as far as its folder says."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def accuracies(row: dict[str, Any]) -> tuple[float, float]:
    return row["fine"], row["coarse"]
