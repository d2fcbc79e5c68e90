"""Pages of documentation whose numbers are made from results, and their pictures."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text

from lantm.errors import require_one_of
from lantm.studies.entries import Result, of_grid, parse
from lantm.studies.report.counts import grids_table, runs_table, settings_table, success_table
from lantm.studies.report.crossed import ablations_table, lantm_s_table, spaces_table
from lantm.studies.report.heatmap import draw_differences, draw_successes
from lantm.studies.report.peers import lengths_table, peers_table
from lantm.studies.report.render import markdown
from lantm.studies.report.summary import summary
from lantm.studies.report.table import Table
from lantm.studies.report.tables import interpolation_table, main_table, tasks_table
from lantm.studies.results import read_results

TABLES: dict[str, Callable[[Sequence[Result], str], Table]] = {
    "main": main_table,
    "interpolation": interpolation_table,
    "tasks": tasks_table,
    "success": success_table,
    "grids": grids_table,
    "settings": settings_table,
    "ablations": ablations_table,
    "spaces": spaces_table,
    "lantm_s": lantm_s_table,
    "runs": runs_table,
    "peers": peers_table,
    "lengths": lengths_table,
}
SUMMARY = "summary"
PICTURES: dict[str, Callable[[Sequence[Result]], Figure]] = {
    "differences": draw_differences,
    "successes": draw_successes,
}
"""The pictures that a folder of pages has in `images`."""
MARK = re.compile(r"^<!-- report .*-->$", re.M)
BLOCK = re.compile(r"(^<!-- report (\S+)(?: (\S+))? -->\n).*?(^<!-- end -->$)", re.S | re.M)
SOURCE = re.compile(r"^<!-- results (\S+) -->$", re.M)


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


def source_of(page: str, file: Path) -> Path:
    """The results that a page is made from: `file`, or another one in the same folder, which a line
    `<!-- results NAME -->` names.
    """
    named = SOURCE.search(page)
    return file.with_name(named[1]) if named else file


def update_pages(path: Path, file: Path, checkpoint: str) -> list[Path]:
    """Make a page anew; of a folder all pages that ask for it, and the pictures. `file` has the
    results; see `source_of`. Returns what was made.
    """
    pages = sorted(path.glob("*.md")) if path.is_dir() else [path]
    texts = {page: page.read_text("utf-8") for page in pages}
    if path.is_dir():
        texts = {page: text for page, text in texts.items() if MARK.search(text)}
    if not texts:
        raise ValueError(f"{path} must have a page with lines <!-- report TABLE -->")

    @cache
    def results(source: Path) -> list[Result]:
        return parse(read_results(source), checkpoint)

    made = {
        page: update_page(text, results(source_of(text, file)), checkpoint)
        for page, text in texts.items()
    }
    for page, text in made.items():
        page.write_text(text, "utf-8")
    pictures = {path / "images" / f"{name}.png": draw for name, draw in PICTURES.items()}
    for picture, draw in pictures.items() if path.is_dir() else ():
        picture.parent.mkdir(exist_ok=True)
        save_picture(draw(results(file)), picture)
    return [*made, *(pictures if path.is_dir() else ())]


def save_picture(figure: Figure, path: Path) -> None:
    """A PNG file says with a checksum what it shows, so that one can tell if it is out of date."""
    more = {"Description": picture_digest(figure)} if path.suffix == ".png" else None
    figure.savefig(path, dpi=120, metadata=more)


def picture_digest(figure: Figure) -> str:
    """Of all words and numbers in a picture."""
    words = [part.get_text() for part in figure.findobj(Text) if isinstance(part, Text)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
