"""What all pictures of memories share: traces, colours, and keys in few dimensions."""

import equinox as eqx

from lantm.machines.seq2seq import MachineTrace, SequenceModel, Tokens
from lantm.spaces import Chart
from lantm.spaces.chart import COMPONENT, numbered, principal_components

WRITE, READ = "#d55e00", "#0072b2"
"""Vermilion and blue: told apart by every kind of colour vision, and in grey."""


def flatten(chart: Chart) -> Chart:
    """In the plane, as it is or projected."""
    if chart.points.shape[1] > 2:
        points = principal_components(chart.points, 2)
        return Chart(points, "components", numbered(COMPONENT, 2))
    return chart


@eqx.filter_jit
def trace_machine(machine: SequenceModel, inputs: Tokens, steps: int) -> MachineTrace:
    """Compiled once for all checkpoints of a run."""
    return machine.trace(inputs, steps)
