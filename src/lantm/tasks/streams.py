"""Sample streams: batches by number, so that any position of any stream can be had at any time."""

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from lantm.errors import require_one_of, require_positive
from lantm.processes import require_memory
from lantm.tasks import Batch, Task

BATCH_SIZE = 32
REGIMES: dict[str, int] = {"small": 500, "large": 10_000}
"""Different batches of training: 16K samples, seen 20 times, or 320K, seen once."""
PURPOSES = ("train", "validation", "test")
TEST_EXAMPLES = 3200
FAR = (4, 10)
"""Multiples of the training size to score beside one and two."""
CHUNK = 160
"""Problems evaluated at once."""
WORK = 1e9
"""Of an evaluation, as problems times the square of their time steps: some six seconds."""


@runtime_checkable
class Stream(Protocol):
    """Batches, each of one size. Past the end it begins again."""

    def __getitem__(self, index: int) -> Batch: ...

    def __len__(self) -> int: ...

    def size(self, index: int) -> int:
        """How large the problems of a batch are, without making them."""
        ...

    def longest(self) -> tuple[int, int]:
        """The most time steps that an input has, and an answer, in any batch."""
        ...


@dataclass(frozen=True)
class TaskStream:
    """Problems of a task, the size of each batch drawn evenly from those of a multiple.

    Batch i depends on the seed, the purpose and i alone. Validation and test never share a sample:
    a checksum of the problem says for which of the two it is.
    """

    task: Task
    purpose: str
    batches: int
    """Different batches."""
    seed: int = 1
    multiple: int = 1
    batch_size: int = BATCH_SIZE

    def __post_init__(self) -> None:
        require_one_of("purpose", self.purpose, PURPOSES)
        sizes = {"batches": self.batches, "multiple": self.multiple, "batch_size": self.batch_size}
        require_positive(**sizes)

    def __len__(self) -> int:
        return self.batches

    def size(self, index: int) -> int:
        return self._draw_size(index)[1]

    def longest(self) -> tuple[int, int]:
        return longest(one_of_each_size(self.task, self.multiple))

    def __getitem__(self, index: int) -> Batch:
        return self._sample(*self._draw_size(index))

    def of_size(self, size: int) -> Batch:
        """A batch of problems of that size, whatever the multiple."""
        purpose = PURPOSES.index(self.purpose)
        return self._sample(np.random.default_rng((self.seed, purpose, size)), size)

    def _draw_size(self, index: int) -> tuple[np.random.Generator, int]:
        """The generator of a batch, and the first thing it draws."""
        purpose = PURPOSES.index(self.purpose)
        rng = np.random.default_rng((self.seed, purpose, self.multiple, index % self.batches))
        return rng, int(rng.choice(self.task.sizes(self.multiple)))

    def _sample(self, rng: np.random.Generator, size: int) -> Batch:
        if self.purpose == "train":
            return self.task.sample(rng, size, self.batch_size)
        return self._sample_own_half(rng, size, half=PURPOSES.index(self.purpose) % 2)

    def _sample_own_half(self, rng: np.random.Generator, size: int, half: int) -> Batch:
        found: list[Batch] = []
        for _ in range(100):
            batch = self.task.sample(rng, size, self.batch_size)
            own = [zlib.crc32(row.tobytes()) % 2 == half for row in batch.inputs]
            found.append(Batch(batch.inputs[own], batch.answers[own]))
            if sum(len(part.inputs) for part in found) >= self.batch_size:
                joined = (
                    np.concatenate(parts)[: self.batch_size] for parts in zip(*found, strict=True)
                )
                return Batch(*joined)
        raise ValueError(
            f"size {size} of {self.task.name} has too few problems for a {self.purpose} set"
        )


class SmallestFirst:
    """Draws positions of a stream from a share of it, that of the smallest sizes.

    What is drawn for a batch depends on the seed, its number and the share alone.
    """

    def __init__(self, stream: Stream, seed: int):
        self.by_size = np.argsort([stream.size(i) for i in range(len(stream))], kind="stable")
        self.seed = seed

    def position(self, index: int, share: float) -> int:
        """For the batch of that number; with a share of 1 the number itself."""
        if share >= 1:
            return index
        among = math.ceil(share * len(self.by_size))
        return int(self.by_size[np.random.default_rng((self.seed, index)).integers(among)])


