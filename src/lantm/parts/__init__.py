"""What cells are made of: controllers, heads, ways to address a memory, outputs."""

from lantm.parts.access import Access, Addressing, Heads
from lantm.parts.controllers import CONTROLLERS, Controller, Layer, LayerState
from lantm.parts.lie import GATES, CutOffGate, Gate, Head, HeadState, LieAccess, LieHeads
from lantm.parts.output import OUTPUTS, LinearOutput, NonlinearOutput, Output
from lantm.parts.ram import RandomAccess, TapeKeys
from lantm.parts.trace import HeadTrace, Trace

__all__ = [
    "CONTROLLERS",
    "GATES",
    "OUTPUTS",
    "Access",
    "Addressing",
    "Controller",
    "CutOffGate",
    "Gate",
    "Head",
    "HeadState",
    "HeadTrace",
    "Heads",
    "Layer",
    "LayerState",
    "LieAccess",
    "LieHeads",
    "LinearOutput",
    "NonlinearOutput",
    "Output",
    "RandomAccess",
    "TapeKeys",
    "Trace",
]
