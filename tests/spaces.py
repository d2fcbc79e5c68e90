"""Every key space and every model: the members over which the laws are checked."""

from functools import lru_cache

import jax

import lantm
from lantm.training.kinds import PAPER_MODELS
from own_space import Turntable

ALL_SPACES: dict[str, lantm.KeySpace] = {
    **lantm.SPACES,
    "turntable": Turntable(),
    "geodesic_sphere": lantm.Sphere(geodesic=True),
    **{
        name: lantm.find_space(name)
        for name in ("space5", "sphere4", "free_line*circle", "sphere*hyperbolic")
    },
}

# Distinct primes, and none of them a key space's own size: swapped axes cannot go unnoticed.
BATCH, TIME, INPUTS, OUTPUTS, HIDDEN, WIDTH, KEYS = 5, 7, 11, 13, 17, 19, 23

LIE = tuple(name for name, design in lantm.MODELS.items() if "space" in design.takes)
"""The models that take a key space."""

VARIANTS: dict[str, dict[str, object]] = {
    **{name: {"model": name} for name in PAPER_MODELS},
    "lstm": {"model": "lstm", "layers": 2},
    "ram": {"model": "ram", "key_size": KEYS, "sharpen": True},
    "ram_tape": {"model": "ram_tape", "key_size": KEYS},
    "slantm_bounded": {
        "model": "slantm",
        "space": "bounded_sphere",
        "action_interpolation": True,
    },
    "lantm_s_circle": {"model": "lantm_s", "space": "circle", "action_interpolation": True},
    "lantm_many": {
        "model": "lantm",
        "read_heads": 2,
        "write_heads": 3,
        "controller": "gru",
        "output": "nonlinear",
        "weighting": "inverse_power",
        "gate": "cut_off",
        "anchored": True,
        "blended": True,
        "homing": True,
        "blank": True,
        "strength_floor": 0.2,
    },
}
"""All seven models, and what else changes the way a head moves or what there is of a part."""


def config(name: str, **options: object) -> lantm.ModelConfig:
    """A variant in a small size."""
    sizes = {"hidden_size": HIDDEN, "memory_width": WIDTH, "embedding_size": INPUTS}
    return lantm.ModelConfig(**sizes, **VARIANTS[name] | options)


@lru_cache
def layer(name: str) -> lantm.MemoryLayer:
    """The variant's cell for continuous inputs."""
    cell = lantm.build_cell(config(name), INPUTS, OUTPUTS, key=jax.random.key(1))
    return lantm.MemoryLayer(cell)


@lru_cache
def machine(name: str, **options: object) -> lantm.Machine:
    """The variant's machine for OUTPUTS tokens."""
    vocabulary = lantm.Vocabulary(OUTPUTS - 3)
    return lantm.build_machine(config(name, **options), vocabulary, key=jax.random.key(2))


def is_lie(name: str) -> bool:
    return config(name).model in LIE


def one_head(trace, axis):
    """The trace of a machine with one read and one write head, without the axis for heads."""
    heads = ("read", "write", "weights", "reading", "value", "strength")

    def alone(phase):
        parts = {name: getattr(phase, name) for name in heads}
        return phase._replace(**jax.tree.map(lambda leaf: leaf.squeeze(axis), parts))

    return trace._replace(encode=alone(trace.encode), decode=alone(trace.decode))
