"""The memory Sigma and how its memories are weighed (paper, section 3.2)."""

from lantm.memory.store import InitialMemory, Memory, Slots
from lantm.memory.weighting import InverseSquare, Softmax, Weighting

__all__ = ["InitialMemory", "InverseSquare", "Memory", "Slots", "Softmax", "Weighting"]
