"""One picture of what a machine does with its memory on one problem."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lantm.seq2seq import Machine, MachineTrace
from lantm.tasks import Task

WRITE, READ = "#d55e00", "#0072b2"
"""Vermilion and blue: told apart by every kind of colour vision, and in grey."""


def draw_memory(machine: Machine, task: Task, path: str | Path, *, seed: int = 1) -> None:
    """Where the machine writes and reads, and which memories each answer step reads, as PNG."""
    size = min(task.largest, max(task.smallest, 16))
    question, answer = task.sample(np.random.default_rng(seed), size, 1)
    trace = machine.trace(jnp.asarray(question), answer.shape[1])
    right = int((np.argmax(trace.logits[0], axis=-1) == answer[0]).sum())
    figure = Figure(figsize=(11, 5), layout="constrained")
    figure.suptitle(f"{task.name}, size {size}: {right} of {answer.shape[1]} symbols right")
    if trace.encode.write is None:
        draw_hidden(figure.subplots(), trace)
    else:
        places, weights = figure.subplots(1, 2)
        draw_places(places, trace)
        draw_weights(weights, trace)
    figure.savefig(path, dpi=120)


def draw_places(axes: Axes, trace: MachineTrace) -> None:
    """Keys written while reading the input, and read while answering."""
    writes = np.asarray(trace.encode.write.key[0])  # pyright: ignore[reportOptionalMemberAccess]
    reads = np.asarray(trace.decode.read.key[0])  # pyright: ignore[reportOptionalMemberAccess]
    strengths = np.asarray(trace.encode.strength)[0]
    both, label = flatten(np.concatenate([writes, reads]))
    writes, reads = both[: len(writes)], both[len(writes) :]
    axes.plot(*writes.T, color=WRITE, linewidth=0.8)
    axes.scatter(
        *writes.T,
        s=42,
        c=[(*hex_rgb(WRITE), s) for s in strengths],
        edgecolors=WRITE,
        label="write (fill: strength)",
        zorder=3,
    )
    axes.plot(*reads.T, color=READ, linewidth=0.8, linestyle="--", zorder=2)
    axes.scatter(*reads.T, s=30, c=READ, marker="x", label="read, answering", zorder=4)
    axes.annotate("first write", writes[0], textcoords="offset points", xytext=(6, 6))
    axes.annotate("first read", reads[0], textcoords="offset points", xytext=(6, -12))
    axes.set(title="keys", xlabel=label.format(1), ylabel=label.format(2))
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="best", fontsize="small")


def draw_weights(axes: Axes, trace: MachineTrace) -> None:
    """Read weights of every answer step over the memories."""
    weights = np.asarray(trace.decode.weights)[0]
    image = axes.imshow(weights, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axes.set(title="read weights", xlabel="memory, in order of writing", ylabel="answer step")
    axes.figure.colorbar(image, ax=axes)


def draw_hidden(axes: Axes, trace: MachineTrace) -> None:
    """Of a machine without a memory: its hidden state over time."""
    hidden = np.concatenate([trace.encode.hidden[0], trace.decode.hidden[0]])
    image = axes.imshow(hidden.T, cmap="cividis", vmin=-1, vmax=1, aspect="auto")
    axes.axvline(trace.encode.hidden.shape[1] - 0.5, color="white", linestyle="--")
    axes.set(title="hidden state (no memory)", xlabel="step: input | answer", ylabel="cell")
    axes.figure.colorbar(image, ax=axes)


def flatten(keys: np.ndarray) -> tuple[np.ndarray, str]:
    """Keys in two dimensions: as they are, or their two principal components."""
    if keys.shape[1] == 2:
        return keys, "coordinate {}"
    centred = keys - keys.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T, "principal component {}"


def hex_rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255
