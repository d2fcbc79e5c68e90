"""lantm train"""

import argparse
import shlex
import sys
import time
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from lantm.cli.common import FAILED, Add, accuracies, make_console, say, show_table
from lantm.cli.options import add_options, given_options
from lantm.errors import require_positive
from lantm.interrupts import Stopped, if_stopped
from lantm.machines.models import ModelConfig
from lantm.processes import available_cores
from lantm.tasks import TASKS
from lantm.training.config import RECIPES, TrainConfig, configure
from lantm.training.evaluation import percent
from lantm.training.runs import ZOO, Run
from lantm.training.train import finish, require_trainable
from lantm.training.trainer import NonFiniteError, Progress

SCORED = {"look_coarse": "1x", "validation_coarse": "2x"}
"""The scores that a row of the metrics can have, with the sizes that they are for."""


def add(command: Add) -> None:
    train = command("train", run_train, "train a machine on a task and show what it learned")
    train.add_argument("task", nargs="?", help=f"one of {', '.join(TASKS)}")
    train.add_argument("--resume", metavar="RUN", help="go on with the run in this directory")
    train.add_argument("--recipe", help=f"one of {', '.join(RECIPES)} [default]")
    train.add_argument("--out", metavar="DIR", help="where runs are kept [runs]")
    train.add_argument("--jobs", type=int, help="starts to train at once [one for each core]")
    usual = configure()
    add_options(train, usual.model)
    add_options(train, usual, skip=("task", "model"))


def run_train(found: argparse.Namespace) -> int:
    console = make_console()
    jobs = available_cores() if found.jobs is None else found.jobs
    require_positive(jobs=jobs)
    run = resumed_run(found) if found.resume is not None else new_run(found)
    say(console, f"run directory: {run.path}")
    try:
        with if_stopped(lambda: f"stopped; {standing(run, found.file)}"):
            if not run.is_finished:
                say(console, "compiling, which takes about 20 s the first time")
            train_with_bar(run, console, jobs)
            show_outcome(run, console)
    except Stopped as stopped:
        say(console, f"stopped; {standing(run, found.file)}")
        return stopped.exit_code
    except NonFiniteError as error:
        print(f"lantm: {error}; the last good checkpoint is in {run.path}", file=sys.stderr)
        return FAILED
    return 0


def new_run(found: argparse.Namespace) -> Run:
    if found.task is None:
        raise ValueError(f"task must be given: one of {', '.join(TASKS)}")
    settings = given_options(found, TrainConfig, ModelConfig)
    config = configure(found.recipe or "default", **settings)
    require_trainable(config)  # what cannot be is refused before there is a run
    return Run.create(config, found.out or "runs")


def resumed_run(found: argparse.Namespace) -> Run:
    settings = given_options(found, TrainConfig, ModelConfig)
    settings |= {"recipe": found.recipe, "out": found.out}
    extra = [name for name, value in settings.items() if value is not None]
    if extra:
        raise ValueError(f"--resume takes its settings from the run; got {', '.join(extra)} too")
    if found.resume.startswith(ZOO):
        raise ValueError(f"--resume takes the directory of a run; {found.resume} is trained")
    return Run.open(found.resume)


def standing(run: Run, file: str | None) -> str:
    """What is kept of a run, and how to go on with it."""
    if run.saved is None:
        return "nothing saved yet"
    words = ["lantm", "train", "--resume", str(run.path)] + (["--file", file] if file else [])
    return f"saved at batch {run.saved}; go on with: {shlex.join(words)}"


def train_with_bar(run: Run, console: Console, jobs: int) -> None:
    """A live line on a terminal; elsewhere a line for every validation."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}  right {task.fields[right]}  2x {task.fields[far]}"),
        TextColumn("{task.fields[rate]} samples/s"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        blank: dict[str, Any] = {"loss": "-", "right": "-", "far": "-", "rate": "-"}
        task = bar.add_task(run.config.task, total=run.config.batches, **blank)
        begun = time.monotonic()

        def on_progress(progress: Progress) -> None:
            if not bar.tasks[0].completed:
                say(console, f"first update after {time.monotonic() - begun:.0f} s")
            row, speed = progress.row, bar.tasks[0].speed
            shown: dict[str, Any] = {"rate": f"{32 * speed:.0f}"} if speed else {}
            if progress.start is not None:
                shown["description"] = f"{run.config.task}, start {progress.start}"
            if row is not None:
                shown |= {"loss": f"{row['loss']:.4f}", "right": f"{row['coarse']:.0%}"}
                if "validation_coarse" in row:
                    shown["far"] = f"{row['validation_coarse']:.0%}"
                if row.keys() & SCORED and (row.get("solved") or not console.is_terminal):
                    say(console, format_row(row))
            bar.update(task, completed=progress.batch, **shown)

        finish(run, on_progress=on_progress, on_notice=partial(say, console), jobs=jobs)


def format_row(row: dict[str, Any]) -> str:
    """A line for a row with a validation, or with a look at a start."""
    start = f"start {row['start']}  " if "start" in row else ""
    scores = [f"{size} {row[name]:6.1%}" for name, size in SCORED.items() if name in row]
    solved = ["solved"] * row.get("solved", False)
    learning = f"batch {row['batch']:6d}  loss {row['loss']:.4f}  right {row['coarse']:6.1%}"
    return start + "  ".join([learning, *scores, *solved])


def show_outcome(run: Run, console: Console) -> None:
    """The scores, a picture, and where everything is."""
    from lantm.inspection.figures import draw  # noqa: PLC0415 - Matplotlib slows the start down

    result = run.result or {}
    if "ended" in result:
        say(console, f"training ended: {result['ended']}")
    table = Table("checkpoint", "size", "fine", "coarse", title=f"{run.config.task}, test set")
    for row in result["test"]:
        table.add_row(row["checkpoint"], f"{row['source']}x", *map(percent, accuracies(row)))
    show_table(console, table)
    picture = run.path / "memory.png"
    draw("memory", run).savefig(picture, dpi=120)
    say(console, f"picture of the memory: {picture}")
    say(console, f"run directory: {run.path}")
