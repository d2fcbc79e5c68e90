"""Neural memories whose heads move by Lie group actions."""

from lantm.cells import (
    Access,
    Cell,
    Gate,
    Head,
    HeadTrace,
    LieAccess,
    LSTMCell,
    MemoryCell,
    RandomAccess,
    Trace,
    straighten,
)
from lantm.checkpoint import load_tree, save_tree
from lantm.config import RECIPES, TrainConfig, configure
from lantm.evaluation import Evaluation, evaluate_batches
from lantm.keyspaces import (
    SPACES,
    EmbeddedKeySpace,
    KeySpace,
    Plane,
    Rotation,
    Sphere,
    normalise,
)
from lantm.layer import MemoryLayer
from lantm.memory import Memory
from lantm.models import MODELS, ModelConfig, build_cell, build_machine
from lantm.optimiser import rmsprop
from lantm.reference import init_states, unroll_scan, unroll_traced
from lantm.runs import Run, Score, evaluate
from lantm.seq2seq import Machine, MachineTrace, Scores, Vocabulary, answer_loss, score
from lantm.tasks import TASKS, Batch, Task
from lantm.training import train
from lantm.unroll import unroll
from lantm.weighting import InverseSquare, Softmax, Weighting

__version__ = "0.1.0"

__all__ = [
    "MODELS",
    "RECIPES",
    "SPACES",
    "TASKS",
    "Access",
    "Batch",
    "Cell",
    "EmbeddedKeySpace",
    "Evaluation",
    "Gate",
    "Head",
    "HeadTrace",
    "InverseSquare",
    "KeySpace",
    "LSTMCell",
    "LieAccess",
    "Machine",
    "MachineTrace",
    "Memory",
    "MemoryCell",
    "MemoryLayer",
    "ModelConfig",
    "Plane",
    "RandomAccess",
    "Rotation",
    "Run",
    "Score",
    "Scores",
    "Softmax",
    "Sphere",
    "Task",
    "Trace",
    "TrainConfig",
    "Vocabulary",
    "Weighting",
    "answer_loss",
    "build_cell",
    "build_machine",
    "configure",
    "evaluate",
    "evaluate_batches",
    "init_states",
    "load_tree",
    "normalise",
    "rmsprop",
    "save_tree",
    "score",
    "straighten",
    "train",
    "unroll",
    "unroll_scan",
    "unroll_traced",
]
