"""What a step tells about itself."""

from typing import NamedTuple

from jaxtyping import Array, Float

from lantm.spaces import Action


class HeadTrace(NamedTuple):
    """What the heads of one kind did in one step; None is what the model does not have."""

    key: Float[Array, "*batch heads key_size"]
    """q', where each head reads or writes."""
    gate: Float[Array, "*batch heads"] | Float[Array, "*batch heads 3"] | None = None
    """The weight of random access, 1 - t. RAM/Tape: of the controller's, forward, backward key."""
    action: Action | None = None
    """a, the group element that moved each head."""
    velocity: Float[Array, "*batch heads algebra_size"] | None = None
    """log a: where that led, and how far."""
    action_gate: Float[Array, "*batch heads"] | None = None
    """r, the weight of the new action against the last one."""


class Trace(NamedTuple):
    """What one step did; None is what the model does not have."""

    hidden: Float[Array, "*batch hidden"]
    """h, the controller's state."""
    read: HeadTrace | None = None
    write: HeadTrace | None = None
    weights: Float[Array, "*batch reads slots"] | None = None
    """w_i of each read head, over the memories that existed before this step's writes."""
    reading: Float[Array, "*batch reads width"] | None = None
    """rho of each read head."""
    value: Float[Array, "*batch writes width"] | None = None
    """v of each write head, kept in memory only where the step writes."""
    strength: Float[Array, "*batch writes"] | None = None
    """s, likewise."""
    output_gate: Float[Array, "*batch"] | None = None
    """How much of the readings goes into the output."""
