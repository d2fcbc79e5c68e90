"""One problem and what a machine did with it: all that a picture of a memory shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lantm.errors import require_positive
from lantm.inspection.diagnostics import reading_shares
from lantm.inspection.picture import HeadLook, head_looks, trace_machine
from lantm.machines.seq2seq import MachineTrace, SequenceModel
from lantm.spaces import Chart
from lantm.tasks import Task

USUAL_SIZE = 16
Part = TypeVar("Part")


@dataclass(frozen=True)
class Episode:
    """A machine's way through one problem; everything in NumPy and without a batch."""

    task: Task
    size: int
    inputs: np.ndarray
    """[time]: `^`, then the input."""
    answer: np.ndarray
    """[steps]: the right answer, then `$`."""
    trace: MachineTrace
    to_chart: Callable[[np.ndarray], Chart]
    """How the machine's keys are drawn."""
    name_slots: Callable[[list[str], int], list[str]]
    """From the input symbols and the number of slots, where a machine has no keys."""

    @property
    def right(self) -> int:
        """Symbols of the answer that the machine gives."""
        return int((np.argmax(self.trace.logits, axis=-1) == self.answer).sum())

    @property
    def score(self) -> str:
        return f"{self.right} of {len(self.answer)} symbols right"

    @property
    def title(self) -> str:
        return f"{self.task.name}, size {self.size}: {self.score}"

    @property
    def has_memory(self) -> bool:
        return self.trace.encode.write is not None

    @property
    def has_slots(self) -> bool:
        """Whether there are read weights, but no keys."""
        return not self.has_memory and self.trace.decode.weights is not None

    @property
    def writes(self) -> np.ndarray:
        """[heads, time, key_size]: where each step of the input is written."""
        return np.swapaxes(require_memory(self.trace.encode.write).key, 0, 1)

    @property
    def reads(self) -> np.ndarray:
        """[heads, steps, key_size]: where each step of the answer reads."""
        return np.swapaxes(require_memory(self.trace.decode.read).key, 0, 1)

    @property
    def writers(self) -> list[HeadLook]:
        """How each write head is shown."""
        return head_looks("write", len(self.writes))

    @property
    def readers(self) -> list[HeadLook]:
        """How each read head is shown."""
        return head_looks("read", len(self.weights))

    @property
    def busiest(self) -> list[int]:
        """The read heads whose weights are shown where there is no room for more than two: those
        that read most, in their order.
        """
        ranked = np.argsort(-reading_shares(self.trace), kind="stable")
        return sorted(ranked[:2].tolist())

    @property
    def keys(self) -> np.ndarray:
        """[keys, key_size]: the writes of one head after the other, then the reads."""
        return np.concatenate([*self.writes, *self.reads])

    @property
    def chart(self) -> Chart:
        """Of the keys."""
        return self.to_chart(self.keys)

    def split(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[heads, time, size] of the writes, [heads, steps, size] of the reads, of places like the
        keys.
        """
        (writers, time, _), (readers, steps, _) = self.writes.shape, self.reads.shape
        writes, reads = np.split(places, [writers * time])
        return writes.reshape(writers, time, -1), reads.reshape(readers, steps, -1)

    def show(self, tokens: np.ndarray) -> list[str]:
        return [self.task.vocabulary.show([token]) for token in tokens.tolist()]

    @property
    def memory_names(self) -> list[str]:
        """Of all memories: those a machine begins with, then the input symbol of each write; or
        else its slots.
        """
        if self.has_slots:
            return self.name_slots(self.show(self.inputs), self.weights.shape[2])
        written = self.show(np.repeat(self.inputs, len(self.writes)))
        return ["initial"] * (self.weights.shape[2] - len(written)) + written

    @property
    def strengths(self) -> np.ndarray:
        """[heads, time]: of what is written."""
        return np.swapaxes(require_memory(self.trace.encode.strength), 0, 1)

    @property
    def weights(self) -> np.ndarray:
        """[heads, time + steps, memories]: of the reads of both phases."""
        phases = [phase.weights for phase in (self.trace.encode, self.trace.decode)]
        return np.swapaxes(np.concatenate([require_memory(part) for part in phases]), 0, 1)


def require_memory(part: Part | None) -> Part:
    """What only machines with a memory have."""
    if part is None:
        raise ValueError("the machine must have a memory to draw, and this one has none")
    return part


def observe(machine: SequenceModel, task: Task, size: int | None = None, seed: int = 1) -> Episode:
    """The machine at work on the problem of a seed; the size is 16 where training had that."""
    if size is None:
        size = min(task.largest, max(task.smallest, USUAL_SIZE))
    require_positive(size=size)
    if seed < 0:
        raise ValueError(f"seed must be a whole number from 0, got {seed}")
    inputs, answers = task.sample(np.random.default_rng(seed), size, 1)
    trace = trace_machine(machine, jnp.asarray(inputs), answers.shape[1])
    alone = jax.tree.map(lambda array: np.asarray(array[0]), trace)
    return Episode(task, size, inputs[0], answers[0], alone, machine.chart, machine.slot_names)
