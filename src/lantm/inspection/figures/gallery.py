"""The figures by name, after those of the paper; each is a function of a saved run."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from lantm.errors import require_one_of
from lantm.inspection.figures.episode import Episode, observe
from lantm.inspection.figures.parts import (
    blank,
    divide_phases,
    draw_ends,
    draw_globe,
    draw_hidden,
    draw_keys,
    draw_legend,
    draw_reads,
    draw_weights,
    draw_writes,
    fills,
    frame,
    frame_cube,
    label_points,
)
from lantm.inspection.picture import READ, WRITE, flatten
from lantm.spaces.chart import coordinates, principal_components
from lantm.tasks import Task
from lantm.tasks.streams import usual_examples
from lantm.training.evaluation import Evaluation, evaluate_batches
from lantm.training.kinds import KIND_NAMES, kind_of
from lantm.training.runs import Run

LENGTHS_SEED = 20_000
"""Of the problems of `lengths`: none of training or of the test sets is drawn with it."""


def memory(episode: Episode) -> Figure:
    """Where the machine writes and reads, and which memories each answer step reads."""
    if not (episode.has_memory or episode.has_slots):
        figure = blank(episode.title, 11.0, 5.0)
        draw_hidden(figure.subplots(), episode)
        return figure
    heads = episode.busiest
    figure = blank(episode.title, 11.0, 1.2 + 3.8 * len(heads))
    if episode.has_slots:
        weights = figure.subplots(len(heads), 1, squeeze=False)[:, 0]
    else:
        chart = flatten(episode.chart)
        width, height = np.maximum(np.ptp(chart.points, axis=0), 1e-9)
        share = float(np.clip(width / height, 0.3, 1.3))
        keys, weights = beside(figure, len(heads), share)
        draw_keys(keys, chart, episode)
        frame(keys, chart)
        draw_legend(figure, episode)
    for axes, head in zip(weights, heads, strict=True):
        draw_weights(axes, episode, head)
    return figure


def beside(figure: Figure, maps: int, share: float = 1.3) -> tuple[Axes, list[Axes]]:
    """Axes for keys, of that width, and beside them those for heat maps, one above the other."""
    grid = figure.add_gridspec(maps, 2, width_ratios=[share, 1.3])
    keys = figure.add_subplot(grid[:, 0])
    return keys, [figure.add_subplot(grid[i, 1]) for i in range(maps)]


def lines(episode: Episode) -> Figure:
    """A row for every input symbol with its write; last the reads, from top to bottom."""
    line = principal_components(episode.keys, 1)
    writes, reads = (places[..., 0] for places in episode.split(line))
    rows, steps = writes.shape[1], reads.shape[1]
    below = rows + 0.5 + np.arange(steps) * min(1, 0.3 * rows / steps)
    figure = blank(episode.title, 8.0, 1.6 + 0.22 * (below[-1] + 1))
    axes = figure.subplots()
    for places, strengths, look in zip(writes, episode.strengths, episode.writers, strict=True):
        draw_writes(axes, np.column_stack([places, np.arange(rows)]), strengths, look.colour)
    for places, look in zip(reads, episode.readers, strict=True):
        draw_reads(axes, np.column_stack([places, below]), look.colour)
    for places, strengths, look in zip(writes, episode.strengths, episode.writers, strict=True):
        thin: dict[str, Any] = {"color": fills(strengths, look.colour), "linewidth": 0.8}
        axes.vlines(places, np.arange(rows), below[-1], **thin, alpha=0.4, zorder=1)
    axes.axhline(rows - 0.25, color="grey", linewidth=0.8)
    axes.set_yticks([*range(rows), below.mean()], [*episode.show(episode.inputs), "reads"])
    axes.invert_yaxis()
    shown = line.var() / max(episode.keys.var(axis=0).sum(), 1e-12)
    axes.set(
        xlabel=f"principal component of the keys: {shown:.0%} of their variance",
        ylabel="input symbol, first on top",
    )
    if shown < 0.9:
        axes.set_title("one line cannot show this path; see figure flat", size="small")
    draw_legend(figure, episode, ends=False)
    return figure


def plane(episode: Episode) -> Figure:
    """Writes and reads by their two coordinates, as they are."""
    if episode.keys.shape[1] != 2:
        raise ValueError("figure plane is for keys of two numbers; for this run there is flat")
    width, height = np.ptp(episode.keys, axis=0)
    figure = blank(
        episode.title, 7.0, 1.5 + float(np.clip(6 * height / max(width, height), 2, 5.5))
    )
    axes = figure.subplots()
    chart = coordinates(episode.keys)
    draw_keys(axes, chart, episode)
    frame(axes, chart)
    draw_legend(figure, episode)
    return figure


def flat(episode: Episode) -> Figure:
    """Keys of any space in the plane: left the writes with their symbols, right the reads."""
    chart = flatten(episode.chart)
    writes, reads = episode.split(chart.points)
    figure = blank(episode.title, 11.0, 5.8)
    left, right = figure.subplots(1, 2)
    names = zip(episode.inputs.tolist(), episode.show(episode.inputs), strict=True)
    labels = [name * (token < episode.task.symbols) for token, name in names]
    for points, strengths, look in zip(writes, episode.strengths, episode.writers, strict=True):
        draw_writes(left, points, strengths, look.colour, chart.wraps)
        draw_ends(left, points, look.colour)
        label_points(left, points, labels)
    for points, look in zip(reads, episode.readers, strict=True):
        draw_reads(right, points, look.colour, chart.wraps)
        draw_ends(right, points, look.colour)
    for axes, title in ((left, "writes"), (right, "reads")):
        axes.set(title=title)
        frame(axes, chart)
    draw_legend(figure, episode)
    return figure


def sphere(episode: Episode) -> Figure:
    """Writes and reads on the sphere, seen from where the fewest are behind it."""
    if episode.chart.view != "sphere":
        raise ValueError("figure sphere is for keys on a sphere; for this run there is flat")
    figure = blank(episode.title, 7.0, 6.5)
    axes = figure.add_subplot(projection="3d", proj_type="ortho")
    eye = best_view(episode.keys)
    draw_globe(axes, eye)
    draw_keys(axes, episode.chart, episode)
    x, y, z = eye
    axes.view_init(np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x)))
    draw_legend(figure, episode)
    return figure


def chart(episode: Episode) -> Figure:
    """Writes and reads in the space's own chart, of two or three dimensions."""
    keys = episode.chart
    if keys.view == "sphere":
        return sphere(episode)
    figure = blank(episode.title, 7.0, 6.5)
    if keys.points.shape[1] == 2:
        axes = figure.subplots()
        draw_keys(axes, keys, episode)
        frame(axes, keys)
    else:
        axes = figure.add_subplot(projection="3d")
        draw_keys(axes, keys, episode)
        frame_cube(axes, keys)
    draw_legend(figure, episode)
    return figure


