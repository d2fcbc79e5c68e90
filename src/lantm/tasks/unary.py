"""The harder tasks on sequences: repeat copy and priority sort (paper, section 5).

Numbers in unary are written in copies of the start symbol `^`, which the paper writes as @.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lantm.tasks.base import Task


@dataclass(frozen=True)
class RepeatCopy(Task):
    """A sequence of 20 symbols N times over, N in unary before it; the size is N.

    >>> RepeatCopy(length=3).example(size=2)
    '^ ^ ^ 60 65 96 # 60 65 96 60 65 96 $'
    """

    name: ClassVar[str] = "repeat_copy"
    smallest: ClassVar[int] = 1
    largest: ClassVar[int] = 5
    length: int = 20

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        sequence = self.draw(rng, batch, self.length)
        unary = np.full((batch, size), self.vocabulary.start)
        return np.concatenate([unary, sequence], axis=1), np.tile(sequence, size)


@dataclass(frozen=True)
class PrioritySort(Task):
    """Symbols in the order of their priorities, which are 0 to k - 1 in unary, before each symbol.

    >>> PrioritySort().example(size=3)  # 60, 65, 96 have priorities 2, 0, 1
    '^ ^ ^ 60 65 ^ 96 # 65 96 60 $'
    """

    name: ClassVar[str] = "priority_sort"
    largest: ClassVar[int] = 10

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        values = self.draw(rng, batch, size)
        priorities = rng.permuted(np.tile(np.arange(size), (batch, 1)), axis=1)
        inputs = np.full((batch, size + size * (size - 1) // 2), self.vocabulary.start)
        places = np.cumsum(priorities + 1, axis=1) - 1
        np.put_along_axis(inputs, places, values, axis=1)
        return inputs, np.take_along_axis(values, np.argsort(priorities, axis=1), axis=1)


@dataclass(frozen=True)
class PrioritySortSymbols(Task):
    """The variant with distinct symbols for priorities, in the paper's figure of SLANTM.

    >>> PrioritySortSymbols().example(size=3)
    '^ 92 60 43 65 96 96 # 65 60 96 $'
    """

    name: ClassVar[str] = "priority_sort_symbols"
    largest: ClassVar[int] = 10

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if size > self.symbols:
            raise ValueError(f"size must be at most {self.symbols} for {self.name}, got {size}")
        values = self.draw(rng, batch, size)
        every = np.tile(np.arange(self.symbols), (batch, 1))
        priorities = rng.permuted(every, axis=1)[:, :size]
        inputs = np.stack([priorities, values], axis=2).reshape(batch, -1)
        return inputs, np.take_along_axis(values, np.argsort(priorities, axis=1), axis=1)
