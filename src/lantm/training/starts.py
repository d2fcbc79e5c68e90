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
"""How often a start is looked at, evenly; as often again, if it has learned the training sizes."""
LOOK_EXAMPLES = 160
HOPELESS, LATE = 0.45, 0.6
"""The fine accuracy at the training sizes below which a start is over, once it has had this share
of its batches. Of 74 that had learned by then or did later, two had less: they had broken down."""
LEARNED = 0.95
"""The fine accuracy with which a start has learned the training sizes."""
GENERAL = 0.9
"""The coarse accuracy at twice these with which it goes on at once."""
TRIES = 3
"""How many starts may learn the training sizes before the best of all goes on."""
OUTCOME_FILE = "outcome.json"
"""In the folder of a start that has ended."""


class Look(NamedTuple):
    """What a look at a start found; -1 where nobody looked, or numbers did not stay finite."""

    coarse: float = -1.0
    """Accuracies at the training sizes."""
    fine: float = -1.0
    far: float = -1.0
    """Coarse accuracy at twice the training sizes, once these are learned."""

    @property
    def is_hopeless(self) -> bool:
        return self.fine < HOPELESS

    @property
    def is_learned(self) -> bool:
        return self.fine >= LEARNED

    @property
    def is_general(self) -> bool:
        """Whether a start goes on without a look at others."""
        return self.is_learned and self.far >= GENERAL


class Start(NamedTuple):
    """One of several starts."""

    number: Int[Array, ""]
    scores: Float[Array, "3"]
    """`Look` when it was last looked at."""


def unseen(number: int) -> Start:
    """Before the first look at it."""
    return Start(jnp.array(number, jnp.int32), jnp.array(Look()))


def looks(config: TrainConfig) -> list[int]:
    """The batches after which a start is looked at, the later ones only if it has learned.

    >>> looks(TrainConfig(starts=4))
    [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000]
    """
    all_looks = (-(-config.start_batches * look // LOOKS) for look in range(1, 2 * LOOKS + 1))
    return [batch for batch in all_looks if batch <= config.batches]


def is_over(config: TrainConfig, batch: int, scores: Look) -> bool:
    """Whether a start that was looked at after that batch is given up."""
    if batch >= config.start_batches:
        return not scores.is_learned
    return batch >= LATE * config.start_batches and scores.is_hopeless


class Outcome(NamedTuple):
    """What came of a start."""

    batch: int
    """Its updates."""
    coarse: float
    """`Look` when it was last looked at."""
    fine: float
    far: float
    error: str | None = None
    """Where its numbers did not stay finite."""

    @property
    def scores(self) -> Look:
        return Look(self.coarse, self.fine, self.far)

    @property
    def is_failed(self) -> bool:
        return self.error is not None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}

    def describe(self) -> str:
        """In a few words.

        >>> Outcome(1500, 0.9, 0.95, 0.5).describe()
        '90.0% at the training sizes and 50.0% at twice these after 1500 batches'
        """
        if self.error is not None:
            return self.error
        far = f" and {self.far:.1%} at twice these" if self.scores.is_learned else ""
        return f"{self.coarse:.1%} at the training sizes{far} after {self.batch} batches"


NUMBER = float | int
KINDS = {"batch": int, "coarse": NUMBER, "fine": NUMBER, "far": NUMBER, "error": str | None}
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


def enough(outcomes: Mapping[int, Outcome]) -> int | None:
    """The number of the start with which the search ends, as far as is known: the first that is
    good at twice the training sizes, or the last of `TRIES` that have learned only these.

    >>> bad, learned = Outcome(2500, 0.1, 0.5, -1.0), Outcome(5000, 0.9, 0.99, 0.1)
    >>> enough({0: bad, 1: learned, 2: learned, 4: learned, 5: learned})
    4
    >>> enough({0: bad, 3: Outcome(1500, 0.9, 0.99, 0.95), 4: learned})
    3
    """
    scores = {number: outcomes[number].scores for number in sorted(outcomes)}
    general = [number for number, found in scores.items() if found.is_general]
    learned = [number for number, found in scores.items() if found.is_learned]
    return min([*general, *learned[TRIES - 1 :]], default=None)


def wanted(outcomes: Mapping[int, Outcome], starts: int) -> list[int]:
    """The numbers of the starts that are still to be trained: those of which it would be known,
    trained one after the other, that the search did not end before them, or not yet whether.

    >>> wanted({0: Outcome(2500, 0.1, 0.5, -1.0), 2: Outcome(1500, 0.9, 0.99, 0.95)}, 4)
    [1]
    """
    last = enough(outcomes)
    before = starts if last is None else last
    return [number for number in range(before) if number not in outcomes]


def tried(outcomes: Mapping[int, Outcome]) -> dict[int, Outcome]:
    """The starts, in order, up to the one with which the search ends; what comes later never
    counts.
    """
    last = enough(outcomes)
    return {n: outcomes[n] for n in sorted(outcomes) if last is None or n <= last}


def best_start(outcomes: Mapping[int, Outcome]) -> int:
    """The number of the best start, that at twice the training sizes counting first; the first one
    among equals.

    >>> bad, good = Outcome(5, 0.2, 0.7, -1.0), Outcome(5, 0.3, 0.6, -1.0)
    >>> best_start({0: bad, 1: good, 2: good})
    1
    """
    sound = {n: (o.far, o.coarse, o.fine, -n) for n, o in outcomes.items() if not o.is_failed}
    return max(sound, key=lambda number: sound[number])
