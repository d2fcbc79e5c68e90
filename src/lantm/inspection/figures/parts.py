"""What figures are made of: each function draws one thing into given axes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d import Axes3D

from lantm.inspection.figures.episode import Episode
from lantm.inspection.picture import READ, WRITE

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


def draw_writes(axes: Axes, points: np.ndarray, strengths: np.ndarray) -> None:
    """Circles on a line, filled by their strengths."""
    axes.plot(*points.T, color=WRITE, linewidth=0.8, zorder=2)
    scatter(axes, points, c=fills(strengths), edgecolors=WRITE, s=42, zorder=3)


def draw_reads(axes: Axes, points: np.ndarray) -> None:
    """Crosses on a broken line."""
    axes.plot(*points.T, color=READ, linewidth=0.8, linestyle="--", zorder=4)
    scatter(axes, points, c=READ, marker="x", s=min(28, 1200 / len(points)), zorder=5)


def draw_ends(axes: Axes, points: np.ndarray, colour: str) -> None:
    """A large triangle around the first point, a large square around the last."""
    for point, marker in ((points[:1], START), (points[-1:], END)):
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 1.4}
        scatter(axes, point, marker=marker, s=190, zorder=6, **look)


def draw_keys(axes: Axes, places: np.ndarray, episode: Episode) -> None:
    """The ways of both heads; places are those of `episode.keys`."""
    writes, reads = episode.split(places)
    draw_writes(axes, writes, episode.strengths)
    draw_reads(axes, reads)
    draw_ends(axes, writes, WRITE)
    draw_ends(axes, reads, READ)


def scatter(axes: Axes, points: np.ndarray, **look: Any) -> None:
    """Marks without the haze that would pale the far ones in space: fills mean strengths."""
    axes.scatter(*points.T, **look, **({"depthshade": False} if points.shape[1] == 3 else {}))


def frame(axes: Axes, places: np.ndarray, label: str) -> None:
    """Axes of one scale with room for all places in the plane."""
    axes.update_datalim(places)
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=label.format(1), ylabel=label.format(2))


def fills(strengths: np.ndarray) -> np.ndarray:
    """[time, 3]: from white for strength 0 to the colour of writes for strength 1."""
    return 1 - strengths[:, None] * (1 - np.array(to_rgb(WRITE)))


def draw_legend(figure: Figure, marks: int = 5) -> None:
    """What the marks of `draw_keys` mean: of writes, reads, start and end the first few."""
    write: dict[str, Any] = {"color": WRITE, "linewidth": 0.8, "marker": "o", "markersize": 6.5}
    end: dict[str, Any] = {"color": "none", "markeredgecolor": "grey", "markersize": 11}
    handles = [
        Line2D([], [], **write, label="write, strength 1"),
        Line2D([], [], **write, markerfacecolor="white", label="write, strength 0"),
        Line2D([], [], color=READ, linewidth=0.8, linestyle="--", marker="x", label="read"),
        Line2D([], [], **end, marker=START, markerfacecolor="none", label="start"),
        Line2D([], [], **end, marker=END, markerfacecolor="none", label="end"),
    ]
    figure.legend(handles=handles[:marks], loc="outside lower center", ncols=marks)


def draw_globe(axes: Axes3D) -> None:
    """The unit sphere by its meridians and parallels, in axes of one scale."""
    longitude, latitude = np.linspace(0, 2 * np.pi, 37), np.linspace(0, np.pi, 19)
    x, y = (np.outer(along(longitude), np.sin(latitude)) for along in (np.cos, np.sin))
    z = np.outer(np.ones_like(longitude), np.cos(latitude))
    axes.plot_wireframe(x, y, z, color="lightgrey", linewidth=0.3)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_ticks([-1, 0, 1])
    axes.set(xlabel="coordinate 1", ylabel="coordinate 2", zlabel="coordinate 3")
    axes.grid(visible=False)
    axes.set_box_aspect((1, 1, 1))


# ---- heat maps


def draw_weights(axes: Axes, weights: np.ndarray) -> None:
    """[steps, memories]: which memories each step reads."""
    heat_map(axes, weights.T, 0.0, 1.0, label="read weight")
    axes.set(xlabel="answer step", ylabel="memory, in order of writing")


def draw_hidden(axes: Axes, episode: Episode) -> None:
    """Of a machine without a memory: its hidden state over time."""
    phases = episode.trace.encode.hidden, episode.trace.decode.hidden
    heat_map(axes, np.concatenate(phases).T, -1.0, 1.0, label="hidden state (no memory)")
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
    axes.set(xlabel="step: input | answer")
