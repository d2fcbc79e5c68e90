"""What all pictures of memories share: traces, colours, and keys in few dimensions."""

import equinox as eqx
import numpy as np

from lantm.machines.seq2seq import Machine, MachineTrace, Tokens

WRITE, READ = "#d55e00", "#0072b2"
"""Vermilion and blue: told apart by every kind of colour vision, and in grey."""


def flatten(keys: np.ndarray) -> tuple[np.ndarray, str]:
    """Keys in the plane, as they are or projected, and what their coordinates are called."""
    if keys.shape[1] == 2:
        return keys, "coordinate {}"
    return project(keys, 2), "principal component {}"


def project(keys: np.ndarray, size: int) -> np.ndarray:
    """Keys by their first principal components."""
    centred = keys - keys.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:size].T


@eqx.filter_jit
def trace_machine(machine: Machine, inputs: Tokens, steps: int) -> MachineTrace:
    """Compiled once for all checkpoints of a run."""
    return machine.trace(inputs, steps)
