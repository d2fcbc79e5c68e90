"""Saved measurements to tables and a plot."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from lantm.benchmark.compare import Row

COLOURS = {"lantm": "#d55e00", "scan": "#0072b2", "torch": "#009e73"}
LABELS = {"lantm": "lantm", "scan": "plain scan (JAX)", "torch": "PyTorch, eager"}
HEADER = ("model, task, length", "", "ms", "times lantm", "CPU ms", "peak MB", "bound ms")


def save_rows(path: str | Path, rows: Sequence[Row]) -> None:
    lines = ",\n".join(json.dumps(dataclasses.asdict(row)) for row in rows)
    Path(path).write_text(f"[\n{lines}\n]\n")


def load_rows(path: str | Path) -> list[Row]:
    try:
        return [Row(**row) for row in json.loads(Path(path).read_text())]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has no results of lantm bench: {error}") from None


def ratios(row: Row, own: Row) -> tuple[float, float, float]:
    """How many times as long a step takes: by the medians, and at least and at most in one turn.

    >>> times = [1, 2, 4], [6, 4, 9]
    >>> own, other = (Row("lantm", "copy", 33, "", ms, ms, 1, 1, 1) for ms in times)
    >>> ratios(other, own)
    (3.0, 2.0, 6.0)
    """
    turns = [a / b for a, b in zip(row.milliseconds, own.milliseconds, strict=True)]
    medians = statistics.median(row.milliseconds) / statistics.median(own.milliseconds)
    return medians, min(turns), max(turns)


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each row, under `HEADER`."""
    own = {case(row): row for row in rows if row.implementation == "lantm"}
    return [show(row, own.get(case(row))) for row in rows]


def case(row: Row) -> tuple[str, str, int]:
    return row.model, row.task, row.length


def show(row: Row, own: Row | None) -> tuple[str, ...]:
    times = "-"
    if row is own:
        times = "1"
    elif own is not None:
        middle, least, most = ratios(row, own)
        times = f"{middle:.2f} ({least:.2f} to {most:.2f})"
    return (
        f"{row.model} {row.task} {row.length}",
        row.implementation,
        f"{statistics.median(row.milliseconds):.1f}",
        times,
        f"{statistics.median(row.cpu_milliseconds):.1f}",
        f"{row.peak_megabytes:.1f}",
        f"{row.bound_milliseconds:.1f}",
    )


def markdown(rows: Sequence[Row]) -> str:
    """The table for a page."""
    lines = [HEADER, ("---",) * 2 + ("--:",) * 5, *table(rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def remarks(rows: Sequence[Row]) -> list[str]:
    """What else the measurements say."""
    share = max(row.data_milliseconds / statistics.median(row.milliseconds) for row in rows)
    said = [f"drawing a batch takes at most {share:.1%} of the time of a training step"]
    own = [row for row in rows if row.implementation == "lantm"]
    busy = min((sum(row.cpu_milliseconds) / sum(row.milliseconds) for row in own), default=1)
    if busy < 0.9:
        said.append(
            f"the core was shared: lantm had it for {busy:.0%} of the time, so trust only ratios"
        )
    return said


def draw(rows: Sequence[Row], path: str | Path) -> None:
    """Time and memory of a step of copy against its length, as PNG."""
    copies = sorted((row for row in rows if row.task == "copy"), key=lambda row: row.length)
    if not copies:
        raise ValueError("a plot needs measurements of the task copy")
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    time, memory = figure.subplots(1, 2)
    for model in dict.fromkeys(row.model for row in copies):
        style = "-" if model == "lantm" else "--"
        for name, colour in COLOURS.items():
            found = [r for r in copies if (r.model, r.implementation) == (model, name)]
            look = {"color": colour, "linestyle": style, "marker": "o", "markersize": 3}
            lengths = [row.length for row in found]
            if found:
                label = f"{model.upper()}, {LABELS[name]}"
                middle = [statistics.median(row.milliseconds) for row in found]
                time.plot(lengths, middle, label=label, **look)
                memory.plot(lengths, [row.peak_megabytes for row in found], **look)
    bounds = {row.length: row.bound_milliseconds for row in copies}
    time.plot(*zip(*bounds.items(), strict=True), color="grey", linestyle=":", label="arithmetic")
    for axes, title in ((time, "milliseconds a training step"), (memory, "megabytes at the peak")):
        axes.set(title=title, xlabel="length", xscale="log", yscale="log")
        axes.set_xticks(list(bounds), list(map(str, bounds)))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    time.legend(fontsize="small")
    figure.savefig(path, dpi=120)
