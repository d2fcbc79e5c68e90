"""lantm report"""

import argparse
from pathlib import Path

from lantm.cli.common import Add, picture_file
from lantm.errors import require_one_of
from lantm.studies.report import (
    FORMATS,
    TABLES,
    best,
    draw_differences,
    of_grid,
    parse,
    update_page,
)
from lantm.studies.results import read_results

RESULTS = "results/results.jsonl"


def add(command: Add) -> None:
    report = command("report", run_report, "tables of the results of sweeps, beside the paper's")
    report.add_argument(
        "results", nargs="?", default=RESULTS, help="a file of results [%(default)s]"
    )
    report.add_argument("--table", help=f"{', '.join(TABLES)} [main]")
    report.add_argument("--format", help=f"{', '.join(FORMATS)} [terminal]")
    report.add_argument("--out", metavar="FILE", help="write the table there")
    report.add_argument(
        "--heatmap", metavar="FILE", help="draw there what interpolation of actions changes"
    )
    report.add_argument("--checkpoint", default="best", help="best on validation, or last [best]")
    report.add_argument("--grid", metavar="NAME", help="only the runs of this grid")
    report.add_argument(
        "--update", metavar="FILE.md", help="make the tables of a page anew instead of showing one"
    )


def run_report(found: argparse.Namespace) -> int:
    for name in ("table", "format", "out", "grid") if found.update else ():
        if getattr(found, name) is not None:
            raise ValueError(f"--update makes what its page asks for; got --{name} too")
    table, shape = found.table or "main", found.format or "terminal"
    require_one_of("table", table, TABLES)
    require_one_of("format", shape, FORMATS)
    results = parse(read_results(found.results), found.checkpoint)
    if found.grid:
        results = of_grid(results, found.grid)
    if found.heatmap:
        picture = picture_file(found.heatmap)
        draw_differences(best(results)).savefig(picture, dpi=120)
        print(f"heat map: {picture}")
    if found.update:
        page = Path(found.update)
        text = update_page(page.read_text("utf-8"), results, found.checkpoint)
        page.write_text(text, "utf-8")
        print(f"tables: {page}")
        return 0
    text = FORMATS[shape](TABLES[table](results, found.checkpoint))
    if found.out:
        Path(found.out).write_text(text, "utf-8")
        print(f"table: {found.out}")
    elif not found.heatmap:
        print(text, end="")
    return 0
