"""lantm report"""

import argparse
from pathlib import Path

from lantm.cli.common import Add, picture_file
from lantm.errors import require_one_of
from lantm.studies.report import (
    FORMATS,
    PICTURES,
    SUMMARY,
    TABLES,
    of_grid,
    parse,
    save_picture,
    summary,
    update_pages,
)
from lantm.studies.results import read_results

RESULTS = "results/results.jsonl"
HELP = {
    "differences": "draw there what interpolation of actions changes",
    "successes": "draw there which runs succeeded: every task, model and kind of run at a glance",
}


def add(command: Add) -> None:
    report = command("report", run_report, "tables of the results of sweeps, beside the paper's")
    report.add_argument(
        "results", nargs="?", default=RESULTS, help="a file of results [%(default)s]"
    )
    report.add_argument("--table", help=f"{', '.join([*TABLES, SUMMARY])} [main]")
    report.add_argument("--format", help=f"{', '.join(FORMATS)} [terminal]")
    report.add_argument("--out", metavar="FILE", help="write the table there")
    for name, text in HELP.items():
        report.add_argument(f"--{name}", metavar="FILE", help=text)
    report.add_argument("--checkpoint", default="best", help="best on validation, or last [best]")
    report.add_argument("--grid", metavar="NAME", help="only the runs of this grid")
    report.add_argument(
        "--update",
        metavar="PATH",
        help="make what a page has of results anew instead of showing a table; of a folder all "
        "pages and the pictures; a page may name another file, beside that of the results",
    )


def run_report(found: argparse.Namespace) -> int:
    for name in ("table", "format", "out", "grid") if found.update else ():
        if getattr(found, name) is not None:
            raise ValueError(f"--update makes what its page asks for; got --{name} too")
    table, shape = found.table or "main", found.format or "terminal"
    require_one_of("table", table, [*TABLES, SUMMARY])
    require_one_of("format", shape, FORMATS)
    results = parse(read_results(found.results), found.checkpoint)
    if found.grid:
        results = of_grid(results, found.grid)
    asked = {name: getattr(found, name) for name in PICTURES if getattr(found, name)}
    for name, file in asked.items():
        picture = picture_file(file)
        save_picture(PICTURES[name](results), picture)
        print(f"{name}: {picture}")
    if found.update:
        for made in update_pages(Path(found.update), Path(found.results), found.checkpoint):
            print(f"made: {made}")
        return 0
    if table == SUMMARY:
        text = summary(results, found.checkpoint)
    else:
        text = FORMATS[shape](TABLES[table](results, found.checkpoint))
    if found.out:
        Path(found.out).write_text(text, "utf-8")
        print(f"table: {found.out}")
    elif not asked:
        print(text, end="")
    return 0
