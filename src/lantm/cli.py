"""The command line: lantm train | eval | data | zoo."""

import argparse
import json
import os
import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from lantm.config import RECIPES, TrainConfig, configure
from lantm.data import PURPOSES, evaluation_batches, training_stream
from lantm.errors import require_one_of
from lantm.models import ModelConfig
from lantm.options import Parser, add_options, fail, given_options
from lantm.picture import draw_memory
from lantm.runs import Run, evaluate, zoo_names
from lantm.tasks import TASKS
from lantm.textfile import write_batches
from lantm.training import NonFiniteError, Progress, finish, open_stream

COMMANDS = ("train", "eval", "data", "zoo")
INTERRUPTED = 130
FAILED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every foreseeable mistake ends in one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments and not arguments[0].startswith("-"):
            require_one_of("command", arguments[0], COMMANDS)
        found = build_parser().parse_or_suggest(arguments)
        if found.file is not None:
            load_file(found.file)
        return found.command(found)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot use {error.filename}: {error.strerror}" if error.filename else str(error))


def build_parser() -> Parser:
    parser = Parser("lantm", description="Neural memories whose heads move by Lie group actions.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=run, parser=sub)
        sub.add_argument(
            "--file", metavar="FILE.py", help="run this first: tasks or key spaces of your own"
        )
        return sub

    train = command("train", run_train, "train a machine on a task and show what it learned")
    train.add_argument("task", nargs="?", help=f"one of {', '.join(TASKS)}")
    train.add_argument("--resume", metavar="RUN", help="go on with the run in this directory")
    train.add_argument("--recipe", default="default", help=f"one of {', '.join(RECIPES)}")
    train.add_argument("--out", metavar="DIR", default="runs", help="where runs are kept [runs]")
    add_options(train, ModelConfig)
    add_options(train, TrainConfig, skip=("task", "model"))

    test = command("eval", run_eval, "score a trained machine")
    test.add_argument("run", help="a run directory, or zoo:TASK")
    test.add_argument("--multiples", type=int, nargs="+", help="of the training size [1 2]")
    test.add_argument("--data", metavar="FILE", nargs="+", default=[], help="authors' text files")
    test.add_argument("--checkpoint", nargs="+", help="best, last, or a kept batch [best last]")
    test.add_argument("--examples", type=int, default=3200, help="problems a multiple [3200]")
    test.add_argument("--by-length", action="store_true", help="also for each answer length")
    test.add_argument("--json", action="store_true", help="print a JSON list instead of a table")

    data = command("data", run_data, "write problems of a task to a file of the authors' format")
    data.add_argument("action", metavar="export", help="export")
    data.add_argument("task", help=f"one of {', '.join(TASKS)}")
    data.add_argument("target", metavar="FILE", help="the file to write")
    data.add_argument(
        "--purpose", default="test", help="validation, test, or train: a whole training set [test]"
    )
    data.add_argument("--multiple", type=int, default=2, help="of the training size [2]")
    data.add_argument("--examples", type=int, default=3200, help="how many problems [3200]")
    data.add_argument("--regime", default="small", help="which training set [small]")
    data.add_argument("--seed", type=int, default=1, help="of the training set [1]")

    command("zoo", run_zoo, "list the ready-trained machines")
    return parser


def load_file(path: str) -> None:
    """Execute a Python file of the user's, which registers tasks and key spaces."""
    if not Path(path).is_file():
        raise ValueError(f"file must be a Python file, got {path}")
    runpy.run_path(path, run_name="lantm_user_file")


# ---- train


def run_train(found: argparse.Namespace) -> int:
    console = Console()
    settings = given_options(found, TrainConfig, ModelConfig)
    if found.resume is not None:
        extra = [name for name, value in settings.items() if value is not None]
        if extra:
            raise ValueError(
                f"--resume takes its settings from the run; got {', '.join(extra)} too"
            )
        run = Run.open(found.resume)
    elif found.task is None:
        raise ValueError(f"task must be given: one of {', '.join(TASKS)}")
    else:
        config = configure(found.recipe, **settings)
        open_stream(config)  # a bad data file is refused before there is a run
        run = Run.create(config, found.out)
    say(console, f"run directory: {run.path}")
    try:
        train_with_bar(run, console)
    except KeyboardInterrupt:
        say(console, f"stopped and saved; go on with: lantm train --resume {run.path}")
        return INTERRUPTED
    except NonFiniteError as error:
        print(f"lantm: {error}; the last good checkpoint is in {run.path}", file=sys.stderr)
        return FAILED
    show_outcome(run, console)
    return 0


def train_with_bar(run: Run, console: Console) -> None:
    """A live line on a terminal; elsewhere a line for every validation."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}  right {task.fields[right]}  2x {task.fields[far]}"),
        TextColumn("{task.fields[rate]} samples/s"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        blank: dict[str, Any] = {"loss": "-", "right": "-", "far": "-", "rate": "-"}
        task = bar.add_task(run.config.task, total=run.config.batches, **blank)

        def on_progress(progress: Progress) -> None:
            row, speed = progress.row, bar.tasks[0].speed
            shown: dict[str, Any] = {"rate": f"{32 * speed:.0f}"} if speed else {}
            if row is not None:
                shown |= {"loss": f"{row['loss']:.4f}", "right": f"{row['coarse']:.0%}"}
                if "validation_coarse" in row:
                    shown["far"] = f"{row['validation_coarse']:.0%}"
                    if not console.is_terminal:
                        say(console, format_row(row))
            bar.update(task, completed=progress.batch, **shown)

        finish(run, on_progress=on_progress, on_notice=partial(say, console))


def say(console: Console, text: str) -> None:
    """One line as it is, however wide the terminal and whatever brackets it has."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def format_row(row: dict[str, Any]) -> str:
    return (
        f"batch {row['batch']:6d}  loss {row['loss']:.4f}  right {row['coarse']:6.1%}  "
        f"2x {row['validation_coarse']:6.1%}"
    )


def show_outcome(run: Run, console: Console) -> None:
    """The scores, a picture, and where everything is."""
    result = run.result or {}
    table = Table("checkpoint", "size", "fine", "coarse", title=f"{run.config.task}, test set")
    for row in result["test"]:
        table.add_row(row["checkpoint"], f"{row['source']}x", *map(percent, accuracies(row)))
    console.print(table)
    picture = run.path / "memory.png"
    draw_memory(run.machine("best"), run.task, picture)
    say(console, f"picture of the memory: {picture}")
    say(console, f"run directory: {run.path}")


def accuracies(row: dict[str, Any]) -> tuple[float, float]:
    return row["fine"], row["coarse"]


def percent(share: float) -> str:
    """As the paper has it: 100 only where nothing is wrong."""
    return "100" if share == 1 else f"{min(100 * share, 99.99):.2f}"


# ---- eval, data, zoo


def run_eval(found: argparse.Namespace) -> int:
    multiples = found.multiples or ([] if found.data else [1, 2])
    for multiple in multiples:
        if multiple < 1:
            raise ValueError(f"multiples must be whole numbers of at least 1, got {multiple}")
    scores = evaluate(
        found.run, multiples, found.data, checkpoints=found.checkpoint, examples=found.examples
    )
    rows = [score.to_dict() for score in scores]
    if found.json:
        if not found.by_length:
            rows = [{k: v for k, v in row.items() if k != "by_length"} for row in rows]
        print(json.dumps(rows, indent=2))
        return 0
    table = Table("checkpoint", "problems", "length", "examples", "fine", "coarse")
    for row in rows:
        source = f"{row['source']}x" if isinstance(row["source"], int) else row["source"]
        parts = {"all": row} | (row["by_length"] if found.by_length else {})
        for length, part in parts.items():
            shares = map(percent, accuracies(part))
            table.add_row(row["checkpoint"], source, str(length), str(part["examples"]), *shares)
    Console().print(table)
    return 0


def run_data(found: argparse.Namespace) -> int:
    require_one_of("action", found.action, ["export"])
    require_one_of("task", found.task, TASKS)
    require_one_of("purpose", found.purpose, PURPOSES)
    task = TASKS[found.task]
    if found.purpose == "train":
        stream = training_stream(task, found.regime, found.seed)
        batches = [stream[i] for i in range(len(stream))]
    else:
        batches = evaluation_batches(task, found.purpose, found.multiple, found.examples)
    write_batches(found.target, task, batches)
    print(f"{sum(len(batch.inputs) for batch in batches)} problems in {found.target}")
    return 0


def run_zoo(found: argparse.Namespace) -> int:
    table = Table("machine", "fine 2x", "coarse 2x", "trained by")
    for name in zoo_names():
        run = Run.open(name)
        twice = next(row for row in (run.result or {})["test"] if row["source"] == 2)
        table.add_row(name, *map(percent, accuracies(twice)), run.config.command)
    Console().print(table)
    return 0


def start() -> None:
    """The `lantm` program. Compiled programs are kept, so that a second start is quick."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lantm"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    raise SystemExit(main())
