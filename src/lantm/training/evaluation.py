"""Fine and coarse accuracy of a machine (paper, section 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from lantm.errors import require_positive
from lantm.machines.seq2seq import SequenceModel, counted
from lantm.tasks import Batch
from lantm.tasks.streams import CHUNK, Padded, bucket, buckets, longest, pad

SHORT = 256
"""Steps of the longest problem below which all share a program: to compile another one would take
longer than the steps that it leaves out."""


@dataclass(frozen=True)
class Evaluation:
    """How a machine did on a set of problems; accuracies are fractions."""

    examples: int
    fine: float
    """Of the symbols of all answers, end symbols included."""
    coarse: float
    """Of the answers, whole and with their end symbol."""
    by_length: dict[int, "Evaluation"] | None = None
    """The same for the answers of each length, end symbols not counted."""

    def to_dict(self) -> dict[str, Any]:
        row = {"examples": self.examples, "fine": self.fine, "coarse": self.coarse}
        if self.by_length is None:
            return row
        return row | {"by_length": {n: part.to_dict() for n, part in self.by_length.items()}}


def percent(share: Array | float) -> str:
    """As the paper has it: 100 only where nothing is wrong."""
    share = float(share)
    return "100" if share == 1 else f"{min(100 * share, 99.99):.2f}"


def evaluate_batches(machine: SequenceModel, batches: Sequence[Batch]) -> Evaluation:
    """Greedy answers to all problems, scored."""
    lengths = [np.full(len(batch.answers), batch.answers.shape[1]) for batch in batches]
    right = count_right(machine, batches)
    return _summarise(np.concatenate(lengths), np.concatenate(right))


def count_right(machine: SequenceModel, batches: Sequence[Batch]) -> list[np.ndarray]:
    """For each batch, how many symbols of every answer are right."""
    require_positive(batches=len(batches))
    parameters, rest = eqx.partition(machine, eqx.is_array)
    edges = [buckets(length, 1 if length <= SHORT else 2) for length in longest(batches)]
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, batch in enumerate(batches):
        shape = tuple(bucket(part.shape[1], edge) for part, edge in zip(batch, edges, strict=True))
        groups.setdefault(shape, []).append(number)
    right: dict[int, np.ndarray] = {}
    for shape, numbers in sorted(groups.items()):
        group = [batches[number] for number in numbers]
        hits = [
            np.asarray(_hits(rest, parameters, *map(jnp.asarray, _fill(chunk))))
            for chunk in _chunks(pad(group, *shape))
        ]
        ends = np.cumsum([len(batch.inputs) for batch in group])
        parts = np.split(np.concatenate(hits), ends)  # the last one is of what was filled in
        right |= dict(zip(numbers, parts[:-1], strict=True))
    return [right[number] for number in range(len(batches))]


def _chunks(whole: Padded) -> list[Padded]:
    """Problems of one shape, a few at a time."""
    rows = [slice(start, start + CHUNK) for start in range(0, len(whole.inputs), CHUNK)]
    return [
        Padded(
            whole.inputs[part],
            whole.input_lengths[part],
            whole.answers[part],
            whole.answer_lengths[part],
        )
        for part in rows
    ]


def _fill(chunk: Padded) -> tuple[np.ndarray, ...]:
    """The last chunk of a group made as large as the others, so that no new shape is compiled."""
    missing = CHUNK - len(chunk.inputs)
    parts = chunk.inputs, chunk.input_lengths, chunk.answers, chunk.answer_lengths
    return tuple(np.concatenate([part, np.repeat(part[:1], missing, axis=0)]) for part in parts)


@eqx.filter_jit
def _hits(
    rest: SequenceModel,
    parameters: SequenceModel,
    inputs: Int[Array, "batch time"],
    input_lengths: Int[Array, " batch"],
    answers: Int[Array, "batch steps"],
    answer_lengths: Int[Array, " batch"],
) -> Int[Array, " batch"]:
    """Symbols predicted right, for each problem."""
    machine: SequenceModel = eqx.combine(parameters, rest)
    logits = machine(inputs, answers.shape[1], input_lengths, answer_lengths)
    right = (jnp.argmax(logits, axis=-1) == answers) & counted(answers, answer_lengths)
    return jnp.sum(right, axis=1)


def _summarise(lengths: np.ndarray, right: np.ndarray) -> Evaluation:
    def summary(chosen: np.ndarray) -> tuple[int, float, float]:
        symbols, hits = lengths[chosen], right[chosen]
        return len(hits), float(hits.sum() / symbols.sum()), float((hits == symbols).mean())

    parts = {int(n) - 1: Evaluation(*summary(lengths == n)) for n in np.unique(lengths)}
    return Evaluation(*summary(np.full(len(lengths), True)), parts)
