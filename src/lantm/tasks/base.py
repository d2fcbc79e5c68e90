"""What a task is: problems of any size, drawn from one explicit generator."""

import abc
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from lantm.errors import require_shape
from lantm.tasks.vocabulary import Vocabulary


class Batch(NamedTuple):
    """Problems of one size, as a machine sees them."""

    inputs: np.ndarray
    """[batch, time]: `^`, then the input."""
    answers: np.ndarray
    """[batch, steps]: the answer, then `$`."""


@dataclass(frozen=True)
class Task(abc.ABC):
    """An algorithmic task. Subclasses say what one problem of a given size is."""

    name: ClassVar[str]
    symbols: ClassVar[int] = 128
    """Symbols a problem is written in, marks aside: |V| in the paper's task table."""
    smallest: ClassVar[int] = 2
    largest: ClassVar[int]
    """The sizes of training."""
    blank: ClassVar[int | None] = None
    """The symbol that fills up answers shorter than others of their size, if there are such."""

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.symbols)

    @abc.abstractmethod
    def problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and answers without their marks, [batch, ...] each."""

    def sizes(self, multiple: int = 1) -> range:
        """The sizes of training, or out of sample: above (m - 1), up to m times the largest."""
        if multiple == 1:
            return range(self.smallest, self.largest + 1)
        return range((multiple - 1) * self.largest + 1, multiple * self.largest + 1)

    def sample(self, rng: np.random.Generator, size: int, batch: int) -> Batch:
        """A batch of problems of one size, marks included."""
        inputs, answers = self._checked_problems(rng, size, batch)
        start = np.full((batch, 1), self.vocabulary.start)
        end = np.full((batch, 1), self.vocabulary.end)
        return Batch(
            np.concatenate([start, inputs], axis=1).astype(np.int32),
            np.concatenate([answers, end], axis=1).astype(np.int32),
        )

    def _checked_problems(
        self, rng: np.random.Generator, size: int, batch: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `problems` returns, if it is what it should be."""
        method = f"{type(self).__name__}.problems"
        made = self.problems(rng, size, batch)
        if not isinstance(made, tuple) or len(made) != 2:
            raise ValueError(f"{method} must return inputs and answers, got {made!r:.80}")
        for name, part in zip(("inputs", "answers"), made, strict=True):
            require_shape(f"{name} of {method}", np.shape(part), batch, "length")
            if not np.issubdtype(np.asarray(part).dtype, np.integer):
                kind = np.asarray(part).dtype
                raise ValueError(f"{name} of {method} must be whole numbers, got {kind}")
        return made

    def example(self, size: int, seed: int = 1) -> str:
        """One problem with its answer, as text."""
        inputs, answers = self.sample(np.random.default_rng(seed), size, 1)
        tokens = [*inputs[0].tolist(), self.vocabulary.separator, *answers[0].tolist()]
        return self.vocabulary.show(tokens)

    def draw(self, rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
        """Random symbols, [batch, length]."""
        return rng.integers(self.symbols, size=(batch, length))
