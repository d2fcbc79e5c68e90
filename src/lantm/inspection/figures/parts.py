"""What figures are made of: each function draws one thing into given axes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d import Axes3D

from lantm.inspection.figures.episode import Episode
from lantm.inspection.picture import HeadLook
from lantm.spaces import Chart

COLOURS = "cividis"
"""A colour map whose lightness alone tells its values."""
START, END = "^", "s"
"""The marks around the first and the last place of a head."""


def blank(title: str, width: float, height: float) -> Figure:
    """A figure of that many inches in which nothing overlaps."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title)
    return figure


# ---- keys, in the plane or in space


def draw_writes(
    axes: Axes, points: np.ndarray, strengths: np.ndarray, colour: str, wraps: bool = False
) -> None:
    """Circles on a line, filled by their strengths."""
    axes.plot(*way(points, wraps).T, color=colour, linewidth=0.8, zorder=2)
    scatter(axes, points, c=fills(strengths, colour), edgecolors=colour, s=42, zorder=3)


def draw_reads(axes: Axes, points: np.ndarray, colour: str, wraps: bool = False) -> None:
    """Crosses on a broken line."""
    axes.plot(*way(points, wraps).T, color=colour, linewidth=0.8, linestyle="--", zorder=4)
    scatter(axes, points, c=colour, marker="x", s=min(28, 1200 / len(points)), zorder=5)


def way(points: np.ndarray, wraps: bool) -> np.ndarray:
    """The way through the points; where sides of a square are one, not across the whole of it."""
    if not wraps:
        return points
    jumps = np.any(np.abs(np.diff(points, axis=0)) > np.pi, axis=1)
    return np.insert(points, np.flatnonzero(jumps) + 1, np.nan, axis=0)


def draw_ends(axes: Axes, points: np.ndarray, colour: str) -> None:
    """A large triangle around the first point, a large square around the last."""
    for point, marker in ((points[:1], START), (points[-1:], END)):
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 1.4}
        scatter(axes, point, marker=marker, s=190, zorder=6, **look)


def draw_keys(axes: Axes, chart: Chart, episode: Episode) -> None:
    """The ways of all heads; the chart is that of `episode.keys`."""
    writes, reads = episode.split(chart.points)
    for points, strengths, look in zip(writes, episode.strengths, episode.writers, strict=True):
        draw_writes(axes, points, strengths, look.colour, chart.wraps)
    for points, look in zip(reads, episode.readers, strict=True):
        draw_reads(axes, points, look.colour, chart.wraps)
    looks = episode.writers + episode.readers
    for points, look in zip([*writes, *reads], looks, strict=True):
        draw_ends(axes, points, look.colour)


def scatter(axes: Axes, points: np.ndarray, **look: Any) -> None:
    """Marks without the haze that would pale the far ones in space: fills mean strengths."""
    axes.scatter(*points.T, **look, **({"depthshade": False} if points.shape[1] == 3 else {}))


def label_points(axes: Axes, points: np.ndarray, labels: list[str]) -> None:
    """Each label beside its own point, across the way, on the outer side of it."""
    ways = np.gradient(points, axis=0) if len(points) > 1 else np.ones_like(points)
    across = np.column_stack([-ways[:, 1], ways[:, 0]])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-9)
    outward = np.sum(across * (points - points.mean(axis=0)), axis=1)
    side = np.where(np.abs(outward) > 1e-2 * np.ptp(points), np.sign(outward), 1)
    look: dict[str, Any] = {"textcoords": "offset points", "size": "x-small"}
    for label, point, offset in zip(labels, points, 13 * side[:, None] * across, strict=True):
        if label:
            axes.annotate(label, point, offset, ha="center", va="center", **look)


def frame(axes: Axes, chart: Chart) -> None:
    """Axes of one scale with room for all places in the plane, and the outline of a manifold."""
    outline = OUTLINES.get(chart.view)
    if outline is not None:
        axes.plot(*outline.T, color="#a9b0b8", linewidth=0.8, zorder=0)
    axes.update_datalim(chart.points)
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=chart.axes[0], ylabel=chart.axes[1])


def frame_cube(axes: Axes3D, chart: Chart) -> None:
    """Likewise in space."""
    low, high = chart.points.min(axis=0), chart.points.max(axis=0)
    half = 0.55 * float(np.max(high - low)) or 0.5
    for name, label, middle in zip("xyz", chart.axes, (low + high) / 2, strict=True):
        axes.set(**{f"{name}label": label, f"{name}lim": (middle - half, middle + half)})
    axes.locator_params(nbins=5)
    axes.set_box_aspect((1, 1, 1), zoom=0.85)  # pyright: ignore[reportArgumentType]


TURN = np.linspace(0, 2 * np.pi, 181)
CIRCLE = np.column_stack([np.cos(TURN), np.sin(TURN)])
SQUARE = np.pi * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
OUTLINES = {"circle": CIRCLE, "disc": CIRCLE, "torus": SQUARE}
"""What manifolds look like in the plane, by view."""


