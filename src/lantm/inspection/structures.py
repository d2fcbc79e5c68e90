"""The data structure that the places of a machine's memories look like.

Each question is about the order and the distances of places only, so that it can be asked in every
space.
"""

import numpy as np

USUAL = 0.8
"""What at least this share of the steps does is what a head usually does."""
FEWEST = 5
"""Places below which a row or a loop may be chance."""


def regularity(vectors: np.ndarray) -> float:
    """The share of the steps that are the usual one: their median, to a third of its length."""
    if len(vectors) == 0:
        return 1.0
    median = np.median(vectors, axis=0)
    off = np.linalg.norm(vectors - median, axis=1)
    return float(np.mean(off <= np.linalg.norm(median) / 3))


def alternates(vectors: np.ndarray) -> bool:
    """Whether every second step is the same, and the others too: a zigzag of pairs."""
    halves = vectors[0::2], vectors[1::2]
    return len(vectors) >= FEWEST and min(map(regularity, halves)) >= USUAL


def in_a_row(distances: np.ndarray) -> bool:
    """Whether each place is followed by the nearest of those that are left."""
    if len(distances) < FEWEST:
        return False
    nearest = [np.argmin(row[i + 1 :]) == 0 for i, row in enumerate(distances[:-1])]
    return float(np.mean(nearest)) >= USUAL


def closes(distances: np.ndarray) -> bool:
    """Whether the way through the places ends where it began and goes around something.

    The last place is no further from the first than neighbours are at most, and the area inside is
    at least 0.3 of a circle's with the same outline (where `flat` puts them).
    """
    if len(distances) < FEWEST:
        return False
    lengths = np.append(np.diagonal(distances, 1), distances[-1, 0])
    if lengths[-1] > 1.01 * lengths[:-1].max():
        return False
    x, y = flat(distances).T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    return bool(4 * np.pi * area >= 0.3 * lengths.sum() ** 2)


def flat(distances: np.ndarray) -> np.ndarray:
    """[places, 2]: in the plane, about as far from each other as they are (classical scaling)."""
    centring = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-centring @ distances**2 @ centring / 2)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))


def visits(weights: np.ndarray) -> np.ndarray:
    """[steps, memories] -> the memory of each step that has more than half of its weight."""
    return np.argmax(weights, axis=1)[np.max(weights, axis=1) > 0.5]


def describe(
    steps: np.ndarray,
    written: str,
    read: str,
    heading: float,
    distances: np.ndarray,
    seen: np.ndarray,
) -> str:
    """The structure in a few words.

    From the steps of the write head, the manners in which the heads move, how their directions
    compare, how far the memories are apart, and which were read, one after the other.
    """
    if written == "in equal steps":
        return f"tape, read {direction(read, heading)}"
    if written == "irregularly" and alternates(steps):
        return zigzag(seen, direction(read, heading))
    first = np.array(list(dict.fromkeys(seen.tolist())), int)
    rounds = round(len(seen) / max(1, len(first)))
    between = distances[np.ix_(first, first)]
    if closes(between):
        around = f"{rounds} times around" if rounds > 1 else "once around"
        return f"loop, read {around}, {read}"
    if np.any(np.diff(first) < 0) and in_a_row(between):
        return "priority order: written into place, read in a row"
    return f"no tape: written {written}"


def zigzag(seen: np.ndarray, read: str) -> str:
    """Pairs that are read one after the other, or the two sides of the zigzag one at a time."""
    sides = np.abs(np.diff(seen)) == 2
    if len(sides) and np.mean(sides) >= USUAL:
        return f"two tapes, written in turns, read {read}"
    return f"zigzag of pairs, read {read}"


def direction(read: str, heading: float) -> str:
    """How a head that makes equal steps goes along what was written."""
    if read != "in equal steps":
        return read
    if abs(heading) < 0.9:
        return "across its direction"
    return "forwards" if heading > 0 else "backwards"
