"""What cells are made of: controllers, heads and ways to address a memory."""

from lantm.parts.access import Access, Addressing, Heads
from lantm.parts.lie import Gate, Head, HeadState, LieAccess, LieHeads
from lantm.parts.lstm import Controller, LSTMLayer, LSTMState
from lantm.parts.ram import RandomAccess, TapeKeys
from lantm.parts.trace import HeadTrace, Trace

__all__ = [
    "Access",
    "Addressing",
    "Controller",
    "Gate",
    "Head",
    "HeadState",
    "HeadTrace",
    "Heads",
    "LSTMLayer",
    "LSTMState",
    "LieAccess",
    "LieHeads",
    "RandomAccess",
    "TapeKeys",
    "Trace",
]
