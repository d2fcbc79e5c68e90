"""Results to tables: beside the paper, and all runs."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

from lantm.machines.models import MODELS
from lantm.studies.report.entries import Place, Result, best, paper
from lantm.studies.report.peers import lengths_table, peers_table
from lantm.studies.report.table import CHECKPOINT, EMPTY, SOLVED, Table
from lantm.tasks.streams import REGIMES
from lantm.training.evaluation import percent

MEASURE = (
    "Percent of symbols (fine) and of whole answers (coarse) right on test problems of twice the "
    "training size."
)
SELECTION = (
    "Ours is the best of n runs, selected by its test score (coarse, then fine), as in the paper, "
    "which is optimistic."
)
ALL = "all tasks"
NOT_RUN = f"{EMPTY} was not run."
COLUMNS = ("fine", "coarse", "paper fine", "paper coarse", "n")


# ---- beside the paper


def main_table(results: Sequence[Result], checkpoint: str) -> Table:
    """The paper's table 1b: the best run of every task, model and regime."""
    return _beside_paper("Main results", results, checkpoint, [False])


def interpolation_table(results: Sequence[Result], checkpoint: str) -> Table:
    """The paper's table A.2: the same without and with interpolation of actions."""
    title = "Action interpolation (without : with)"
    return _beside_paper(title, results, checkpoint, [False, True])


def _beside_paper(
    title: str, results: Sequence[Result], checkpoint: str, variants: Sequence[bool]
) -> Table:
    counts, ours, theirs = Counter(result.cell for result in results), best(results), paper()

    def entries(cell: Place) -> list[str]:
        """Our fine and coarse accuracy, the paper's, and the number of our runs."""
        missing = ["failed" if counts[cell] else EMPTY] * 2
        own = [percent(share) for share in ours[cell]] if cell in ours else missing
        told = [f"{100 * share:.0f}" for share in theirs.get(cell, ())] or [EMPTY] * 2
        return [*own, *told, str(counts[cell] or EMPTY)]

    rows = []
    places = [cell for cell in [*theirs, *counts] if cell.interpolation == variants[-1]]
    for task, model in dict.fromkeys((cell.task, cell.model) for cell in places):
        row = [task, model]
        for regime in REGIMES:
            cells = [Place(task, model, regime, variant) for variant in variants]
            row += map(_pair, zip(*map(entries, cells), strict=True))
        rows.append(row)
    names = [f"{regime} {name}" for regime in REGIMES for name in COLUMNS]
    caption = f"{MEASURE} {SELECTION} {CHECKPOINT[checkpoint]} {NOT_RUN}"
    return Table(title, caption, ["task", "model", *names], rows, labels=2)


def _pair(parts: Sequence[str]) -> str:
    """Both, or one mark where both are empty."""
    return EMPTY if set(parts) == {EMPTY} else " : ".join(parts)


# ---- all runs


def success_table(results: Sequence[Result], checkpoint: str) -> Table:
    """How many runs learned their task, for every grid, task and model, and for all tasks."""
    runs: Counter[tuple[str, Place]] = Counter()
    solved: Counter[tuple[str, Place]] = Counter()
    for result in results:
        for cell in (result.cell, result.cell._replace(task=ALL)):
            runs[result.grid, cell] += 1
            solved[result.grid, cell] += bool(result.twice and result.twice.coarse >= SOLVED)

    def entry(grid: str, cell: Place) -> str:
        if not runs[grid, cell]:
            return EMPTY
        told = f" ({100 * paper()[cell].coarse:.0f})" if cell in paper() else ""
        return f"{solved[grid, cell]} of {runs[grid, cell]}{told}"

    known = {cell.model for cell in [*paper(), *(result.cell for result in results)]}
    models = [name for name in MODELS if name in known]
    rows = []
    for grid, regime, interpolation, task in sorted(
        {(grid, cell.regime, cell.interpolation, cell.task) for grid, cell in runs}
    ):
        cells = (Place(task, model, regime, interpolation) for model in models)
        labels = [grid, regime, "yes" if interpolation else "no", task]
        rows.append([*labels, *(entry(grid, cell) for cell in cells)])
    caption = (
        f"Runs with a coarse accuracy of at least {SOLVED:.0%} on test problems of twice the "
        "training size, of all runs; one that broke off counts as a failure. The paper gives no "
        "rates: in parentheses the coarse accuracy of its best run, in percent. "
        f"{CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    header = ["grid", "regime", "interpolation", "task", *models]
    return Table("Success rates", caption, header, rows, labels=4)


def runs_table(results: Sequence[Result], checkpoint: str) -> Table:
    """Every run in a line."""
    rows = []
    for result in results:
        found = [result.accuracy.get(multiple) for multiple in (1, 2)]
        shares = [map(percent, accuracy) if accuracy else [EMPTY] * 2 for accuracy in found]
        seconds = EMPTY if result.seconds is None else f"{result.seconds:.0f}"
        rows.append([result.command, result.error or "finished", *chain(*shares), seconds])
    caption = (
        "Percent right on test problems of the training size and of twice that. "
        f"{CHECKPOINT[checkpoint]}"
    )
    names = ["fine 1x", "coarse 1x", "fine 2x", "coarse 2x", "seconds"]
    return Table("Runs", caption, ["command", "status", *names], rows, labels=2)


TABLES: dict[str, Callable[[Sequence[Result], str], Table]] = {
    "main": main_table,
    "interpolation": interpolation_table,
    "success": success_table,
    "runs": runs_table,
    "peers": peers_table,
    "lengths": lengths_table,
}