def best_view(keys: np.ndarray) -> np.ndarray:
    """The direction from which the tenth of the keys that is furthest back is most in front."""
    turns = np.arange(400) + 0.5
    z = 1 - turns / 200
    angles = np.pi * (1 + 5**0.5) * turns
    eyes = np.column_stack([np.cos(angles), np.sin(angles), z])
    eyes[:, :2] *= np.sqrt(1 - z**2)[:, None]
    return eyes[np.argmax(np.quantile(keys @ eyes.T, 0.1, axis=0))]


def weights(episode: Episode) -> Figure:
    """Which memories each step reads, while the input comes in and while the answer goes out."""
    heads = len(episode.weights)
    figure = blank(episode.title, 9.0, 1.2 + 3.8 * heads)
    for head, axes in enumerate(figure.subplots(heads, 1, squeeze=False)[:, 0]):
        draw_weights(axes, episode, head, whole=True)
        divide_phases(axes, episode)
    return figure


def training(
    run: Run, *, checkpoint: str | None = None, size: int | None = None, seed: int = 1
) -> Figure:
    """One problem in the middle of training and at its end."""
    kept = require_kept(run)
    shown = [checkpoint or kept[(len(kept) - 1) // 2], kept[-1]]
    episodes = [observe(run.machine(name), run.task, size, seed) for name in shown]
    figure = blank(entitled(f"{run.task.name}, size {episodes[0].size}", run), 11.0, 5.8)
    for axes, name, episode in zip(figure.subplots(1, 2), shown, episodes, strict=True):
        chart = flatten(episode.chart)
        draw_keys(axes, chart, episode)
        axes.set(title=f"{batch_name(name)}: {episode.score}")
        frame(axes, chart)
    draw_legend(figure, episodes[0])
    return figure


def lengths(
    run: Run,
    *,
    checkpoint: str = "best",
    multiples: Iterable[int] = (1, 2, 3, 4),
    examples: int = 640,
) -> Figure:
    """Accuracy on problems of growing length, in even steps; shaded the lengths of training."""
    rng, machine = np.random.default_rng(LENGTHS_SEED), run.machine(checkpoint)
    parts: dict[int, Evaluation] = {}
    for multiple in multiples:  # each padded to lengths of its own
        sizes = even_sizes(run.task.sizes(multiple))
        number = max(1, usual_examples(run.task, multiple, examples) // len(sizes))
        batches = [run.task.sample(rng, size, number) for size in sizes]
        parts |= evaluate_batches(machine, batches).by_length or {}
    rows = ((n, part.fine, part.coarse, part.examples) for n, part in parts.items())
    found = np.array(sorted(rows))
    fewest, most = found[:, 3].min(), found[:, 3].max()
    count = f"{fewest:.0f}" if fewest == most else f"{fewest:.0f} to {most:.0f}"
    about = f"{run.task.name}, {run.config.model.model}: {count} problems of each length shown"
    figure = blank(entitled(about, run), 8.0, 4.5)
    axes = figure.subplots()
    shortest, longest = answer_lengths(run.task)
    axes.axvspan(shortest - 0.5, longest + 0.5, color="#dddddd", label="lengths of training")
    bounds = interval(found[:, 2], found[:, 3])
    axes.fill_between(found[:, 0], *bounds, color=READ, alpha=0.2, label="95 % interval")
    axes.plot(*found[:, [0, 1]].T, "s--", color=WRITE, markersize=4, label="fine: symbols")
    axes.plot(*found[:, [0, 2]].T, "o-", color=READ, markersize=4, label="coarse: whole answers")
    axes.set(xlabel="length of the answer", ylabel="right", ylim=(-0.03, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def even_sizes(sizes: range) -> list[int]:
    """Every size, or at most eight of them in even steps, the largest included."""
    step = -(-len(sizes) // 8)
    return list(sizes[::-1][::step])


def interval(shares: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's bounds of the true share, at 95 %."""
    z = 1.96
    centre = (shares + z**2 / (2 * counts)) / (1 + z**2 / counts)
    half = z * np.sqrt(shares * (1 - shares) / counts + (z / (2 * counts)) ** 2)
    half /= 1 + z**2 / counts
    return centre - half, centre + half


def answer_lengths(task: Task) -> tuple[int, int]:
    """Of the shortest and the longest answer of training, end symbol not counted."""
    ends = (task.smallest, task.largest)
    rng = np.random.default_rng(0)
    shortest, longest = (task.sample(rng, size, 1).answers.shape[1] - 1 for size in ends)
    return shortest, longest


def entitled(title: str, run: Run) -> str:
    """With whose machine it is and whose training, so that nobody takes ours for the paper's."""
    return f"{title} ({KIND_NAMES[kind_of(run.config.flat())]})"


def batch_name(checkpoint: str) -> str:
    return f"batch {int(checkpoint):,}" if checkpoint.isdigit() else checkpoint


def require_kept(run: Run) -> list[str]:
    """The kept checkpoints of a run, of which there have to be two."""
    if len(run.kept) < 2:
        raise ValueError(f"{run.path} has no checkpoints of its training; train with --keep-all")
    return run.kept


def of_run(draw: Callable[[Episode], Figure]) -> Callable[..., Figure]:
    """The figure of an episode as one of a run."""

    def figure(
        run: Run, *, checkpoint: str = "best", size: int | None = None, seed: int = 1
    ) -> Figure:
        made = draw(observe(run.machine(checkpoint), run.task, size, seed))
        made.suptitle(entitled(made.get_suptitle(), run))
        return made

    figure.__doc__ = draw.__doc__
    return figure


FIGURES: dict[str, Callable[..., Figure]] = {
    "memory": of_run(memory),
    "lines": of_run(lines),
    "plane": of_run(plane),
    "flat": of_run(flat),
    "sphere": of_run(sphere),
    "chart": of_run(chart),
    "weights": of_run(weights),
    "training": training,
    "lengths": lengths,
}
"""Every figure by name."""


def draw(name: str, run: Run | str | Path, **settings: Any) -> Figure:
    """The figure of that name of a run or a ready-trained machine, to show or to save.

    Settings are those of the figure: checkpoint, size and seed of the problem; for `lengths`
    checkpoint, multiples and examples.
    """
    require_one_of("figure", name, FIGURES)
    known = list(inspect.signature(FIGURES[name]).parameters)[1:]
    for setting in settings:
        require_one_of(f"setting of figure {name}", setting, known)
    return FIGURES[name](run if isinstance(run, Run) else Run.open(run), **settings)
