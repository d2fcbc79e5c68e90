"""Several starts of a run: when each is looked at, and which of them goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lantm.errors import require_fields
from lantm.training.checkpoints import write_atomically
from lantm.training.config import TrainConfig

LOOKS = 5
"""How often a start is looked at, evenly."""
LOOK_EXAMPLES = 160
ACCEPTED = 0.95
"""The fine accuracy at the training sizes with which a start goes on at once."""
OUTCOME_FILE = "outcome.json"
"""In the folder of a start that has ended."""
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
    [500, 1000, 1500, 2000, 2500]
    """
    return [-(-config.start_batches * look // LOOKS) for look in range(1, LOOKS + 1)]


def is_accepted(scores: tuple[float, ...]) -> bool:
    """Whether a start with these scores, coarse and fine, goes on without a look at others."""
    return scores[1] >= ACCEPTED


class Outcome(NamedTuple):
    """What came of a start."""

    batch: int
    """Its updates."""
    coarse: float
    """Accuracies at the training sizes when it was last looked at."""
    fine: float
    error: str | None = None
    """Where its numbers did not stay finite."""

    @property
    def is_accepted(self) -> bool:
        """Whether it goes on without a look at later ones."""
        return not self.is_failed and is_accepted((self.coarse, self.fine))

    @property
    def is_failed(self) -> bool:
        return self.error is not None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}

    def describe(self) -> str:
        """In a few words.

        >>> Outcome(1500, 0.9, 0.95).describe()
        '90.0% at the training sizes after 1500 batches'
        """
        if self.error is not None:
            return self.error
        return f"{self.coarse:.1%} at the training sizes after {self.batch} batches"


KINDS = {"batch": int, "coarse": float | int, "fine": float | int, "error": str | None}
"""The types of what a file with an outcome says."""


def write_outcome(path: Path, outcome: Outcome) -> None:
    write_atomically(path, (json.dumps(outcome._asdict()) + "\n").encode())


def read_outcome(path: Path) -> Outcome | None:
    """What came of a start, once something has."""
    try:
        found = json.loads(path.read_bytes())
        require_fields("an outcome", found, KINDS)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return Outcome(**{name: found[name] for name in KINDS})


# ---- which of them counts, in whatever order they end


def wanted(outcomes: Mapping[int, Outcome], starts: int) -> list[int]:
    """The numbers of the starts that are still to be trained: those of which it would be known,
    trained one after the other, that none before them was accepted, or not yet whether.

    >>> wanted({0: Outcome(2500, 0.1, 0.5), 2: Outcome(1500, 0.9, 0.99)}, 4)
    [1]
    """
    accepted = [number for number, outcome in outcomes.items() if outcome.is_accepted]
    return [number for number in range(min(accepted, default=starts)) if number not in outcomes]


def tried(outcomes: Mapping[int, Outcome]) -> dict[int, Outcome]:
    """The starts, in order, up to the first that was accepted; what comes later never counts."""
    first: dict[int, Outcome] = {}
    for number in sorted(outcomes):
        first[number] = outcomes[number]
        if outcomes[number].is_accepted:
            break
    return first


def best_start(outcomes: Mapping[int, Outcome]) -> int:
    """The number of the best start; the first one among equals.

    >>> best_start({0: Outcome(5, 0.2, 0.7), 1: Outcome(5, 0.3, 0.6), 2: Outcome(5, 0.3, 0.6)})
    1
    """
    sound = {n: (o.coarse, o.fine, -n) for n, o in outcomes.items() if not o.is_failed}
    return max(sound, key=lambda number: sound[number])
