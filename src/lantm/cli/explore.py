"""lantm explore"""

import argparse
import webbrowser

from lantm.cli.common import Add
from lantm.inspection.explorer import write_explorer


def add(command: Add) -> None:
    explore = command("explore", run_explore, "step through what machines do, in a web browser")
    explore.add_argument("runs", metavar="RUN", nargs="+", help="run directories, or zoo:TASK")
    explore.add_argument(
        "--out", metavar="FILE", default="explorer.html", help="page to write [explorer.html]"
    )
    explore.add_argument("--no-open", action="store_true", help="only write the page")
    explore.add_argument("--examples", type=int, default=3, help="problems to show [3]")
    explore.add_argument("--multiple", type=int, default=1, help="of the training size [1]")
    explore.add_argument("--seed", type=int, default=1, help="of the problems [1]")
    explore.add_argument(
        "--checkpoints", type=int, default=20, help="kept checkpoints to show at most [20]"
    )


def run_explore(found: argparse.Namespace) -> int:
    path = write_explorer(
        found.runs,
        found.out,
        examples=found.examples,
        multiple=found.multiple,
        seed=found.seed,
        checkpoints=found.checkpoints,
    )
    print(f"explorer: {path}")
    if not found.no_open:
        webbrowser.open(path.resolve().as_uri())
    return 0
