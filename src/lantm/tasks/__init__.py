"""The eight tasks of the paper's task table, the non-unary variant of the last, and those of
"Neural Networks and the Chomsky Hierarchy".

A new one is a class like these and a line in `TASKS`.
"""

from lantm.tasks.arithmetic import Double, InterleavedAdd
from lantm.tasks.base import Batch, Task
from lantm.tasks.chomsky import (
    BinaryAddition,
    BucketSort,
    Cycle,
    DuplicateString,
    EvenPairs,
    MissingDuplicate,
    OddsFirst,
    Parity,
    ReverseString,
    StackManipulation,
)
from lantm.tasks.permutation import BigramFlip, Copy, OddFirst, Reverse
from lantm.tasks.unary import PrioritySort, PrioritySortSymbols, RepeatCopy
from lantm.tasks.vocabulary import Vocabulary

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Copy(),
        Reverse(),
        BigramFlip(),
        Double(),
        InterleavedAdd(),
        OddFirst(),
        RepeatCopy(),
        PrioritySort(),
        PrioritySortSymbols(),
        EvenPairs(),
        Parity(),
        Cycle(),
        ReverseString(),
        StackManipulation(),
        DuplicateString(),
        MissingDuplicate(),
        OddsFirst(),
        BinaryAddition(),
        BucketSort(),
    )
}
"""Every task by name."""

__all__ = [
    "TASKS",
    "Batch",
    "BigramFlip",
    "Copy",
    "Double",
    "InterleavedAdd",
    "OddFirst",
    "PrioritySort",
    "PrioritySortSymbols",
    "RepeatCopy",
    "Reverse",
    "Task",
    "Vocabulary",
]
