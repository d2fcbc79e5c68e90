"""A page of documentation whose tables are made from results."""

import re
from collections.abc import Sequence

from lantm.errors import require_one_of
from lantm.studies.report.entries import Result, of_grid
from lantm.studies.report.render import markdown
from lantm.studies.report.tables import TABLES

MARK = re.compile(r"^<!-- report .*-->$", re.M)
BLOCK = re.compile(r"(^<!-- report (\S+)(?: (\S+))? -->\n).*?(^<!-- end -->$)", re.S | re.M)


def update_page(page: str, results: Sequence[Result], checkpoint: str) -> str:
    """The page with every table between `<!-- report TABLE -->` and `<!-- end -->` made anew.

    `<!-- report TABLE GRID -->` has only the runs of that grid.
    """

    def block(match: re.Match[str]) -> str:
        begin, name, grid, end = match.groups()
        require_one_of("table", name, TABLES)
        chosen = results if grid is None else of_grid(results, grid)
        return f"{begin}\n{markdown(TABLES[name](chosen, checkpoint))}\n{end}"

    made, count = BLOCK.subn(block, page)
    if not count or count != len(MARK.findall(page)):
        raise ValueError("page must have lines <!-- report TABLE -->, each with an <!-- end -->")
    return made
