"""Tables that count runs: how many succeeded, what was run, and every run in a line."""

from collections.abc import Sequence
from itertools import chain
from statistics import median

from lantm.machines.models import MODELS
from lantm.studies.entries import EMPTY, SOLVED, Place, Result, count, paper
from lantm.studies.report.table import CHECKPOINT, Table
from lantm.studies.report.tables import NOT_RUN
from lantm.training.evaluation import percent
from lantm.training.kinds import KINDS

ALL = "all tasks"


def success_table(results: Sequence[Result], checkpoint: str) -> Table:
    """How many runs learned their task, for every kind, grid, task and model, and for all tasks."""
    groups: dict[tuple[str, str, Place], list[Result]] = {}
    for result in results:
        for cell in (result.cell, result.cell._replace(task=ALL)):
            groups.setdefault((result.kind, result.grid, cell), []).append(result)

    def entry(kind: str, grid: str, cell: Place) -> str:
        told = f" ({100 * paper()[cell].coarse:.0f})" if cell in paper() else ""
        runs = groups.get((kind, grid, cell))
        return f"{count(runs)}{told}" if runs else EMPTY

    known = {cell.model for cell in [*paper(), *(result.cell for result in results)]}
    models = [name for name in MODELS if name in known]
    lines = {(k, grid, c.regime, c.interpolation, c.task) for k, grid, c in groups}
    rows = []
    for kind, grid, regime, interpolation, task in sorted(
        lines, key=lambda line: (KINDS.index(line[0]), *line[1:])
    ):
        cells = (Place(task, model, regime, interpolation) for model in models)
        labels = [kind, grid, regime, "yes" if interpolation else "no", task]
        rows.append([*labels, *(entry(kind, grid, cell) for cell in cells)])
    caption = (
        f"Runs with a coarse accuracy of at least {SOLVED:.0%} on test problems of twice the "
        "training size, of all runs; one that broke off counts as a failure. The paper gives no "
        "rates: in parentheses the coarse accuracy of its best run, in percent. "
        f"{CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    header = ["kind", "grid", "regime", "interpolation", "task", *models]
    return Table("Success rates", caption, header, rows, labels=5)


def settings_table(results: Sequence[Result], checkpoint: str) -> Table:
    """How the seeds of every command did, a line for each."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.settings, []).append(result)
    rows = []
    for settings, runs in groups.items():
        coarse = {m: [float(r.accuracy[m].coarse) for r in runs if m in r.accuracy] for m in SHOWN}
        found = [middle(coarse[1]), *spread(coarse[2]), middle(coarse[4]), middle(coarse[10])]
        lost = max((run.forgotten for run in runs if run.solved), default=None)
        batches = [run.trained for run in runs if run.trained is not None]
        seconds = [run.seconds for run in runs if run.seconds is not None]
        ends = whole_median(batches), whole_median(seconds)
        numbers = [EMPTY if lost is None else f"{100 * lost:.2f}", *ends]
        rows.append([settings, count(runs), *found, *numbers])
    caption = (
        "A line is a command, run with several seeds. Solved: at least "
        f"{SOLVED:.0%} coarse on test problems of twice the training size. Coarse accuracies in "
        "percent: medians over the seeds at 1, 2, 4 and 10 times the training size, and the worst "
        "seed at twice. Lost: the most points that the last checkpoint of a solved run is below "
        "its best one. Batches of the start that went on, and seconds of all starts: medians, "
        "seconds as measured with other runs beside. "
        f"{CHECKPOINT[checkpoint]}"
    )
    names = ["solved", "1x", "2x", "worst 2x", "4x", "10x", "lost", "batches", "seconds"]
    return Table("Seeds of each command", caption, ["command", *names], rows, labels=1)


SHOWN = (1, 2, 4, 10)
"""The multiples of the training size that are shown."""


def middle(shares: Sequence[float]) -> str:
    return percent(median(shares)) if shares else EMPTY


def spread(shares: Sequence[float]) -> tuple[str, str]:
    """The median and the worst."""
    return middle(shares), percent(min(shares)) if shares else EMPTY


def whole_median(values: Sequence[float | int]) -> str:
    return f"{median(values):.0f}" if values else EMPTY


def grids_table(results: Sequence[Result], checkpoint: str) -> Table:
    """What has been run: a line for every kind and sweep."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.kind, result.grid), []).append(result)
    rows = []
    for (kind, grid), runs in sorted(groups.items(), key=lambda g: (KINDS.index(g[0][0]), g[0][1])):
        models = dict.fromkeys(m for m in MODELS if any(r.cell.model == m for r in runs))
        seconds = sum(result.seconds or 0 for result in runs)
        seeds = {result.seed for result in runs}
        cells = len({result.cell for result in runs})
        numbers = [len(runs), cells, min(seeds), max(seeds)]
        labels = [kind, grid, ", ".join(models)]
        rows.append([*labels, *map(str, numbers), count(runs), f"{seconds / 3600:.1f}"])
    caption = (
        "Runs by the kind of their settings and the sweep that trained them (none: no sweep did). "
        "Core-hours as measured, those of a busy machine and of pauses included. "
        f"{CHECKPOINT[checkpoint]}"
    )
    names = ["runs", "cells", "first seed", "last seed", "solved", "core-hours"]
    return Table("What was run", caption, ["kind", "grid", "models", *names], rows, labels=3)


def runs_table(results: Sequence[Result], checkpoint: str) -> Table:
    """Every run in a line."""
    rows = []
    for result in results:
        found = [result.accuracy.get(multiple) for multiple in (1, 2)]
        shares = [map(percent, accuracy) if accuracy else [EMPTY] * 2 for accuracy in found]
        seconds = EMPTY if result.seconds is None else f"{result.seconds:.0f}"
        labels = [result.command, result.kind, result.error or "finished"]
        rows.append([*labels, *chain(*shares), seconds])
    caption = (
        "Percent right on test problems of the training size and of twice that. "
        f"{CHECKPOINT[checkpoint]}"
    )
    names = ["fine 1x", "coarse 1x", "fine 2x", "coarse 2x", "seconds"]
    return Table("Runs", caption, ["command", "kind", "status", *names], rows, labels=3)
