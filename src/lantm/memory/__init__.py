"""The memory Sigma and how its memories are weighed (paper, section 4.2)."""

from lantm.memory.store import InitialMemory, Memory, Slots
from lantm.memory.weighting import (
    WEIGHTINGS,
    InversePower,
    InverseSquare,
    Softmax,
    Weighting,
    to_weights,
)

__all__ = [
    "WEIGHTINGS",
    "InitialMemory",
    "InversePower",
    "InverseSquare",
    "Memory",
    "Slots",
    "Softmax",
    "Weighting",
    "to_weights",
]
