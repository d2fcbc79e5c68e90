"""What reproduced, what did not, and how sure that is: in words, with numbers from the results."""

from collections.abc import Mapping, Sequence

import numpy as np

from lantm.inspection.figures.gallery import interval
from lantm.studies.entries import (
    SOLVED,
    Place,
    Result,
    Scores,
    best,
    by_cell,
    count,
    of_kind,
    paper,
)
from lantm.studies.report.render import markdown
from lantm.studies.report.table import CHECKPOINT, Table
from lantm.tasks.streams import REGIMES
from lantm.training.kinds import OTHER, OUR_RECIPE, OUR_TRAINING, PAPER

REACHED, NEAR = 0.02, 0.1
"""How far below the paper's coarse accuracy ours may be to have reached it, or to be near it."""
FAILED = 0.1
"""The coarse accuracy below which a machine has not learned to generalise at all."""
PAPER_RUNS = 36
"""The fewest runs of which the paper takes the best, for a cell of a Lie-access model."""


def summary(results: Sequence[Result], checkpoint: str) -> str:
    """Some paragraphs in Markdown."""
    parts = [what_was_run, what_reproduced, what_did_not, how_sure, what_ours_adds, how_near]
    return "\n\n".join([*(part(results) for part in parts), CHECKPOINT[checkpoint]]) + "\n"


def what_was_run(results: Sequence[Result]) -> str:
    own = of_kind(results, PAPER)
    tables = [
        (variant, {cell for cell in paper() if cell.interpolation == variant})
        for variant in (False, True)
    ]
    plain, mixed = (
        f"{len(cells & by_cell(own).keys())} of the {len(cells)}" for _, cells in tables
    )
    return (
        f"**What was run.** {len(own)} runs with the paper's machine and the paper's training: "
        f"{plain} cells of table 1b (task, model, regime) and {mixed} cells with interpolated "
        "actions of table A.2 have at least one. Beside them, and never among them, "
        f"{len(of_kind(results, OUR_TRAINING))} runs of the paper's machines with a training of "
        f"ours, {len(of_kind(results, OUR_RECIPE))} of our machine with our training, and "
        f"{len(of_kind(results, OTHER))} of other machines."
    )


def what_reproduced(results: Sequence[Result]) -> str:
    gaps = lie_gaps(results)
    reached = [cell for cell, gap in gaps.items() if gap <= REACHED]
    own = best(of_kind(results, PAPER))
    both = {c: (paper()[c].coarse, own[c].coarse) for c in own if c in paper()}
    low = [ours for theirs, ours in both.values() if theirs < FAILED]
    also = sum(ours < FAILED for ours in low)
    return (
        "**What reproduced.** There are "
        f"{len(gaps)} cells of Lie-access models that were run and where the paper's best run "
        f"generalises (at least {FAILED:.0%} of the answers without a mistake, at twice the "
        f"training size). In {len(reached)} of them our best run comes within {100 * REACHED:.0f} "
        "points of the paper's or above it. "
        f"Where the paper's best run fails (below {FAILED:.0%}), so does ours in {also} of "
        f"{len(low)} cells. {order_of_models(own)}"
    )


def order_of_models(own: Mapping[Place, Scores]) -> str:
    """The paper's main claim, as far as it can be judged."""
    places = dict.fromkeys(cell.row for cell in paper() if not cell.interpolation)
    judged, ahead = 0, 0
    for place in places:
        cells = [cell for cell in own if cell.row == place and cell in paper()]
        lie = [own[cell].coarse for cell in cells if is_lie(cell)]
        plain = [own[cell].coarse for cell in cells if not is_lie(cell)]
        if lie and plain:
            judged += 1
            ahead += max(lie) > max(plain) + NEAR
    return (
        "The paper's main claim, that Lie access generalises where the other memories do not: of "
        f"the {judged} tasks and regimes where both were run, the best Lie-access machine is more "
        f"than {100 * NEAR:.0f} points ahead of the best other one in {ahead}."
    )


def what_did_not(results: Sequence[Result]) -> str:
    gaps = lie_gaps(results)
    near = [cell for cell, gap in gaps.items() if REACHED < gap <= NEAR]
    below = [cell for cell, gap in gaps.items() if gap > NEAR]
    own = best(of_kind(results, PAPER))
    missed = [cell for cell in below if paper()[cell].coarse >= SOLVED]
    nothing = [cell for cell in missed if own[cell].coarse < FAILED]
    return (
        f"**What did not.** {len(near)} of these cells are within {100 * NEAR:.0f} points below "
        f"the paper's, {len(below)} further below. "
        f"In {len(missed)} of them the paper's best run solves the task "
        f"(at least {SOLVED:.0%}); in {len(nothing)} of those none of our runs comes to "
        f"{FAILED:.0%}:\n\n{listed(nothing)}"
    )


