"""What a key space costs: training steps in each, in turns, against those in the plane."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lantm.machines.cell import unroll
from lantm.studies.benchmark.cases import Case
from lantm.studies.benchmark.measure import scan_or_own, timed

YARDSTICK = "plane"
HEADER = "space", "ms", f"times {YARDSTICK}"


@dataclass(frozen=True)
class SpaceCost:
    """Training steps of lantm on copy in one key space."""

    space: str
    length: int
    cpu_milliseconds: list[float]
    """Of the processor, for the median step of each turn."""


def compare_spaces(
    names: Sequence[str],
    length: int,
    *,
    repetitions: int = 5,
    steps: int = 10,
    on_compile: Callable[[str], None] = print,
) -> list[SpaceCost]:
    """A row for the plane and for each of the spaces, measured in turns: A B C A B C ..."""
    cases = {name: Case.copy("lantm", length, name) for name in dict.fromkeys([YARDSTICK, *names])}
    work = {}
    for name, case in cases.items():
        on_compile(name)
        work[name] = scan_or_own(unroll, case, "")
        work[name]()
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repetitions):
        for name, step in work.items():
            turn = statistics.median(timed(step)[1] for _ in range(steps))
            found[name].append(round(turn, 3))
    return [SpaceCost(name, length, turns) for name, turns in found.items()]


def space_table(rows: Sequence[SpaceCost]) -> list[tuple[str, ...]]:
    """A line for each space, under `HEADER`: the median of the turns, and their range."""
    own = next(row.cpu_milliseconds for row in rows if row.space == YARDSTICK)
    lines = []
    for row in rows:
        ratios = [a / b for a, b in zip(row.cpu_milliseconds, own, strict=True)]
        times = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append((row.space, f"{statistics.median(row.cpu_milliseconds):.1f}", times))
    return lines
