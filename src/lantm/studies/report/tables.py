"""Results to tables beside the paper's: every cell as text, whatever it is then shown on.

Runs with the paper's machine and training have the paper's cells to themselves; those with our
training and those of our recipe have a column each; other machines have pages of their own.
"""

from collections.abc import Callable, Sequence
from itertools import product

from lantm.studies.entries import (
    EMPTY,
    SOLVED,
    Place,
    Result,
    best,
    by_cell,
    count,
    of_kind,
    paper,
    shares,
    summed,
)
from lantm.studies.report.table import CHECKPOINT, Table
from lantm.tasks.streams import REGIMES
from lantm.training.kinds import KINDS, OUR_RECIPE, OUR_TRAINING, PAPER, equal_in_our_recipe

MEASURE = (
    "Percent of symbols (fine) and of whole answers (coarse) right on test problems of twice the "
    "training size."
)
SELECTION = (
    "Ours is the best of our runs, selected by its test score (coarse, then fine), as in the "
    "paper, which is optimistic."
)
SUCCESSES = f"Solved: runs with a coarse accuracy of at least {SOLVED:.0%} there, of all runs."
SEPARATION = (
    f"The columns ours and solved have only runs with the paper's machine and training; "
    f"{OUR_TRAINING} is the paper's machine trained in another way, {OUR_RECIPE} our machine with "
    "our training (lantm train TASK): both show coarse accuracy and solved runs. Our machine has "
    "weights of its own, so that with them the models of a space are one machine (as lantm)."
)
NOT_RUN = f"{EMPTY} was not run."
OURS = (OUR_TRAINING, OUR_RECIPE)
"""The kinds of run that have a column or panel beside the paper's."""
COLUMNS = ("paper fine", "paper coarse", "ours fine", "ours coarse", "solved", *OURS)


# ---- every cell


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
    entry = cell_entries(results)
    known = [*paper(), *(result.cell for result in results)]
    shown = dict.fromkeys((c.task, c.model) for c in known if c.interpolation == variants[-1])
    rows = []
    for task, regime in product(dict.fromkeys(task for task, _ in shown), REGIMES):
        for model in [model for other, model in shown if other == task]:
            cells = [Place(task, model, regime, variant) for variant in variants]
            pairs = map(_pair, zip(*map(entry, cells), strict=True))
            rows.append([task, regime, model, *pairs])
    caption = " ".join([MEASURE, SELECTION, SUCCESSES, SEPARATION, CHECKPOINT[checkpoint], NOT_RUN])
    return Table(title, caption, ["task", "regime", "model", *COLUMNS], rows, labels=3)


def cell_entries(results: Sequence[Result]) -> Callable[[Place], list[str]]:
    """What stands in the columns of a cell."""
    runs = {kind: by_cell(of_kind(results, kind)) for kind in KINDS}

    def entries(cell: Place) -> list[str]:
        told = [f"{100 * share:.0f}" for share in paper().get(cell, ())] or [EMPTY] * 2
        own = runs[PAPER].get(cell, [])
        trained = summed(runs[OUR_TRAINING].get(cell, []))
        return [*told, *shares(own), count(own), trained, recipe(cell)]

    def recipe(cell: Place) -> str:
        """Its own runs, else a hint at those of the model that is the same machine there."""
        equal = cell._replace(model=equal_in_our_recipe(cell.model))
        if cell in runs[OUR_RECIPE] or equal not in runs[OUR_RECIPE]:
            return summed(runs[OUR_RECIPE].get(cell, []))
        return f"as {equal.model}"

    return entries


def _pair(parts: Sequence[str]) -> str:
    """Both, or one mark where both are empty."""
    return EMPTY if set(parts) == {EMPTY} else " : ".join(parts)


# ---- every task


def tasks_table(results: Sequence[Result], checkpoint: str) -> Table:
    """For each task the best machine of the paper beside our best of every kind."""
    tasks = dict.fromkeys(cell.task for cell in paper())
    rows = []
    for interpolation, regime, task in product([False, True], REGIMES, tasks):
        place = (task, regime, interpolation)
        found = [result for result in results if result.cell.row == place]
        told = {cell.model: scores.coarse for cell, scores in paper().items() if cell.row == place}
        most = max(told.values())
        leaders = [model for model, coarse in told.items() if coarse == most]
        label = [task, regime, "yes" if interpolation else "no"]
        rows.append([*label, f"{100 * most:.0f}", named(leaders), *_leaders(found)])
    caption = (
        "Coarse accuracy on test problems of twice the training size, in percent, of the best "
        "machine for each task. "
        f"{SELECTION} {SUCCESSES} The first three columns of ours are runs with the paper's "
        f"machine and training. {CHECKPOINT[checkpoint]} {NOT_RUN}"
    )
    own = ["ours", "our model", "solved"]
    header = ["task", "regime", "interpolation", "paper", "its model", *own, *OURS]
    return Table("The best machine for each task", caption, header, rows, labels=3)


def _leaders(results: Sequence[Result]) -> list[str]:
    """Of the paper's kind the best accuracy, its models and how many succeeded; then the others."""
    own = of_kind(results, PAPER)
    scores = {cell.model: found.coarse for cell, found in best(own).items()}
    models = [model for model, coarse in scores.items() if coarse == max(scores.values())]
    others = [summed(of_kind(results, kind)) for kind in OURS]
    return [shares(own)[1], named(models), count(own), *others]


def named(models: Sequence[str]) -> str:
    """Those that share a place; only how many, if they are many."""
    return f"{len(models)} models" if len(models) > 2 else ", ".join(models) or EMPTY
