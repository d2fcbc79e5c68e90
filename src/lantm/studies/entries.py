"""Rows of a results file as values, and the numbers of the paper in the same form."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lantm.errors import require_one_of
from lantm.machines.seq2seq import Scores
from lantm.training.evaluation import percent
from lantm.training.kinds import kind_of
from lantm.training.lengths import LengthScore, parse_lengths
from lantm.training.runs import CHECKPOINTS

PAPER_FILE = Path(__file__).parent / "paper.csv"
"""Tables 1b and A.2 of the paper, in percent."""
INTERPOLATION = "action_interpolation"
EMPTY = "·"
"""Where nothing was run."""
SOLVED = 0.9
"""The coarse accuracy on twice the training size from which a run is a success."""


class Place(NamedTuple):
    """A place in the paper's tables."""

    task: str
    model: str
    regime: str
    interpolation: bool = False
    """Of actions (appendix B)."""

    @property
    def row(self) -> tuple[str, str, bool]:
        """What the cells of all models at one task have in common."""
        return self.task, self.regime, self.interpolation


@dataclass(frozen=True)
class Result:
    """A run that has ended."""

    cell: Place
    kind: str
    """Whose machine and training: one of `KINDS`."""
    grid: str
    seed: int
    command: str
    seconds: float | None
    error: str | None
    """Why it failed, if it did."""
    accuracy: dict[int, Scores]
    """Of one checkpoint, by the multiple of the training size; none if it failed."""
    forgotten: float = 0.0
    """How far the last checkpoint is below the best one: coarse accuracy at twice the size."""
    trained: int | None = None
    """The batches that it took."""
    parameters: int | None = None
    learned: int | None = None
    """The batch at which the training sizes were learned, if they were."""
    learned_seconds: float | None = None
    """How long that took, if every batch takes as long as the others."""
    validation: tuple[float, float] = (-1.0, -1.0)
    """The best coarse and fine accuracy on validation problems, which may select settings."""
    lengths: tuple[LengthScore, ...] = ()
    """Of the same checkpoint, with as many slots as it was given at most."""
    space: str | None = None
    """Of its keys, if the settings name one."""
    starts: int = 1
    """How many there may be."""

    @property
    def settings(self) -> str:
        """The command without its seed."""
        return re.sub(r" --seed \d+", "", self.command)

    @property
    def promise(self) -> tuple[float, float]:
        """What selects its settings; of a run that failed nothing is right."""
        return (0.0, 0.0) if self.error is not None else self.validation

    @property
    def twice(self) -> Scores | None:
        return self.accuracy.get(2)

    @property
    def solved(self) -> bool:
        return self.twice is not None and bool(self.twice.coarse >= SOLVED)


def parse(rows: Iterable[Mapping[str, Any]], checkpoint: str = "best") -> list[Result]:
    """Rows of `read_results`, with the scores of one checkpoint."""
    require_one_of("checkpoint", checkpoint, CHECKPOINTS)
    return [_parse(row, checkpoint) for row in rows]


def _parse(row: Mapping[str, Any], checkpoint: str) -> Result:
    config, failed = row["config"], row["status"] == "failed"
    scores = [score for score in row["test"] if score["checkpoint"] == checkpoint]
    batches, seconds, learned = row.get("trained"), row["seconds"], row.get("learned")
    validation = row.get("validation", {"coarse": -1.0, "fine": -1.0})
    result = Result(
        Place(config["task"], config["model"], config["regime"], bool(config.get(INTERPOLATION))),
        kind_of(config),
        row["grid"] or "none",
        config["seed"],
        row["command"],
        seconds,
        (row.get("error") or "failed") if failed else None,
        {s["source"]: Scores(s["fine"], s["coarse"]) for s in scores if not failed},
        _forgotten(row["test"]),
        batches,
        row.get("parameters"),
        learned,
        seconds * learned / batches if seconds and batches and learned else None,
        (validation["coarse"], validation["fine"]),
        _lengths(row, checkpoint),
        config.get("space"),
        config.get("starts", 1),
    )
    if not failed and result.twice is None:
        raise ValueError(f"result {row['digest']} has no 2x score of the checkpoint {checkpoint}")
    return result


def _forgotten(scores: Iterable[Mapping[str, Any]]) -> float:
    twice = {score["checkpoint"]: score["coarse"] for score in scores if score["source"] == 2}
    return twice["best"] - twice["last"] if twice.keys() >= {"best", "last"} else 0.0


def _lengths(row: Mapping[str, Any], checkpoint: str) -> tuple[LengthScore, ...]:
    scores = [s for s in parse_lengths(row.get("lengths", [])) if s.checkpoint == checkpoint]
    most = max((score.slots or 0 for score in scores), default=0)
    return tuple(score for score in scores if (score.slots or 0) == most)


def of_grid(results: Sequence[Result], grid: str) -> list[Result]:
    """Those of one sweep; `none` for runs that no sweep trained."""
    known = sorted({result.grid for result in results})
    require_one_of("grid", grid, known or ["none so far"])
    return [result for result in results if result.grid == grid]


def of_kind(results: Iterable[Result], kind: str) -> list[Result]:
    """Those with that machine and training, which are never mixed with the others."""
    return [result for result in results if result.kind == kind]


def by_cell(results: Iterable[Result]) -> dict[Place, list[Result]]:
    """The runs of every place that has some."""
    found: dict[Place, list[Result]] = {}
    for result in results:
        found.setdefault(result.cell, []).append(result)
    return found


def best(results: Iterable[Result]) -> dict[Place, Scores]:
    """Of each cell the run with the best test on twice the training size, coarse before fine."""
    found: dict[Place, Scores] = {}
    for result in results:
        if result.twice:
            known = found.get(result.cell, result.twice)
            found[result.cell] = max(known, result.twice, key=lambda a: (a.coarse, a.fine))
    return found


@cache
def paper() -> dict[Place, Scores]:
    """What the paper reports, in whole percents."""
    with PAPER_FILE.open(newline="") as file:
        return {
            Place(row["task"], row["model"], row["regime"], row["interpolation"] == "yes"): Scores(
                int(row["fine"]) / 100, int(row["coarse"]) / 100
            )
            for row in csv.DictReader(file)
        }


# ---- runs as text


def shares(runs: Iterable[Result]) -> list[str]:
    """Fine and coarse accuracy of the best of them."""
    found = list(runs)
    scores = [score for score in [result.twice for result in found] if score is not None]
    if not scores:
        return ["failed" if found else EMPTY] * 2
    return [percent(share) for share in max(scores, key=lambda score: (score.coarse, score.fine))]


def count(runs: Sequence[Result]) -> str:
    """How many succeeded, of how many."""
    return f"{sum(result.solved for result in runs)} of {len(runs)}" if runs else EMPTY


def summed(runs: Sequence[Result]) -> str:
    """The best coarse accuracy, and how many succeeded."""
    return f"{shares(runs)[1]} ({count(runs)})" if runs else EMPTY
