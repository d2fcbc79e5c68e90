"""Saved measurements to tables and a plot."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lantm.studies.benchmark.compare import Measurement

COLOURS = {"lantm": "#d55e00", "scan": "#0072b2", "torch": "#009e73"}
LABELS = {"lantm": "lantm", "scan": "plain scan", "torch": "eager PyTorch"}
OTHERS = ("scan", "torch")
HEADER = (
    "model, task, length",
    "lantm ms",
    *(f"{name}, times lantm" for name in OTHERS),
    "bound ms",
    "peak MB: lantm, scan, torch",
)


def save_rows(path: str | Path, rows: Sequence[Any]) -> None:
    """Measurements, or the costs of spaces."""
    lines = ",\n".join(json.dumps(dataclasses.asdict(row)) for row in rows)
    Path(path).write_text(f"[\n{lines}\n]\n")


def load_rows(path: str | Path) -> list[Measurement]:
    try:
        return [Measurement(**row) for row in json.loads(Path(path).read_text())]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has no results of lantm bench: {error}") from None


def ratios(row: Measurement, own: Measurement) -> tuple[float, float, float]:
    """How many times as long a step takes: by the medians, and at least and at most in one turn."""
    turns = [a / b for a, b in zip(row.milliseconds, own.milliseconds, strict=True)]
    medians = statistics.median(row.milliseconds) / statistics.median(own.milliseconds)
    return medians, min(turns), max(turns)


def table(rows: Sequence[Measurement]) -> list[tuple[str, ...]]:
    """A line for each case, under `HEADER`."""
    cases: dict[str, dict[str, Measurement]] = {}
    for row in rows:
        case = f"{row.model} {row.task} {row.length}"
        cases.setdefault(case, {})[row.implementation] = row
    return [(case, *show(found)) for case, found in cases.items() if "lantm" in found]


def show(found: dict[str, Measurement]) -> list[str]:
    """The cells of a case; a dash for what was not measured."""
    own = found["lantm"]
    times, peaks = ["-", "-"], ["-", "-"]
    for i, name in enumerate(OTHERS):
        if name in found:
            middle, least, most = ratios(found[name], own)
            times[i] = f"{middle:.1f} ({least:.1f} to {most:.1f})"
            peaks[i] = f"{found[name].peak_megabytes:.0f}"
    middle = f"{statistics.median(own.milliseconds):.1f}"
    peak = ", ".join([f"{own.peak_megabytes:.0f}", *peaks])
    return [middle, *times, f"{own.bound_milliseconds:.1f}", peak]


def markdown(rows: Sequence[Measurement]) -> str:
    """The table for a page."""
    return in_markdown(HEADER, table(rows))


def in_markdown(header: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) + ("--:",) * (len(header) - 1), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def remarks(rows: Sequence[Measurement]) -> list[str]:
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


def draw(rows: Sequence[Measurement], path: str | Path) -> None:
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
                label = f"{model.upper()}: {LABELS[name]}"
                middle = [statistics.median(row.milliseconds) for row in found]
                time.plot(lengths, middle, label=label, **look)
                memory.plot(lengths, [row.peak_megabytes for row in found], **look)
    bounds = {row.length: row.bound_milliseconds for row in copies}
    time.plot(*zip(*bounds.items(), strict=True), color="grey", linestyle=":", label="lower bound")
    for axes, title in ((time, "milliseconds a training step"), (memory, "megabytes at the peak")):
        axes.set(title=title, xlabel="length", xscale="log", yscale="log")
        axes.set_xticks(list(bounds), list(map(str, bounds)))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    time.legend(fontsize="small")
    figure.savefig(path, dpi=120)
