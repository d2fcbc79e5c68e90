"""Heat maps: what interpolation of actions changes (the last figure of the paper), and which
runs succeeded.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from lantm.inspection.figures.parts import COLOURS, blank
from lantm.studies.entries import (
    EMPTY,
    SOLVED,
    Place,
    Result,
    Scores,
    best,
    by_cell,
    of_kind,
    paper,
)
from lantm.studies.report.tables import OURS
from lantm.tasks.streams import REGIMES
from lantm.training.kinds import KIND_NAMES, PAPER

NOT_RUN = "#dddddd"
"""The colour of a cell without a number."""


# ---- interpolation of actions


def draw_differences(results: Sequence[Result]) -> Figure:
    """Accuracies without less those with interpolation: above the best of our runs with the paper's
    machine and training, below the paper's.
    """
    figure = blank("Accuracy without interpolation of actions, minus with it", 11.0, 8.0)
    panels = figure.subplots(2, 2, sharey=True)
    ours = f"ours ({KIND_NAMES[PAPER]})"
    sources = {ours: best(of_kind(results, PAPER)), "paper": paper()}
    images = [
        _draw_differences(axes, sources[whose], whose, name)
        for axes, (whose, name) in zip(panels.flat, product(sources, Scores._fields), strict=True)
    ]
    label = "percentage points; above 0: better without"
    figure.colorbar(images[0], ax=panels, shrink=0.6, label=label)
    return figure


def differences(scores: Mapping[Place, Scores], name: str) -> dict[Place, float]:
    """In percentage points, by the cells of the paper's figure; NaN where a run is missing."""

    def share(cell: Place) -> float:
        return getattr(scores[cell], name) if cell in scores else np.nan

    cells = [cell for cell in paper() if cell.interpolation]
    return {cell: 100 * (share(cell._replace(interpolation=False)) - share(cell)) for cell in cells}


def _draw_differences(
    axes: Axes, scores: Mapping[Place, Scores], whose: str, name: str
) -> AxesImage:
    """A row for each task, a column for each model and regime, a number in every cell."""
    found = differences(scores, name)
    tasks = list(dict.fromkeys(cell.task for cell in found))
    models = list(dict.fromkeys(cell.model for cell in found))
    values = np.array(list(found.values())).reshape(len(tasks), len(models) * len(REGIMES))
    image = axes.imshow(values, cmap=COLOURS, vmin=-100, vmax=100, aspect="auto")
    axes.set_facecolor(NOT_RUN)
    for (y, x), value in np.ndenumerate(values):
        text = EMPTY if np.isnan(value) else f"{value:+.0f}" if round(value) else "0"
        axes.text(x, y, text, ha="center", va="center", color="white" if value < 0 else "black")
    for edge in range(1, len(models)):
        axes.axvline(edge * len(REGIMES) - 0.5, color="white", linewidth=3)
    axes.set_title(f"{whose}, {name}")
    axes.set_yticks(range(len(tasks)), tasks)
    columns = [regime[0].upper() for _ in models for regime in REGIMES]
    axes.set_xticks(range(len(columns)), columns)
    below = axes.secondary_xaxis(-0.08)
    below.set_xticks([(i + 0.5) * len(REGIMES) - 0.5 for i in range(len(models))], models)
    below.tick_params(length=0)
    below.spines["bottom"].set_visible(False)
    return image


# ---- successes


def draw_successes(results: Sequence[Result]) -> Figure:
    """Which share of the runs succeeded: a panel for each kind of run and regime, in it a row for
    each task and a column for each model, those with interpolated actions on the right.
    """
    figure = blank(
        f"Runs that solved their task (coarse accuracy of {SOLVED:.0%} at 2x)", 16.0, 9.0
    )
    kinds = PAPER, *OURS
    panels = figure.subplots(len(REGIMES), len(kinds), sharex=True, sharey=True)
    places = list(product(REGIMES, kinds))
    images = [
        _draw_successes(axes, by_cell(of_kind(results, kind)), regime, kind)
        for axes, (regime, kind) in zip(panels.flat, places, strict=True)
    ]
    figure.colorbar(images[0], ax=panels, shrink=0.6, label="share of the runs; grey: not run")
    return figure


def _draw_successes(
    axes: Axes, runs: Mapping[Place, Sequence[Result]], regime: str, kind: str
) -> AxesImage:
    """In every cell how many runs succeeded, of how many."""
    tasks = list(dict.fromkeys(cell.task for cell in paper()))
    columns = list(dict.fromkeys((cell.interpolation, cell.model) for cell in paper()))
    found = [
        [runs.get(Place(task, model, regime, mixed), ()) for mixed, model in columns]
        for task in tasks
    ]
    values = np.array([[share(cell) for cell in row] for row in found])
    image = axes.imshow(values, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    axes.set_facecolor(NOT_RUN)
    for (y, x), value in np.ndenumerate(values):
        cell = found[y][x]
        text = f"{sum(r.solved for r in cell)}/{len(cell)}" if cell else EMPTY
        colour = "white" if value < 0.5 else "black"
        axes.text(x, y, text, ha="center", va="center", color=colour, size="small")
    axes.axvline(sum(not mixed for mixed, _ in columns) - 0.5, color="white", linewidth=3)
    axes.set_title(f"{KIND_NAMES[kind]}, {regime} regime", size="medium")
    axes.set_yticks(range(len(tasks)), tasks)
    names = [f"{model} + interp." if mixed else model for mixed, model in columns]
    axes.set_xticks(range(len(columns)), names, rotation=60, ha="right", rotation_mode="anchor")
    return image


def share(runs: Sequence[Result]) -> float:
    """Of the runs that succeeded; NaN where there is none."""
    return sum(result.solved for result in runs) / len(runs) if runs else np.nan
