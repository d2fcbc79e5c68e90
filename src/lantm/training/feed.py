"""What a run learns from, batch by batch: the stream, and how problems grow."""

import dataclasses
import math

import numpy as np

from lantm.tasks import TASKS, Batch
from lantm.tasks.streams import (
    GrowingStream,
    Padded,
    SmallestFirst,
    Stream,
    bucket,
    buckets,
    pad,
    training_stream,
)
from lantm.tasks.textfile import FileStream
from lantm.training.config import TrainConfig


class Feed:
    """The batches of a run.

    A batch is made of equal parts of as many batches of the stream, each of one size. While
    problems grow, an answer counts up to a share of the longest one, and some of the parts are of
    the smallest sizes: of the same share of all samples.
    """

    def __init__(self, config: TrainConfig):
        self.config = config
        self.stream = open_stream(config)
        self.parts = config.sizes_per_batch
        grows = config.growth_by == "performance"
        self.smallest_first = SmallestFirst(self.stream, config.seed) if grows else None
        lengths = 2 if self.parts == 1 else 1  # of several sizes the longest is mostly a long one
        self.edges = [buckets(length, lengths) for length in self.stream.longest()]

    def batch(self, index: int, share: float = 1.0, start: int = 0) -> Padded:
        """That of a number, for a start of the run that has come so far."""
        batches = [self.part(number, index, share, start) for number in range(self.parts)]
        lengths = (max(part.shape[1] for part in parts) for parts in zip(*batches, strict=True))
        padded = pad(batches, *map(bucket, lengths, self.edges))
        if share >= 1:
            return padded
        most = math.ceil(share * self.edges[1][-1])
        return dataclasses.replace(
            padded, answer_lengths=np.minimum(padded.answer_lengths, most, dtype=np.int32)
        )

    def part(self, number: int, index: int, share: float, start: int) -> Batch:
        """All the rows that one size has in a batch."""
        place = index + number * len(self.stream) // self.parts
        if self.smallest_first is not None and number < self.smallest_parts(start):
            draw = index * self.parts + number
            place = place if share >= 1 else self.smallest_first.position(draw, share)
        inputs, answers = self.stream[place]
        rows = slice(*(len(inputs) * edge // self.parts for edge in (number, number + 1)))
        return Batch(inputs[rows], answers[rows])

    def smallest_parts(self, start: int) -> int:
        """How many parts are of the smallest sizes: none where only answers grow, else all but
        one, which is against short cuts that small sizes allow.
        """
        return 0 if self.config.grows_answers_only(start) else max(1, self.parts - 1)


def open_stream(config: TrainConfig) -> Stream:
    """The data of a run."""
    task = TASKS[config.task]
    stream: Stream
    if config.data is not None:
        stream = FileStream(config.data, task)
    else:
        stream = training_stream(task, config.regime, config.seed)
    updates = config.growth_batches
    return GrowingStream(stream, updates, config.seed) if updates else stream
