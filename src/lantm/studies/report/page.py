"""Pages of documentation whose numbers are made from results, and their pictures."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text

from lantm.errors import require_one_of
from lantm.studies.entries import Result, of_grid
from lantm.studies.report.counts import grids_table, runs_table, success_table
from lantm.studies.report.heatmap import draw_differences, draw_successes
from lantm.studies.report.render import markdown
from lantm.studies.report.summary import summary
from lantm.studies.report.tables import Table, interpolation_table, main_table, tasks_table

TABLES: dict[str, Callable[[Sequence[Result], str], Table]] = {
    "main": main_table,
    "interpolation": interpolation_table,
    "tasks": tasks_table,
    "success": success_table,
    "grids": grids_table,
    "runs": runs_table,
}
SUMMARY = "summary"
PICTURES: dict[str, Callable[[Sequence[Result]], Figure]] = {
    "differences": draw_differences,
    "successes": draw_successes,
}
"""The pictures that a folder of pages has in `images`."""
MARK = re.compile(r"^<!-- report .*-->$", re.M)
BLOCK = re.compile(r"(^<!-- report (\S+)(?: (\S+))? -->\n).*?(^<!-- end -->$)", re.S | re.M)


def update_page(page: str, results: Sequence[Result], checkpoint: str) -> str:
    """The page with everything between `<!-- report TABLE -->` and `<!-- end -->` made anew.

    `<!-- report summary -->` has the summary in words; `<!-- report TABLE GRID -->` has only the
    runs of that grid.
    """

    def block(match: re.Match[str]) -> str:
        begin, name, grid, end = match.groups()
        require_one_of("table", name, [*TABLES, SUMMARY])
        chosen = results if grid is None else of_grid(results, grid)
        if name == SUMMARY:
            return f"{begin}\n{summary(chosen, checkpoint)}\n{end}"
        return f"{begin}\n{markdown(TABLES[name](chosen, checkpoint))}\n{end}"

    made, count = BLOCK.subn(block, page)
    if not count or count != len(MARK.findall(page)):
        raise ValueError("page must have lines <!-- report TABLE -->, each with an <!-- end -->")
    return made


def update_folder(folder: Path, results: Sequence[Result], checkpoint: str) -> list[Path]:
    """Make all pages of a folder anew that ask for it, and the pictures; returns their paths."""
    pages = [page for page in sorted(folder.glob("*.md")) if MARK.search(page.read_text("utf-8"))]
    if not pages:
        raise ValueError(f"{folder} must have a page with lines <!-- report TABLE -->")
    made = {page: update_page(page.read_text("utf-8"), results, checkpoint) for page in pages}
    for page, text in made.items():
        page.write_text(text, "utf-8")
    pictures = [folder / "images" / f"{name}.png" for name in PICTURES]
    for path, draw in zip(pictures, PICTURES.values(), strict=True):
        path.parent.mkdir(exist_ok=True)
        save_picture(draw(results), path)
    return [*made, *pictures]


def save_picture(figure: Figure, path: Path) -> None:
    """A PNG file says with a checksum what it shows, so that one can tell if it is out of date."""
    more = {"Description": picture_digest(figure)} if path.suffix == ".png" else None
    figure.savefig(path, dpi=120, metadata=more)


def picture_digest(figure: Figure) -> str:
    """Of all words and numbers in a picture."""
    words = [part.get_text() for part in figure.findobj(Text) if isinstance(part, Text)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
