"""The Heisenberg group, acting on itself: round trips in two directions add up in the third."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.spaces.base import Key, Paced, Scalar, scale

Vector = Float[Array, "3"]


class Heisenberg(Paced):
    """R^3 with (x, y, z)(x', y', z') = (x + x', y + y', z + z' + (x y' - y x') / 2).

    Keys and group elements are the same vectors. The distance is Koranyi's, which products from the
    left preserve: the gauge ((x^2 + y^2)^2 + 16 z^2)^(1/4) of p^-1 q.
    """

    key_size: ClassVar[int] = 3
    algebra_size: ClassVar[int] = 3

    def project(self, raw: Key) -> Key:
        return raw

    def exp(self, velocity: Vector) -> Vector:
        return velocity

    def log(self, action: Vector) -> Vector:
        return action

    def act(self, action: Vector, key: Key) -> Key:
        (a, b, c), (x, y, z) = action, key
        return jnp.stack([a + x, b + y, c + z + (a * y - b * x) / 2])

    def mix(self, gate: Scalar, candidate: Key, key: Key) -> Key:
        return scale(gate, candidate) + scale(1 - gate, key)

    def squared_distance(self, key: Key, keys: Float[Array, "slots 3"]) -> Float[Array, " slots"]:
        """The products are of differences, which are exact where the keys are near each other. On
        a key, where the root has no derivative, it is 0, with gradient zero.
        """
        x, y = keys[:, 0] - key[0], keys[:, 1] - key[1]
        z = keys[:, 2] - key[2] - (key[0] * y - key[1] * x) / 2
        square = (x**2 + y**2) ** 2 + 16 * z**2
        away = square > 0
        return jnp.where(away, jnp.sqrt(jnp.where(away, square, 1.0)), 0.0)

    def inverse(self, action: Vector) -> Vector:
        return -action

    def compose(self, second: Vector, first: Vector) -> Vector:
        return self.act(second, first)
