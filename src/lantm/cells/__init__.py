"""The machines of the paper, one step at a time, behind one contract."""

from lantm.cells.access import Access, Addressing, MemoryCell, MemoryState
from lantm.cells.contract import Cell, HeadTrace, State, Trace
from lantm.cells.lie import Gate, Head, HeadState, LieAccess, LieHeads, straighten
from lantm.cells.lstm import Controller, LSTMCell, LSTMState
from lantm.cells.ram import RandomAccess, TapeKeys

__all__ = [
    "Access",
    "Addressing",
    "Cell",
    "Controller",
    "Gate",
    "Head",
    "HeadState",
    "HeadTrace",
    "LSTMCell",
    "LSTMState",
    "LieAccess",
    "LieHeads",
    "MemoryCell",
    "MemoryState",
    "RandomAccess",
    "State",
    "TapeKeys",
    "Trace",
    "straighten",
]