class GrowingStream:
    """The batches of a stream, those of small sizes first.

    For a number of updates each batch is drawn from the smallest ones: a tenth at first, evenly
    more and more of them, all in the end. From then on it is the stream itself.
    """

    def __init__(self, stream: Stream, updates: int, seed: int):
        self.stream, self.updates = stream, updates
        self.smallest_first = SmallestFirst(stream, seed)

    def __len__(self) -> int:
        return len(self.stream)

    def size(self, index: int) -> int:
        return self.stream.size(self._position(index))

    def longest(self) -> tuple[int, int]:
        return self.stream.longest()

    def __getitem__(self, index: int) -> Batch:
        return self.stream[self._position(index)]

    def _position(self, index: int) -> int:
        share = 0.1 + 0.9 * index / self.updates if index < self.updates else 1.0
        return self.smallest_first.position(index, share)


def one_of_each_size(task: Task, multiple: int = 1) -> list[Batch]:
    """A problem of every size; the largest one need not have the longest answer."""
    return [task.sample(np.random.default_rng(0), size, 1) for size in task.sizes(multiple)]


def longest(batches: Iterable[Batch]) -> tuple[int, int]:
    """The most time steps of an input, and of an answer."""
    inputs, answers = zip(*((b.inputs.shape[1], b.answers.shape[1]) for b in batches), strict=True)
    return max(inputs), max(answers)


def training_stream(task: Task, regime: str, seed: int) -> TaskStream:
    """The stream of a training regime."""
    require_one_of("regime", regime, REGIMES)
    return TaskStream(task, "train", REGIMES[regime], seed)


def evaluation_batches(task: Task, purpose: str, multiple: int, examples: int) -> list[Batch]:
    """A validation or test set at a multiple of the training size, the same for every run."""
    require_positive(examples=examples, multiple=multiple)
    require_room(task, multiple, examples)
    stream = TaskStream(task, purpose, -(-examples // BATCH_SIZE), multiple=multiple)
    *batches, last = (stream[i] for i in range(len(stream)))
    keep = examples - BATCH_SIZE * len(batches)
    return [*batches, Batch(last.inputs[:keep], last.answers[:keep])]


def far_multiples(task: Task) -> list[int]:
    """Those of `FAR` for which a task has problems."""
    found = []
    for multiple in FAR:
        try:
            largest_problem(task, multiple)
        except Exception:
            break
        found.append(multiple)
    return found


def usual_examples(task: Task, multiple: int, most: int = TEST_EXAMPLES) -> int:
    """How many problems of a multiple to score. Beyond twice the training size fewer, the longer
    they are: every step looks at all memories, so that time goes with the square of the steps.

    >>> from lantm.tasks import TASKS
    >>> [usual_examples(TASKS[name], 10) for name in ("copy", "double", "priority_sort")]
    [640, 1600, 160]
    """
    if multiple <= 2:
        return most
    require_room(task, multiple, most)
    steps = sum(part.shape[1] for part in largest_problem(task, multiple))
    chunks = max(1, round(WORK / steps**2 / CHUNK))
    return min(most, chunks * CHUNK)


def largest_problem(task: Task, multiple: int) -> Batch:
    return task.sample(np.random.default_rng(0), task.sizes(multiple)[-1], 1)


def require_room(task: Task, multiple: int, examples: int) -> None:
    """So many problems fit into memory, each at least `multiple` times as long as in training."""
    largest = largest_problem(task, 1)
    numbers = multiple * sum(part.size for part in largest)
    require_memory(f"{examples} problems", examples * numbers * largest.inputs.itemsize)


@dataclass(frozen=True)
class Padded:
    """Problems of many sizes in one rectangle, with the lengths that count."""

    inputs: np.ndarray
    input_lengths: np.ndarray
    answers: np.ndarray
    answer_lengths: np.ndarray


def pad(batches: Sequence[Batch], input_length: int, answer_length: int) -> Padded:
    """The problems of all batches, filled up with zeros to the given lengths."""

    def fill(arrays: list[np.ndarray], length: int) -> tuple[np.ndarray, np.ndarray]:
        rows = [np.pad(array, ((0, 0), (0, length - array.shape[1]))) for array in arrays]
        lengths = [np.full(len(array), array.shape[1], np.int32) for array in arrays]
        return np.concatenate(rows), np.concatenate(lengths)

    inputs, input_lengths = fill([batch.inputs for batch in batches], input_length)
    answers, answer_lengths = fill([batch.answers for batch in batches], answer_length)
    return Padded(inputs, input_lengths, answers, answer_lengths)


def buckets(longest: int, count: int = 4) -> list[int]:
    """Lengths to pad to, evenly spaced: few enough to compile a program for each."""
    return sorted({-(-longest * part // count) for part in range(1, count + 1)})


def bucket(length: int, edges: Sequence[int]) -> int:
    """The least of the edges that has room."""
    if length > edges[-1]:
        raise ValueError(
            f"a problem has {length} time steps, {edges[-1]} is the most expected: "
            "all problems of one size must be equally long"
        )
    return next(edge for edge in edges if edge >= length)
