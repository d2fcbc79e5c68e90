"""What all pictures of memories share: traces, how heads look, and keys in few dimensions."""

from typing import Literal, NamedTuple

import equinox as eqx

from lantm.machines.seq2seq import MachineTrace, SequenceModel, Tokens
from lantm.spaces import Chart
from lantm.spaces.chart import COMPONENT, numbered, principal_components

HeadKind = Literal["write", "read"]

HEAD_COLOURS: dict[HeadKind, tuple[str, ...]] = {
    "write": ("#d55e00", "#e69f00", "#cc79a7"),
    "read": ("#0072b2", "#56b4e9", "#009e73", "#000000"),
}
"""Of the heads of a kind, one after the other and then from the first again; those of Okabe and
Ito, told apart by every kind of colour vision."""
WRITE, READ = HEAD_COLOURS["write"][0], HEAD_COLOURS["read"][0]
"""Vermilion and blue: told apart in grey, too."""


class HeadLook(NamedTuple):
    """How one head is shown, in all pictures."""

    name: str
    """`read`, or `read 2` where there are several."""
    colour: str


def head_looks(kind: HeadKind, heads: int) -> list[HeadLook]:
    """Of all heads of a kind."""
    colours = HEAD_COLOURS[kind]
    return [
        HeadLook(f"{kind} {i + 1}" if heads > 1 else kind, colours[i % len(colours)])
        for i in range(heads)
    ]


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
