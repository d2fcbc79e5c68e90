"""What data structure a machine makes of its memory, in a few numbers."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from lantm.inspection.structures import USUAL, describe, regularity, visits
from lantm.machines.seq2seq import MachineTrace
from lantm.parts import HeadTrace
from lantm.spaces import straight_distances


class Motion(NamedTuple):
    """How a head moves, apart from the steps that are random access for the most part."""

    length: float
    """Of a step, on average."""
    spread: float
    """Of the lengths, relative to their average: 0 where all steps are equally long."""
    direction: float
    """Constancy: 1 where all steps go the same way, near 0 where they go every way."""
    random_access: float | None
    """The average weight of random access, 1 - t, in all steps; None where there is no gate."""
    regularity: float
    """The share of the steps that are the usual one, in length and direction."""
    jumping: float
    """The weight of random access that half of the steps exceed; 0 where there is no gate."""

    @property
    def manner(self) -> str:
        """In equal steps, or else what is in the way of it."""
        if self.jumping > 0.15:
            return "by random access"
        return "in equal steps" if self.regularity >= USUAL else "irregularly"


class Diagnostics(NamedTuple):
    """What the heads did on one problem."""

    write: Motion
    """While reading the input."""
    read: Motion
    """While answering."""
    heading: float
    """1 where the reads go the way of the writes, -1 where they go against it."""
    collisions: float
    """Share of the memories nearer to another one than a tenth of the head's usual step; those with
    less than a tenth of the greatest strength are left out."""
    sharpness: float
    """The largest read weight of an answer's step, on average."""

    structure: str
    """The data structure this looks like."""
    writer: int
    reader: int
    """The heads that were looked at, from 0."""


def diagnose(
    trace: MachineTrace, distances: Callable[[np.ndarray], np.ndarray] = straight_distances
) -> Diagnostics | None:
    """Of the trace of one problem, without a batch axis; None for a machine without a memory.
    The machine knows the `distances` of its keys.

    Of several read heads the one that reads most is described, of several write heads the one
    whose memories it reads most; collisions are those of all memories.
    """
    if trace.encode.write is None or trace.decode.read is None or trace.decode.weights is None:
        return None
    places = np.concatenate(trace.encode.write.key)
    reader = int(np.argmax(reading_shares(trace)))
    weights = np.asarray(trace.decode.weights)[:, reader]
    written = weights[:, weights.shape[1] - len(places) :]  # without those of the beginning
    writers = trace.encode.write.key.shape[1]
    writer = int(np.argmax(written.reshape(-1, writers).sum(axis=0)))
    write, read = one_head(trace.encode.write, writer), one_head(trace.decode.read, reader)
    moved, looked = motion(write), motion(read)
    heading = cosine(own_steps(write).mean(axis=0), own_steps(read).mean(axis=0))
    between, seen = distances(places), visits(written)
    return Diagnostics(
        moved,
        looked,
        heading,
        collisions(between, np.concatenate(np.asarray(trace.encode.strength))),
        float(np.max(weights, axis=-1).mean()),
        describe(steps(write), moved.manner, looked.manner, heading, between, seen),
        writer,
        reader,
    )


def reading_shares(trace: MachineTrace) -> np.ndarray:
    """[heads]: how much of an answer's step each read head reads of what was written, on average.

    Without the memories of the beginning; of memories without keys all count. Rounded, so that of
    heads that read equally much the first is the one that reads most.
    """
    weights = np.asarray(trace.decode.weights)
    writes = trace.encode.write
    initial = 0 if writes is None else weights.shape[2] - writes.key[..., 0].size
    return weights[:, :, initial:].sum(axis=2).mean(axis=0).round(3)


def one_head(heads: HeadTrace, number: int) -> HeadTrace:
    """What one of several heads did, without an axis for heads."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:, number], heads)


def motion(head: HeadTrace) -> Motion:
    """How a head moves over time."""
    vectors = own_steps(head)
    lengths = np.linalg.norm(vectors, axis=1)
    moving = vectors[lengths > 0] / lengths[lengths > 0, None]
    length = lengths.mean()
    gate = None if head.gate is None else random_access(head)
    return Motion(
        float(length),
        float(lengths.std() / length) if length else 0.0,
        float(np.linalg.norm(moving.mean(axis=0))) if len(moving) else 1.0,
        None if gate is None else float(gate.mean()),
        regularity(vectors),
        0.0 if gate is None else float(np.median(gate)),
    )


def own_steps(head: HeadTrace) -> np.ndarray:
    """The steps that are not random access for the most part; all, where all are."""
    vectors = steps(head)
    if head.velocity is None or head.gate is None:
        return vectors
    own = random_access(head) < 0.5
    return vectors[own] if own.any() else vectors


def steps(head: HeadTrace) -> np.ndarray:
    """Each group action as a vector of the Lie algebra: a shift, or a rotation's axis times its
    angle.

    Of heads without actions: the differences of successive keys.
    """
    if head.velocity is None:
        keys = np.asarray(head.key)
        return np.diff(keys, axis=0) if len(keys) > 1 else np.zeros_like(keys)
    return np.asarray(head.velocity)


def random_access(head: HeadTrace) -> np.ndarray:
    """The weight of the controller's own key at every step."""
    gate = np.asarray(head.gate)
    return gate if gate.ndim == 1 else gate[:, 0]


def collisions(distances: np.ndarray, strengths: np.ndarray) -> float:
    """Share of the memories with a strength worth the name that lie on another such one."""
    onward = np.diagonal(distances, 1)
    usual = np.median(onward) if len(onward) else 0.0
    strong = np.flatnonzero(strengths >= strengths.max() / 10)
    between = distances[np.ix_(strong, strong)]
    np.fill_diagonal(between, np.inf)
    return float(np.mean(between.min(axis=1) <= usual / 10))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Of the angle between two vectors; 0 where one vanishes, or they cannot be compared."""
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if a.shape == b.shape and lengths > 0 else 0.0
