"""Tasks on decimal numbers, least significant digit first: double, interleaved add."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lantm.tasks.base import Task


@dataclass(frozen=True)
class Double(Task):
    """Twice a number of k digits, in k + 1 digits.

    >>> Double().example(size=3)  # 2 * 754 = 1508
    '^ 4 5 7 # 8 0 5 1 $'
    """

    name: ClassVar[str] = "double"
    symbols: ClassVar[int] = 10
    largest: ClassVar[int] = 40

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        number = self.draw(rng, batch, size)
        return number, add(number, number)


@dataclass(frozen=True)
class InterleavedAdd(Task):
    """The sum of two numbers of k digits, given digit by digit in turn, in k + 1 digits.

    >>> InterleavedAdd().example(size=2)  # 74 + 95 = 169
    '^ 4 5 7 9 # 9 6 1 $'
    """

    name: ClassVar[str] = "interleaved_add"
    symbols: ClassVar[int] = 10
    largest: ClassVar[int] = 16

    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        digits = self.draw(rng, batch, 2 * size)
        return digits, add(digits[:, ::2], digits[:, 1::2])


def add(x: np.ndarray, y: np.ndarray, base: int = 10) -> np.ndarray:
    """The sum of two numbers of k digits in k + 1 digits, for a batch: [batch, k] each."""
    sums = x + y
    digits = np.zeros((len(x), x.shape[1] + 1), sums.dtype)
    carry = np.zeros(len(x), sums.dtype)
    for place in range(x.shape[1]):
        carry, digits[:, place] = np.divmod(sums[:, place] + carry, base)
    digits[:, -1] = carry
    return digits
