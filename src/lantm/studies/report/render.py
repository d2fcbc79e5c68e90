"""A table as text: for a terminal, Markdown, CSV, LaTeX."""

import csv
import io
from collections.abc import Callable, Mapping

import rich.table
from rich import box
from rich.console import Console
from rich.measure import Measurement

from lantm.studies.entries import EMPTY
from lantm.studies.report.table import Table

WIDE = 10_000
"""Columns for what is not shown on a terminal: no line is broken."""


def terminal(table: Table) -> str:
    """As wide as the terminal, if there is one and every word has room."""
    out, real = io.StringIO(), Console()
    shown = rich.table.Table(title=table.title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, right in zip(table.header, table.numeric, strict=True):
        header = name.replace(" ", "\n") if right else name
        shown.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console = Console(file=out, width=WIDE, markup=False, highlight=False, emoji=False)
    least = Measurement.get(console, console.options, shown).minimum
    console.print(shown, width=max(least, real.width) if real.is_terminal else None)
    return out.getvalue() + table.caption + "\n"


def markdown(table: Table) -> str:
    """For a page of documentation, with the caption below."""
    rule = ["--:" if right else "---" for right in table.numeric]
    cells = [[_replace(cell, MARKDOWN) for cell in row] for row in table.rows]
    lines = ["| " + " | ".join(line) + " |" for line in [table.header, rule, *cells]]
    return "\n".join([*lines, "", table.caption, ""])


def comma_separated(table: Table) -> str:
    """For programs: what was not run is left empty, and there is no caption."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([["" if cell == EMPTY else cell for cell in row] for row in table.rows])
    return out.getvalue()


def latex(table: Table) -> str:
    """For a paper; needs the package booktabs."""
    columns = "".join("r" if right else "l" for right in table.numeric)
    header, *rows = (
        " & ".join(_replace(cell, LATEX) for cell in line) + r" \\"
        for line in [table.header, *table.rows]
    )
    return "\n".join(
        [
            r"\begin{table}",
            r"\small",
            rf"\begin{{tabular}}{{{columns}}}",
            *[r"\toprule", header, r"\midrule", *rows, r"\bottomrule"],
            r"\end{tabular}",
            rf"\caption{{{_replace(f'{table.title}. {table.caption}', LATEX)}}}",
            r"\end{table}",
            "",
        ]
    )


MARKDOWN = {"|": r"\|", "<": "&lt;", "\n": " "}
LATEX = {
    **{char: "\\" + char for char in "_%&#${}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{EMPTY: r"$\cdot$", "-": "-{}", "\n": " "},  # or else -- becomes a dash
}


def _replace(text: str, changes: Mapping[str, str]) -> str:
    return "".join(changes.get(char, char) for char in text)


FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": terminal,
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
}
