"""R^n under shifts: the keys of LANTM (paper, section 4.1, example 1)."""

import equinox as eqx
from jaxtyping import Array, Float

from lantm.errors import require_positive
from lantm.spaces.base import EmbeddedKeySpace, Key, Paced, Scalar, scale

Shift = Float[Array, " key_size"]


class Plane(EmbeddedKeySpace, Paced):
    """R^n with the group R^n acting by addition. A group element is the vector of the shift.

    All reported LANTM numbers are of bounded shifts.
    """

    key_size: int = eqx.field(static=True)

    def __init__(self, key_size: int = 2, *, bounded: bool = True):
        require_positive(key_size=key_size)
        self.key_size, self.bounded = key_size, bounded

    @property
    def algebra_size(self) -> int:
        return self.key_size

    def project(self, raw: Key) -> Key:
        return raw

    def exp(self, velocity: Shift) -> Shift:
        return velocity

    def log(self, action: Shift) -> Shift:
        return action

    def act(self, action: Shift, key: Key) -> Key:
        return action + key

    def inverse(self, action: Shift) -> Shift:
        return -action

    def compose(self, second: Shift, first: Shift) -> Shift:
        return second + first

    # ---- its own forms

    def mix_action(self, gate: Scalar, new: Shift, old: Shift) -> Shift:
        return scale(gate, new) + scale(1 - gate, old)
