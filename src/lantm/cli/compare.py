"""lantm compare"""

import argparse

from lantm.cli.common import Add, picture_file
from lantm.errors import require_one_of
from lantm.studies.report import FORMATS, TABLES, draw_curves, parse
from lantm.studies.results import read_results

RESULTS = "results/peers.jsonl"


def add(command: Add) -> None:
    compare = command("compare", run_compare, "models side by side, from the results of sweeps")
    compare.add_argument(
        "results", nargs="*", default=[RESULTS], help=f"files of results [{RESULTS}]"
    )
    compare.add_argument("--tasks", nargs="+", help="only these [all]")
    compare.add_argument("--models", nargs="+", help="likewise")
    compare.add_argument("--format", default="terminal", help=f"{', '.join(FORMATS)} [terminal]")
    compare.add_argument(
        "--figure", metavar="FILE", help="draw there how many symbols are right at every size"
    )
    compare.add_argument("--checkpoint", default="best", help="best on validation, or last [best]")


def run_compare(found: argparse.Namespace) -> int:
    require_one_of("format", found.format, FORMATS)
    rows = [row for file in found.results for row in read_results(file)]
    for option, name in (("tasks", "task"), ("models", "model")):
        chosen, known = getattr(found, option), {row["config"][name] for row in rows}
        for value in chosen or ():
            require_one_of(name, value, sorted(known) or ["none so far"])
        rows = [row for row in rows if not chosen or row["config"][name] in chosen]
    results = parse(rows, found.checkpoint)
    if found.figure:
        picture = picture_file(found.figure)
        draw_curves(results).savefig(picture, dpi=120)
        print(f"figure: {picture}")
        return 0
    tables = [TABLES[name](results, found.checkpoint) for name in ("peers", "lengths")]
    print("\n".join(FORMATS[found.format](table) for table in tables if table.rows), end="")
    if not results:
        print("no results so far")
    return 0
