"""Several starts of a run: when each is looked at, and which of them goes on."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lantm.training.config import TrainConfig

LOOKS = (3, 4, 5)
"""Fifths of a start's batches after which it is looked at."""
LOOK_EXAMPLES = 160
ACCEPTED = 0.8
"""The coarse accuracy at the training sizes with which a start goes on at once."""
FAILED = (-1.0, -1.0)
"""The scores of a start whose numbers did not stay finite, or that nobody looked at."""


class Start(NamedTuple):
    """One of several starts."""

    number: Int[Array, ""]
    scores: Float[Array, "2"]
    """Coarse and fine accuracy at the training sizes when it was last looked at."""


def unseen(number: int) -> Start:
    """Before the first look at it."""
    return Start(jnp.array(number, jnp.int32), jnp.array(FAILED))


def looks(config: TrainConfig) -> list[int]:
    """The batches after which a start is looked at.

    >>> looks(TrainConfig(starts=4))
    [1500, 2000, 2500]
    """
    return [-(-config.start_batches * fifths // 5) for fifths in LOOKS]


def is_accepted(scores: tuple[float, ...]) -> bool:
    """Whether a start with these scores, coarse and fine, goes on without a look at others."""
    return scores[0] >= ACCEPTED


def best_start(scores: Mapping[int, tuple[float, ...]]) -> int:
    """The number of the best start; the first one among equals.

    >>> best_start({0: (0.2, 0.7), 1: (0.3, 0.6), 2: (0.3, 0.6)})
    1
    """
    return max(scores, key=lambda number: (*scores[number], -number))
