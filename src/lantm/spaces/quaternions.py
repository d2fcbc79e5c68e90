"""The unit quaternions: S^3 under products with them, S^2 under the rotations that they are."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lantm.spaces.base import EmbeddedKeySpace, Key, Paced, dot, scale
from lantm.spaces.chart import Chart, numbered, stereographic
from lantm.spaces.smooth import ARCSINE, NARROW, cosine, sine, smooth
from lantm.spaces.sphere import cross, direction, normalise

Quaternion = Float[Array, "4"]
"""w + x i + y j + z k"""


class Quaternions(EmbeddedKeySpace, Paced):
    """S^3 in R^4 under products from the left: they do not commute, and each moves every key
    equally far. A group element is a unit quaternion.
    """

    key_size: ClassVar[int] = 4
    algebra_size: ClassVar[int] = 3
    compact: ClassVar[bool] = True

    def project(self, raw: Key) -> Key:
        return normalise(raw)

    def exp(self, velocity: Float[Array, "3"]) -> Quaternion:
        return exponential(velocity)

    def log(self, action: Quaternion) -> Float[Array, "3"]:
        return logarithm(action)

    def act(self, action: Quaternion, key: Key) -> Key:
        return multiply(action, key)

    def inverse(self, action: Quaternion) -> Quaternion:
        return conjugate(action)

    def compose(self, second: Quaternion, first: Quaternion) -> Quaternion:
        return multiply(second, first)

    # ---- its own forms

    def chart(self, keys: np.ndarray) -> Chart:
        return stereographic(keys)


class Sphere2(EmbeddedKeySpace, Paced):
    """S^2 in R^3 with the group SO(3), as unit quaternions; q and -q are the same rotation.

    Where `Sphere` is told an axis and an angle, as in the paper, this one is told a velocity: the
    axis times the angle.
    """

    key_size: ClassVar[int] = 3
    algebra_size: ClassVar[int] = 3
    compact: ClassVar[bool] = True

    def project(self, raw: Key) -> Key:
        return normalise(raw)

    def exp(self, velocity: Float[Array, "3"]) -> Quaternion:
        return exponential(velocity / 2)

    def log(self, action: Quaternion) -> Float[Array, "3"]:
        """Of the two signs that with the smaller angle."""
        return 2 * logarithm(scale(jnp.where(action[0] < 0, -1.0, 1.0), action))

    def act(self, action: Quaternion, key: Key) -> Key:
        """a q a^-1"""
        w, v = action[0], action[1:]
        across = cross(v, key)
        return key + scale(2 * w, across) + 2 * cross(v, across)

    def inverse(self, action: Quaternion) -> Quaternion:
        return conjugate(action)

    def compose(self, second: Quaternion, first: Quaternion) -> Quaternion:
        return multiply(second, first)

    # ---- its own forms

    def chart(self, keys: np.ndarray) -> Chart:
        return Chart(keys, "sphere", numbered("coordinate {}", 3))


ROOT = 2**0.5


class Turns(NamedTuple):
    """An element of SO(4): x -> left x right^-1. (-left, -right) is the same one."""

    left: Quaternion
    right: Quaternion


class Sphere3(EmbeddedKeySpace, Paced):
    """S^3 in R^4 with the group SO(4): products from the left and from the right.

    A velocity is that of the two; a turn of one plane has one as long as its angle.
    """

    key_size: ClassVar[int] = 4
    algebra_size: ClassVar[int] = 6
    compact: ClassVar[bool] = True

    def project(self, raw: Key) -> Key:
        return normalise(raw)

    def exp(self, velocity: Float[Array, "6"]) -> Turns:
        left, right = velocity[:3] / ROOT, velocity[3:] / ROOT
        return Turns(exponential(left), exponential(right))

    def log(self, action: Turns) -> Float[Array, "6"]:
        """Of the two signs that with the smaller angles."""
        sign = jnp.where(action.left[0] + action.right[0] < 0, -1.0, 1.0)
        return ROOT * jnp.concatenate([logarithm(scale(sign, side)) for side in action])

    def act(self, action: Turns, key: Key) -> Key:
        return multiply(multiply(action.left, key), conjugate(action.right))

    def inverse(self, action: Turns) -> Turns:
        return Turns(conjugate(action.left), conjugate(action.right))

    def compose(self, second: Turns, first: Turns) -> Turns:
        return Turns(multiply(second.left, first.left), multiply(second.right, first.right))

    # ---- its own forms

    def chart(self, keys: np.ndarray) -> Chart:
        return stereographic(keys)


def multiply(left: Quaternion, right: Quaternion) -> Quaternion:
    """Number by number, as `dot`."""
    (a, b, c, d), (w, x, y, z) = left, right
    return jnp.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )


def conjugate(quaternion: Quaternion) -> Quaternion:
    w, x, y, z = quaternion
    return jnp.stack([w, -x, -y, -z])


def exponential(velocity: Float[Array, "3"]) -> Quaternion:
    """cos t + sin t u, of the velocity t u."""
    square = dot(velocity, velocity)
    return jnp.stack([cosine(square), *scale(sine(square), velocity)])


def logarithm(quaternion: Quaternion) -> Float[Array, "3"]:
    """t u with t from 0 to pi. -1, which every u leads to, has that of i, with gradient zero."""
    w, v = quaternion[0], quaternion[1:]
    axis = direction(v)
    square = dot(v, v)
    beside_one = (w > 0) & (square < NARROW)
    near = scale(smooth(square, ARCSINE, jnp.ones_like, near=NARROW), v)
    return jnp.where(beside_one, near, scale(jnp.arctan2(dot(axis, v), w), axis))
