"""Accuracy at every length: how "Neural Networks and the Chomsky Hierarchy" scores a machine."""

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lantm.errors import require_positive
from lantm.processes import prefer_one_thread, require_memory
from lantm.tasks import Batch, Task
from lantm.tasks.streams import TaskStream
from lantm.training.evaluation import count_right
from lantm.training.runs import Run

LENGTHS_FILE = "lengths.json"
"""In a run directory: scores that were saved."""


@dataclass(frozen=True)
class LengthScore:
    """The answers to problems of one size. End symbols do not count, and of what fills up an answer
    only the first symbol does.
    """

    size: int
    examples: int
    fine: float
    """The share of right symbols in an answer, on average over the answers."""
    coarse: float
    """The share of answers that are right as a whole."""
    checkpoint: str = "best"
    slots: int | None = None
    """Of the memory, where it was given another number of them than in training."""


def evaluate_lengths(
    run: Run | str | Path,
    sizes: Iterable[int],
    *,
    checkpoint: str = "best",
    each: int = 32,
    slots: int | None = None,
) -> list[LengthScore]:
    """Scores on `each` test problems of every size, the same ones for every run."""
    prefer_one_thread()
    run = run if isinstance(run, Run) else Run.open(run)
    sizes = list(sizes)
    require_positive(sizes=len(sizes), each=each, **{"a size": min(sizes, default=1)})
    longest = run.task.sample(np.random.default_rng(0), max(sizes), 1)
    numbers = len(sizes) * each * sum(part.size for part in longest)
    require_memory(f"{each} problems of {len(sizes)} sizes", numbers * longest.inputs.itemsize)

    stream = TaskStream(run.task, "test", 1, batch_size=each)
    batches = [(size, part) for size in sizes for part in by_length(run.task, stream.of_size(size))]
    right = count_right(run.machine(checkpoint, slots=slots), [part for _, part in batches])
    shares: dict[int, list[np.ndarray]] = {size: [] for size in sizes}
    for (size, part), hits in zip(batches, right, strict=True):
        shares[size].append(hits / part.answers.shape[1])
    return [
        _score(size, np.concatenate(parts), checkpoint, slots) for size, parts in shares.items()
    ]


def _score(size: int, shares: np.ndarray, checkpoint: str, slots: int | None) -> LengthScore:
    fine, coarse = float(shares.mean()), float((shares == 1).mean())
    return LengthScore(size, len(shares), fine, coarse, checkpoint, slots)


def by_length(task: Task, batch: Batch) -> list[Batch]:
    """The problems apart by how many symbols of their answers count, and only those symbols."""
    answers = batch.answers[:, :-1]
    counts = np.full(len(answers), answers.shape[1])
    if task.blank is not None:
        blanks = answers == task.blank
        counts = np.where(blanks.any(axis=1), blanks.argmax(axis=1) + 1, counts)
    return [
        Batch(batch.inputs[counts == count], answers[counts == count, :count])
        for count in np.unique(counts)
    ]


# ---- kept with a run


def save_lengths(run: Run, scores: Iterable[LengthScore]) -> list[LengthScore]:
    """Add scores to those of a run, in place of earlier ones of the same size; returns all."""
    known = {(s.checkpoint, s.slots or 0, s.size): s for s in [*saved_lengths(run), *scores]}
    merged = [known[place] for place in sorted(known)]
    run.write_json(LENGTHS_FILE, [dataclasses.asdict(score) for score in merged])
    return merged


def saved_lengths(run: Run) -> list[LengthScore]:
    """What was saved, if anything."""
    file = run.path / LENGTHS_FILE
    if not file.exists():
        return []
    try:
        return parse_lengths(json.loads(file.read_bytes()))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None


def parse_lengths(rows: list[dict[str, Any]]) -> list[LengthScore]:
    scores = [LengthScore(**row) for row in rows]
    for score in scores:
        if not 0 <= score.coarse <= score.fine <= 1:
            raise ValueError(f"scores of size {score.size} cannot be {score.fine}, {score.coarse}")
    return scores
