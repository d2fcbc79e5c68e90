"""Tasks of "Neural Networks and the Chomsky Hierarchy" (Deletang et al., ICLR 2023).

The size is the length of the input; training has sizes 1 to 40. Alphabets and problems are those
of the paper. An answer that is shorter than others of its size is filled up with `blank`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lantm.tasks.arithmetic import add
from lantm.tasks.base import Task
from lantm.tasks.permutation import Reverse


@dataclass(frozen=True)
class ChomskyTask(Task):
    """A task of that paper."""

    symbols: ClassVar[int] = 2
    smallest: ClassVar[int] = 1
    largest: ClassVar[int] = 40


# ---- regular languages


@dataclass(frozen=True)
class EvenPairs(ChomskyTask):
    """1 if there are as many 01 as 10 in a row of bits, else 0.

    >>> EvenPairs().example(size=5)
    '^ 0 1 1 1 0 # 1 $'
    """

    name: ClassVar[str] = "chomsky_even_pairs"

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, (inputs[:, :1] == inputs[:, -1:]).astype(int)


@dataclass(frozen=True)
class Parity(ChomskyTask):
    """1 if the number of ones is odd, else 0.

    >>> Parity().example(size=5)
    '^ 0 1 1 1 0 # 1 $'
    """

    name: ClassVar[str] = "chomsky_parity"

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, inputs.sum(axis=1, keepdims=True) % 2


@dataclass(frozen=True)
class Cycle(ChomskyTask):
    """Where a walk on a cycle of five places ends, from place 0: 0 is to stay, 1 a step on, 2 back.

    >>> Cycle().example(size=5)
    '^ 1 1 2 2 0 # 0 $'
    """

    name: ClassVar[str] = "chomsky_cycle"
    symbols: ClassVar[int] = 5

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        moves = rng.integers(3, size=(batch, size))
        steps = np.array([0, 1, -1])[moves]
        return moves, steps.sum(axis=1, keepdims=True) % 5


# ---- with a stack


@dataclass(frozen=True)
class ReverseString(ChomskyTask, Reverse):
    """Bits backwards.

    >>> ReverseString().example(size=5)
    '^ 0 1 1 1 0 # 0 1 1 1 0 $'
    """

    name: ClassVar[str] = "chomsky_reverse"


@dataclass(frozen=True)
class StackManipulation(ChomskyTask):
    """A stack of bits from the bottom to the top, then what to do with it: 2 pops, 3 pushes 0, 4
    pushes 1. The answer is what is then on the stack, from the top down.

    >>> StackManipulation().example(size=6)
    '^ 1 0 0 2 2 4 # 1 1 2 2 2 2 $'
    """

    name: ClassVar[str] = "chomsky_stack"
    symbols: ClassVar[int] = 5
    blank: ClassVar[int] = 2

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        given = rng.integers(1, max(2, size), size=(batch, 1))
        is_given = np.arange(size)[None, :] < given
        actions = rng.integers(2, 5, size=(batch, size))
        inputs = np.where(is_given, rng.integers(2, size=(batch, size)), actions)
        # The symbols that are pushed, each at its height; what is popped is overwritten.
        values, heights = inputs % 3, np.zeros(batch, int)
        stack = np.full((batch, size + 1), self.blank)
        for value, action in zip(values.T, inputs.T, strict=True):
            pops = action == 2
            heights = np.where(pops, np.maximum(heights - 1, 0), heights)
            stack[np.arange(batch), heights] = np.where(pops, self.blank, value)
            heights = np.where(pops, heights, heights + 1)
        return inputs, flip_filled(stack[:, :size], heights, self.blank)


def flip_filled(rows: np.ndarray, counts: np.ndarray, blank: int) -> np.ndarray:
    """The first numbers of each row backwards, then blanks; [batch, length] and [batch]."""
    places = counts[:, None] - 1 - np.arange(rows.shape[1])
    flipped = np.take_along_axis(rows, np.maximum(places, 0), axis=1)
    return np.where(places >= 0, flipped, blank)


# ---- with more than a stack


@dataclass(frozen=True)
class DuplicateString(ChomskyTask):
    """Bits twice.

    >>> DuplicateString().example(size=3)
    '^ 0 1 1 # 0 1 1 0 1 1 $'
    """

    name: ClassVar[str] = "chomsky_duplicate"

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, np.tile(inputs, 2)


@dataclass(frozen=True)
class MissingDuplicate(ChomskyTask):
    """The bit that is missing (2) in a row of bits that comes twice; 3 fills up odd lengths.

    >>> MissingDuplicate().example(size=7)
    '^ 0 1 1 0 1 2 3 # 1 $'
    """

    name: ClassVar[str] = "chomsky_missing_duplicate"
    symbols: ClassVar[int] = 4
    smallest: ClassVar[int] = 2

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        half = size // 2
        if not half:
            raise ValueError(f"size must be at least 2 for {self.name}, got {size}")
        twice = np.tile(rng.integers(2, size=(batch, half)), 2)
        place = rng.integers(2 * half, size=(batch, 1))
        answers = np.take_along_axis(twice, place, axis=1)
        np.put_along_axis(twice, place, 2, axis=1)
        odd = np.full((batch, size % 2), 3)
        return np.concatenate([twice, odd], axis=1), answers


@dataclass(frozen=True)
class OddsFirst(ChomskyTask):
    """The bits at odd places (first, third, ...), then those at even places.

    >>> OddsFirst().example(size=5)
    '^ 0 1 1 1 0 # 0 1 0 1 1 $'
    """

    name: ClassVar[str] = "chomsky_odds_first"

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, np.concatenate([inputs[:, ::2], inputs[:, 1::2]], axis=1)


@dataclass(frozen=True)
class BinaryAddition(ChomskyTask):
    """The sum of two binary numbers with + (2) between them, least significant bit first, without
    zeros at its end. Of sizes 1 and 2 there is one number only.

    >>> BinaryAddition().example(size=6, seed=5)  # 3 + 2 = 5
    '^ 1 1 0 2 0 1 # 1 0 1 2 2 2 $'
    """

    name: ClassVar[str] = "chomsky_addition"
    symbols: ClassVar[int] = 3
    blank: ClassVar[int] = 2

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        bits = rng.integers(2, size=(batch, size))
        if size < 3:
            return bits, cut_zeros(bits, self.blank)
        plus = rng.integers(1, size - 1, size=(batch, 1))
        places = np.arange(size)[None, :]
        inputs = np.where(places == plus, 2, bits)
        first = np.where(places < plus, bits, 0)
        second = np.where(places < size - 1 - plus, shifted(bits, plus + 1), 0)
        return inputs, cut_zeros(add(first, second, base=2)[:, :size], self.blank)


def shifted(rows: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Each row from another place on; what comes after its end is of no account."""
    places = np.arange(rows.shape[1])[None, :] + by
    return np.take_along_axis(rows, np.minimum(places, rows.shape[1] - 1), axis=1)


def cut_zeros(bits: np.ndarray, blank: int) -> np.ndarray:
    """Blanks instead of the zeros after the last one of each row; a zero alone stays."""
    later = np.cumsum(bits[:, ::-1], axis=1)[:, ::-1] > 0
    later[:, 0] = True
    return np.where(later, bits, blank)


@dataclass(frozen=True)
class BucketSort(ChomskyTask):
    """Numbers from 0 to 4 in order.

    >>> BucketSort().example(size=5)
    '^ 2 2 3 4 0 # 0 2 2 3 4 $'
    """

    name: ClassVar[str] = "chomsky_bucket_sort"
    symbols: ClassVar[int] = 5

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, np.sort(inputs, axis=1)
