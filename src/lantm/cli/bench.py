"""lantm bench"""

import argparse
import importlib.util
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from lantm.cli.common import Add, make_console, picture_file, require_writable, say, show_table
from lantm.errors import require_positive
from lantm.spaces import SPACES, find_space
from lantm.studies import benchmark
from lantm.studies.benchmark import (
    Case,
    Measurement,
    compare,
    compare_spaces,
    draw,
    first_step_seconds,
    load_rows,
    save_rows,
    space_table,
)
from lantm.studies.benchmark.cases import MODELS
from lantm.studies.benchmark.report import HEADER, in_markdown, remarks, table
from lantm.studies.benchmark.spaces import HEADER as SPACE_HEADER

TORCH_FILE = Path(benchmark.__file__).parent / "yardstick" / "torch_lantm.py"
LENGTHS = 33, 64, 128, 256, 512, 1024
QUICK = 33, 64
REPEATS = 3


def add(command: Add) -> None:
    bench = command("bench", run_bench, "time training steps against a plain scan and PyTorch")
    bench.add_argument("--quick", action="store_true", help="under a minute: lantm at 33 and 64")
    bench.add_argument("--models", nargs="+", help=f"of {', '.join(MODELS)} [both]")
    bench.add_argument(
        "--lengths", type=int, nargs="+", help="of copy alone: encoder steps, and decoder steps"
    )
    bench.add_argument(
        "--spaces", nargs="*", metavar="SPACE", help="key spaces against the plane instead [all]"
    )
    bench.add_argument("--repetitions", type=int, default=5, help="turns of all [5]")
    bench.add_argument(
        "--torch", metavar="FILE", default=TORCH_FILE, help="another PyTorch program [ours]"
    )
    bench.add_argument("--json", metavar="FILE", help="write the measurements there")
    bench.add_argument("--plot", metavar="FILE", help="draw time and memory against length there")
    bench.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    bench.add_argument(
        "--saved", metavar="FILE", help="show these measurements instead of taking new ones"
    )


def run_bench(found: argparse.Namespace) -> int:
    console = make_console()
    if found.spaces is not None:
        return run_spaces(found, console)
    plot = picture_file(found.plot) if found.plot else None
    rows = load_rows(found.saved) if found.saved else measure(found, console)
    show_lines(found, console, HEADER, table(rows))
    if not found.markdown:
        for remark in remarks(rows):
            say(console, remark)
    if plot:
        draw(rows, plot)
        say(console, f"plot: {plot}")
    return 0


def show_lines(
    found: argparse.Namespace,
    console: Console,
    header: tuple[str, ...],
    lines: list[tuple[str, ...]],
) -> None:
    if found.markdown:
        print(in_markdown(header, lines))
        return
    shown = Table(header[0], *(Column(name, justify="right") for name in header[1:]))
    for line in lines:
        shown.add_row(*line)
    show_table(console, shown)


def run_spaces(found: argparse.Namespace, console: Console) -> int:
    """`--spaces`: at the first of the lengths."""
    require_positive(repetitions=found.repetitions)
    names = found.spaces or list(SPACES)
    for name in names:
        find_space(name)
    if found.json:
        require_writable(Path(found.json))
    with console.status("spaces") as status:
        rows = compare_spaces(
            names,
            (found.lengths or LENGTHS)[0],
            repetitions=found.repetitions,
            on_compile=status.update,
        )
    if found.json:
        save_rows(found.json, rows)
    show_lines(found, console, SPACE_HEADER, space_table(rows))
    return 0


def measure(found: argparse.Namespace, console: Console) -> list[Measurement]:
    """All cases, one after the other; what is finished is written at once."""
    require_positive(repetitions=found.repetitions)
    cases = choose(found)
    if found.json:
        require_writable(Path(found.json))
    missing = why_no_torch(Path(found.torch))
    if missing:
        say(console, f"torch is left out: {missing}")
    names = ["lantm", "scan"] if missing else ["lantm", "scan", "torch"]
    rows: list[Measurement] = []
    for case in cases:
        with console.status(f"{case.model} {case.task} {case.length}"):
            rows += compare(
                case,
                names,
                repetitions=found.repetitions,
                seconds=0.2 if found.quick else 0.5,
                torch_file=str(found.torch),
                on_notice=partial(say, console),
            )
        if found.json:
            save_rows(found.json, rows)
    if not rows:
        raise ValueError("nothing could be measured")
    with console.status("first step"):
        seconds = first_step_seconds()
    say(console, f"{seconds:.1f} s from the start of lantm train to its first step (warm cache)")
    return rows


def choose(found: argparse.Namespace) -> list[Case]:
    models = found.models or (["lantm"] if found.quick else MODELS)
    lengths = found.lengths or (QUICK if found.quick else LENGTHS)
    cases = [Case.copy(model, length) for model in models for length in lengths]
    if not found.lengths and not found.quick:
        cases += [Case(model, "repeat_copy", REPEATS) for model in models]
    return cases


def why_no_torch(file: Path) -> str | None:
    """The reason that there is nothing to compare with, if there is one."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed (pip install 'lantm[bench]')"
    return None if file.is_file() else f"there is no file {file}; --torch says where it is"