def fills(strengths: np.ndarray, colour: str) -> np.ndarray:
    """[time, 3]: from white for strength 0 to the colour of the head for strength 1.

    By the square root, so that the weak memories some machines live on do not look like none.
    """
    return 1 - np.sqrt(strengths)[:, None] * (1 - np.array(to_rgb(colour)))


def draw_legend(figure: Figure, episode: Episode, ends: bool = True) -> None:
    """What the marks of `draw_keys` mean, in as many rows as their number needs."""
    first, *others = episode.writers
    weak = fills(np.array([0.1]), first.colour)[0]
    handles = [
        write_mark(first.colour, label=f"{first.name}, strength 1"),
        write_mark(first.colour, markerfacecolor=weak, label="0.1"),
        write_mark(first.colour, markerfacecolor="white", label="0"),
        *(write_mark(look.colour, label=look.name) for look in others),
        *(read_mark(look) for look in episode.readers),
        *([end_mark(START, "start"), end_mark(END, "end")] if ends else []),
    ]
    width = figure.get_figwidth()
    columns = len(handles) if len(handles) <= width / 1.15 else int(width / 1.5)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def write_mark(colour: str, **rest: Any) -> Line2D:
    return Line2D([], [], color=colour, linewidth=0.8, marker="o", markersize=6.5, **rest)


def read_mark(look: HeadLook) -> Line2D:
    line: dict[str, Any] = {"color": look.colour, "linewidth": 0.8, "linestyle": "--"}
    return Line2D([], [], **line, marker="x", label=look.name)


def end_mark(marker: str, label: str) -> Line2D:
    around: dict[str, Any] = {"markeredgecolor": "grey", "markerfacecolor": "none"}
    return Line2D([], [], color="none", marker=marker, markersize=11, label=label, **around)


def draw_globe(axes: Axes3D, eye: np.ndarray) -> None:
    """The unit sphere: outline, meridians and parallels, those of the back fainter."""
    turn, lift = np.linspace(0, 2 * np.pi, 73), np.pi * np.arange(1, 6) / 6
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros_like(turn)], axis=-1)
    circles = [np.sin(a) * ring + [0, 0, np.cos(a)] for a in lift]
    circles += [
        np.outer(np.cos(turn), [np.cos(a), np.sin(a), 0]) + np.outer(np.sin(turn), [0, 0, 1])
        for a in np.pi * np.arange(6) / 6
    ]
    for circle in circles:
        front = (circle @ eye >= 0)[:, None]
        axes.plot(*np.where(front, np.nan, circle).T, color="#e4e7ea", linewidth=0.5, zorder=0)
        axes.plot(*np.where(front, circle, np.nan).T, color="#a9b0b8", linewidth=0.6, zorder=1)
    across = np.linalg.svd(eye[None])[2][1:]
    axes.plot(*(ring[:, :2] @ across).T, color="#68717c", linewidth=1, zorder=1)
    axes.set_axis_off()
    axes.set_box_aspect((1, 1, 1), zoom=1.45)  # pyright: ignore[reportArgumentType]


# ---- heat maps


def draw_weights(axes: Axes, episode: Episode, head: int, whole: bool = False) -> None:
    """Which memories a read head reads at each step of the answer, or of the whole episode, with
    the symbols of both; slots, where memories have no keys.
    """
    tokens = np.concatenate([episode.inputs, episode.answer])
    steps = slice(0 if whole else len(episode.inputs), None)
    heat_map(axes, episode.weights[head, steps].T, 0.0, 1.0, label="read weight")
    memories = "slot" if episode.has_slots else "memory of the input symbol, in order of writing"
    axes.set(xlabel="answer", ylabel=memories)
    name_ticks(axes.xaxis, episode.show(tokens[steps]))
    name_ticks(axes.yaxis, episode.memory_names)
    heads = len(episode.readers)
    if heads > 1:
        axes.set_title(f"read head {head + 1} of {heads}", color=episode.readers[head].colour)


def name_ticks(axis: Axis, names: list[str]) -> None:
    """A name at every step, or at every second, third ... where they are too many."""
    every = -(-len(names) // 34)
    places = range(0, len(names), every)
    axis.set_ticks(list(places), [names[i] for i in places], fontsize="x-small")


def draw_hidden(axes: Axes, episode: Episode) -> None:
    """Of a machine without a memory: its hidden state over time."""
    phases = episode.trace.encode.hidden, episode.trace.decode.hidden
    heat_map(axes, np.concatenate(phases).T, -1.0, 1.0, label="hidden state (no memory to show)")
    axes.set(ylabel="cell")
    divide_phases(axes, episode)


def heat_map(axes: Axes, values: np.ndarray, low: float, high: float, label: str) -> None:
    look: dict[str, Any] = {"cmap": COLOURS, "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(values, vmin=low, vmax=high, **look)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.figure.colorbar(image, ax=axes, label=label)


def divide_phases(axes: Axes, episode: Episode) -> None:
    """A line between the steps of the input and those of the answer."""
    axes.axvline(len(episode.inputs) - 0.5, color="white", linestyle="--")
    axes.set(xlabel="input | answer")
