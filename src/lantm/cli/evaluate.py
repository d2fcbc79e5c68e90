"""lantm eval | data | zoo"""

import argparse
import dataclasses
import json
from statistics import fmean

from rich.table import Column, Table

from lantm.cli.common import Add, accuracies, make_console, show_table
from lantm.errors import require_one_of
from lantm.tasks import TASKS
from lantm.tasks.streams import (
    FAR,
    PURPOSES,
    REGIMES,
    evaluation_batches,
    far_multiples,
    training_stream,
)
from lantm.tasks.textfile import write_batches
from lantm.training.evaluation import percent
from lantm.training.kinds import kind_of
from lantm.training.lengths import evaluate_lengths, save_lengths
from lantm.training.runs import Run, evaluate, zoo_names


def add(command: Add) -> None:
    test = command("eval", run_eval, "score a trained machine")
    test.add_argument("run", help="a run directory, or zoo:TASK")
    test.add_argument("--multiples", type=int, nargs="+", help="of the training size [1 2 4 10]")
    test.add_argument("--data", metavar="FILE", nargs="+", default=[], help="authors' text files")
    test.add_argument("--checkpoint", nargs="+", help="best, last, or a kept batch [best last]")
    test.add_argument(
        "--examples", type=int, help="problems a multiple [3200; beyond 2x fewer, if they are long]"
    )
    test.add_argument(
        "--lengths",
        metavar="FROM:TO[:STEP]",
        type=size_range,
        help="instead: symbols right at each of these sizes, and on average over them",
    )
    test.add_argument("--each", type=int, help="with --lengths: problems of a size [32]")
    test.add_argument(
        "--save", action="store_true", help="with --lengths: keep them in the run, for compare"
    )
    test.add_argument("--slots", type=int, help="another size of an ntm's, dnc's, ... memory")
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


def size_range(text: str) -> range:
    """Sizes from the first to the last, both included.

    >>> size_range("41:500"), size_range("1:9:4")
    (range(41, 501), range(1, 10, 4))
    """
    first, last, step = (*map(int, text.split(":")), 1)[:3]
    if not 1 <= first <= last or step < 1:
        raise argparse.ArgumentTypeError(f"{text} must be FROM:TO or FROM:TO:STEP, upwards from 1")
    return range(first, last + 1, step)


def run_eval(found: argparse.Namespace) -> int:
    run = Run.open(found.run)
    if found.lengths:
        return run_lengths(run, found)
    if found.each is not None or found.save:
        raise ValueError("--each and --save are only for --lengths")
    multiples = found.multiples or ([] if found.data else [1, 2, *far_multiples(run.task)])
    for multiple in multiples:
        if multiple < 1:
            raise ValueError(f"multiples must be whole numbers of at least 1, got {multiple}")
    scores = evaluate(
        run,
        multiples,
        found.data,
        checkpoints=found.checkpoint,
        examples=found.examples,
        slots=found.slots,
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
    show_table(make_console(), table)
    return 0


def run_lengths(run: Run, found: argparse.Namespace) -> int:
    """Scores by size, and their averages, in which every size counts alike."""
    if found.multiples or found.data or found.examples is not None:
        raise ValueError("--lengths takes no --multiples, --data or --examples, but --each")
    table = Table("checkpoint", "size", "examples", "fine", "coarse")
    told = []
    for checkpoint in found.checkpoint or ["best"]:
        scores = evaluate_lengths(
            run, found.lengths, checkpoint=checkpoint, each=found.each or 32, slots=found.slots
        )
        if found.save:
            save_lengths(run, scores)
        told += scores
        sizes = f"{found.lengths[0]} to {found.lengths[-1]}"
        means = fmean(s.fine for s in scores), fmean(s.coarse for s in scores)
        parts = [(str(s.size), s.examples, s.fine, s.coarse) for s in scores if found.by_length]
        for size, examples, *shares in [(sizes, sum(s.examples for s in scores), *means), *parts]:
            table.add_row(checkpoint, size, str(examples), *map(percent, shares))
    if found.json:
        print(json.dumps([dataclasses.asdict(score) for score in told], indent=2))
        return 0
    show_table(make_console(), table)
    return 0


def run_data(found: argparse.Namespace) -> int:
    require_one_of("action", found.action, ["export"])
    require_one_of("task", found.task, TASKS)
    require_one_of("purpose", found.purpose, PURPOSES)
    require_one_of("regime", found.regime, REGIMES)
    if found.seed < 0:
        raise ValueError(f"seed must be a whole number from 0, got {found.seed}")
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
    far = [f"coarse {multiple}x" for multiple in FAR]
    names = Column("machine", no_wrap=True), Column("kind", no_wrap=True)
    table = Table(names[0], "fine 2x", "coarse 2x", *far, names[1], "trained by")
    for name in zoo_names():
        run = Run.open(name)
        rows = [row for row in (run.result or {})["test"] if row["checkpoint"] == "best"]
        scores = {row["source"]: list(map(percent, accuracies(row))) for row in rows}
        beyond = [scores[multiple][1] if multiple in scores else "-" for multiple in FAR]
        kind = kind_of(run.config.flat())
        table.add_row(name, *scores[2], *beyond, kind, run.config.command)
    show_table(make_console(), table)
    return 0