def how_sure(results: Sequence[Result]) -> str:
    own = [result for result in of_kind(results, PAPER) if is_lie(result.cell)]
    sizes = [len(runs) for cell, runs in by_cell(own).items() if cell in paper()]
    one, few, many = (
        sum(low <= size < high for size in sizes)
        for low, high in [(1, 2), (2, PAPER_RUNS), (PAPER_RUNS, 10**9)]
    )
    solved = sum(result.solved for result in own)
    runs = max(len(own), 1)
    bounds = interval(np.array([solved / runs]), np.array([runs]))
    low, high = (bound.item() for bound in bounds)
    return (
        f"**How sure we are.** The paper's is the best of {PAPER_RUNS} or more runs a cell, over "
        f"settings and seeds. Of our Lie-access cells {one} have one run, {few} have more but "
        f"fewer than {PAPER_RUNS}, {many} have as many as the paper's. A single run of these "
        f"settings succeeds in {solved} of {len(own)} cases ({low:.0%} to {high:.0%} with 95% "
        "confidence, if all cells were alike, which they are not). A cell below the paper's is "
        "therefore no proof of a mistake: what one run in ten succeeds at, one run misses in 90% "
        f"of all cases, three in {0.9**3:.0%}, {PAPER_RUNS} in {0.9**PAPER_RUNS:.0%}. A cell that "
        "reaches the paper's needs no such excuse: one run is enough to show that it can be done."
    )


def what_ours_adds(results: Sequence[Result]) -> str:
    tasks = list(dict.fromkeys(cell.task for cell in paper()))
    lines = []
    for kind, name in (
        (PAPER, "the paper's machine and training"),
        (OUR_TRAINING, "the paper's machine and our training"),
        (OUR_RECIPE, "our machine and our training"),
    ):
        runs = [result for result in of_kind(results, kind) if result.cell.task in tasks]
        solved = [task for task in tasks if any(r.solved for r in runs if r.cell.task == task)]
        found = ", ".join(solved) or "none"
        runs_of = count(runs) if runs else "none run so far"
        lines.append(f"- {name}: {len(solved)} of {len(tasks)} tasks ({found}); runs: {runs_of}")
    head = (
        f"**What can be solved at all.** Tasks that at least one run solved (at least {SOLVED:.0%}"
        "), in any regime and with any model:"
    )
    return "\n".join([head, "", *lines])


def how_near(results: Sequence[Result]) -> str:
    """A line for each task and each model: how far its cells are below the paper's."""
    gaps = lie_gaps(results)
    rows = [
        [name, *counts([gap for cell, gap in gaps.items() if name in (cell.task, cell.model)])]
        for part in ("task", "model")
        for name in dict.fromkeys(getattr(cell, part) for cell in gaps)
    ]
    limits = f"within {100 * REACHED:.0f} points", f"within {100 * NEAR:.0f}", "further below"
    caption = (
        "Cells by how far our best run is below the paper's coarse accuracy: those of a task with "
        "all four models, then those of a model with all tasks, in both regimes, without and with "
        "interpolated actions."
    )
    return markdown(Table("", caption, ["", *limits, "cells"], rows, labels=1)).rstrip()


def counts(gaps: Sequence[float]) -> list[str]:
    """How many are small, middling and large, and how many there are."""
    near = [sum(gap <= limit for gap in gaps) for limit in (REACHED, NEAR, 1.0)]
    return [str(n) for n in (near[0], near[1] - near[0], near[2] - near[1], near[2])]


# ---- what the sentences are made of


def is_lie(cell: Place) -> bool:
    """Those models have cells in the paper's table of interpolated actions."""
    return cell._replace(interpolation=True) in paper()


def lie_gaps(results: Sequence[Result]) -> dict[Place, float]:
    """The paper's coarse accuracy minus ours, of the Lie-access cells where it has any."""
    own = best(of_kind(results, PAPER))
    return {
        cell: round(float(theirs.coarse - own[cell].coarse), 6)
        for cell, theirs in paper().items()
        if is_lie(cell) and cell in own and theirs.coarse >= FAILED
    }


def listed(cells: Sequence[Place]) -> str:
    """A line for each model."""
    models = dict.fromkeys(cell.model for cell in cells)
    lines = (
        f"- {model}: {', '.join(spoken(cell) for cell in cells if cell.model == model)}"
        for model in models
    )
    return "\n".join(lines) or "- none"


def spoken(cell: Place) -> str:
    """A cell of a model in words; what most cells have in common is not said."""
    large = " large" if cell.regime != next(iter(REGIMES)) else ""
    return f"{cell.task}{large}{' interpolated' if cell.interpolation else ''}"
