"""What interpolation of actions changes, as heat maps (the last figure of the paper)."""

from collections.abc import Mapping
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from lantm.inspection.figures.parts import COLOURS, blank
from lantm.studies.report.entries import Place, Scores, paper
from lantm.studies.report.table import EMPTY
from lantm.tasks.streams import REGIMES


def draw_differences(ours: Mapping[Place, Scores]) -> Figure:
    """Accuracies without less those with interpolation: our best runs above, the paper's below."""
    figure = blank("Accuracy without interpolation of actions, minus with it", 11.0, 8.0)
    panels = figure.subplots(2, 2, sharey=True)
    sources = {"ours": ours, "paper": paper()}
    images = [
        _draw(axes, sources[whose], whose, name)
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


def _draw(axes: Axes, scores: Mapping[Place, Scores], whose: str, name: str) -> AxesImage:
    """A row for each task, a column for each model and regime, a number in every cell."""
    found = differences(scores, name)
    tasks = list(dict.fromkeys(cell.task for cell in found))
    models = list(dict.fromkeys(cell.model for cell in found))
    values = np.array(list(found.values())).reshape(len(tasks), len(models) * len(REGIMES))
    image = axes.imshow(values, cmap=COLOURS, vmin=-100, vmax=100, aspect="auto")
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
