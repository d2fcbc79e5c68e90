"""What all pictures of memories share: traces, colours, and keys in few dimensions."""

import equinox as eqx
import numpy as np

from lantm.machines.seq2seq import MachineTrace, SequenceModel, Tokens
from lantm.spaces import Chart
from lantm.spaces.chart import principal_components

WRITE, READ = "#d55e00", "#0072b2"
"""Vermilion and blue: told apart by every kind of colour vision, and in grey."""


def flatten(chart: Chart) -> tuple[np.ndarray, str]:
    """Points in the plane, as they are or projected, and what their coordinates are called."""
    if chart.points.shape[1] > 2:
        return principal_components(chart.points, 2), "principal component {}"
    return chart.points, chart.label


@eqx.filter_jit
def trace_machine(machine: SequenceModel, inputs: Tokens, steps: int) -> MachineTrace:
    """Compiled once for all checkpoints of a run."""
    return machine.trace(inputs, steps)
