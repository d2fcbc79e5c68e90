"""Accuracy against size, a curve a model, from saved results."""

from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lantm.inspection.figures.parts import blank
from lantm.machines.models import MODELS
from lantm.studies.entries import Result
from lantm.studies.report.peers import Entry, entries
from lantm.tasks import TASKS

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by every kind of colour vision; from the eighth model on with broken lines."""
COLUMNS = 3


def draw_curves(results: Sequence[Result]) -> Figure:
    """For each task with scores by size: the mean of the seeds, and their range as a band."""
    found = [entry for entry in entries(results) if entry.curve()]
    if not found:
        raise ValueError(
            "no result has scores by size; lantm eval RUN --lengths 1:500 --save keeps some"
        )
    tasks = list(dict.fromkeys(entry.task for entry in found))
    known = {model: number for number, model in enumerate(MODELS)}
    ordered = sorted(found, key=lambda e: (known.get(e.model, len(known)), e.model, e.starts))
    names = list(dict.fromkeys(entry.name for entry in ordered))
    columns, rows = min(len(tasks), COLUMNS), -(-len(tasks) // COLUMNS)
    figure = blank("Symbols right at every size", 4.0 * columns + 2, 3.2 * rows + 1)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, task in zip(panels, tasks, strict=False):
        draw_task(axes, task, [entry for entry in found if entry.task == task], names)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    handles = {
        name: handle
        for axes in figure.axes
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def draw_task(axes: Axes, task: str, found: Sequence[Entry], names: Sequence[str]) -> None:
    """The curves of one task."""
    if task in TASKS:
        sizes = TASKS[task].sizes()
        axes.axvspan(sizes[0] - 0.5, sizes[-1] + 0.5, color="#dddddd", label="sizes of training")
    for entry in found:
        number = names.index(entry.name)
        colour = COLOURS[number % len(COLOURS)]
        curve = entry.curve()
        style = "-" if number < len(COLOURS) else "--"
        means = [fmean(shares) for shares in curve.values()]
        axes.plot(list(curve), means, style, color=colour, label=entry.name)
        low, high = ([edge(shares) for shares in curve.values()] for edge in (min, max))
        axes.fill_between(list(curve), low, high, color=colour, alpha=0.2)
    axes.set(title=task, xlabel="size", ylabel="symbols right", ylim=(-0.03, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
