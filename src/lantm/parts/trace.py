"""What a step tells about itself."""

from typing import NamedTuple

from jaxtyping import Array, Float

from lantm.spaces import Action


class HeadTrace(NamedTuple):
    """What one head did in one step; None is what the model does not have."""

    key: Float[Array, "*batch key_size"]
    """q', where the head reads or writes."""
    gate: Float[Array, "*batch"] | Float[Array, "*batch 3"] | None = None
    """The weight of random access, 1 - t. RAM/Tape: of the controller's, forward, backward key."""
    action: Action | None = None
    """a, the group element that moved the head."""
    action_gate: Float[Array, "*batch"] | None = None
    """r, the weight of the new action against the last one."""


class Trace(NamedTuple):
    """What one step did; None is what the model does not have."""

    hidden: Float[Array, "*batch hidden"]
    """h, the controller's state."""
    read: HeadTrace | None = None
    write: HeadTrace | None = None
    weights: Float[Array, "*batch slots"] | None = None
    """w_i, over the memories that existed before this step's write."""
    reading: Float[Array, "*batch width"] | None = None
    """rho"""
    value: Float[Array, "*batch width"] | None = None
    """v, kept in memory only where the step writes."""
    strength: Float[Array, "*batch"] | None = None
    """s, likewise."""
    output_gate: Float[Array, "*batch"] | None = None
    """How much of the reading goes into the output."""
