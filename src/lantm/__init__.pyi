"""Neural memories whose heads move by Lie group actions."""

from lantm.inspection.explorer import write_explorer
from lantm.machines.cell import Cell, init_states, unroll
from lantm.machines.layer import MemoryLayer
from lantm.machines.lstm_cell import LSTMCell
from lantm.machines.memory_cell import MemoryCell
from lantm.machines.models import (
    MODELS,
    Design,
    ModelConfig,
    build_cell,
    build_machine,
    with_memory,
)
from lantm.machines.peers import DNCCell, NTMCell, StackCell, TapeCell, Transformer
from lantm.machines.seq2seq import (
    Machine,
    MachineTrace,
    Scores,
    SequenceModel,
    answer_loss,
    score,
)
from lantm.machines.straight import straighten
from lantm.memory import WEIGHTINGS, InversePower, InverseSquare, Memory, Softmax, Weighting
from lantm.parts import (
    CONTROLLERS,
    OUTPUTS,
    Access,
    Gate,
    Head,
    HeadTrace,
    Layer,
    LieAccess,
    Output,
    RandomAccess,
    Trace,
)
from lantm.parts.affine import Affine
from lantm.spaces import (
    SPACES,
    Chart,
    EmbeddedKeySpace,
    Heisenberg,
    Hyperbolic,
    HyperSphere,
    KeySpace,
    Paced,
    Plane,
    Product,
    Quaternions,
    Reach,
    Rigid2,
    Rigid3,
    Rotation,
    Sphere,
    Sphere3,
    Torus,
    find_space,
    normalise,
)
from lantm.tasks import TASKS, Batch, Task, Vocabulary
from lantm.training.checkpoints import load_tree, save_tree
from lantm.training.config import RECIPES, TrainConfig, configure
from lantm.training.evaluation import Evaluation, evaluate_batches
from lantm.training.lengths import LengthScore, evaluate_lengths
from lantm.training.optimiser import rmsprop
from lantm.training.runs import Run, Score, evaluate
from lantm.training.train import train
from lantm.unrolling.scan import unroll_scan, unroll_traced

__version__: str

__all__ = [
    "CONTROLLERS",
    "MODELS",
    "OUTPUTS",
    "RECIPES",
    "SPACES",
    "TASKS",
    "WEIGHTINGS",
    "Access",
    "Affine",
    "Batch",
    "Cell",
    "Chart",
    "DNCCell",
    "Design",
    "EmbeddedKeySpace",
    "Evaluation",
    "Gate",
    "Head",
    "HeadTrace",
    "Heisenberg",
    "HyperSphere",
    "Hyperbolic",
    "InversePower",
    "InverseSquare",
    "KeySpace",
    "LSTMCell",
    "Layer",
    "LengthScore",
    "LieAccess",
    "Machine",
    "MachineTrace",
    "Memory",
    "MemoryCell",
    "MemoryLayer",
    "ModelConfig",
    "NTMCell",
    "Output",
    "Paced",
    "Plane",
    "Product",
    "Quaternions",
    "RandomAccess",
    "Reach",
    "Rigid2",
    "Rigid3",
    "Rotation",
    "Run",
    "Score",
    "Scores",
    "SequenceModel",
    "Softmax",
    "Sphere",
    "Sphere3",
    "StackCell",
    "TapeCell",
    "Task",
    "Torus",
    "Trace",
    "TrainConfig",
    "Transformer",
    "Vocabulary",
    "Weighting",
    "answer_loss",
    "build_cell",
    "build_machine",
    "configure",
    "evaluate",
    "evaluate_batches",
    "evaluate_lengths",
    "find_space",
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
    "with_memory",
    "write_explorer",
]
