"""Tasks that rearrange their input: copy, reverse, bigram flip, odd first (paper, section 5)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lantm.tasks.base import Task


@dataclass(frozen=True)
class Copy(Task):
    """The input again.

    >>> Copy().example(size=4)
    '^ 60 65 96 121 # 60 65 96 121 $'
    """

    name: ClassVar[str] = "copy"
    largest: ClassVar[int] = 64

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, inputs


@dataclass(frozen=True)
class Reverse(Task):
    """The input backwards.

    >>> Reverse().example(size=4)
    '^ 60 65 96 121 # 121 96 65 60 $'
    """

    name: ClassVar[str] = "reverse"
    largest: ClassVar[int] = 64

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, size)
        return inputs, inputs[:, ::-1]


@dataclass(frozen=True)
class BigramFlip(Task):
    """Every pair of symbols swapped; the size counts pairs.

    >>> BigramFlip().example(size=2)
    '^ 60 65 96 121 # 65 60 121 96 $'
    """

    name: ClassVar[str] = "bigram_flip"
    smallest: ClassVar[int] = 1
    largest: ClassVar[int] = 16

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, 2 * size)
        return inputs, inputs.reshape(batch, size, 2)[:, :, ::-1].reshape(batch, -1)


@dataclass(frozen=True)
class OddFirst(Task):
    """The symbols at odd places (first, third, ...), then those at even places.

    >>> OddFirst().example(size=2)
    '^ 60 65 96 121 # 60 96 65 121 $'
    """

    name: ClassVar[str] = "odd_first"
    smallest: ClassVar[int] = 1
    largest: ClassVar[int] = 16

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.draw(rng, batch, 2 * size)
        return inputs, np.concatenate([inputs[:, ::2], inputs[:, 1::2]], axis=1)
