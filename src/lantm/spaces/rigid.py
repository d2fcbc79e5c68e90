"""R^2 and R^3 under rigid motions: shifts and turns, which do not commute."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.spaces.base import EmbeddedKeySpace, Key, Paced, dot, scale
from lantm.spaces.quaternions import Quaternion, conjugate, exponential, logarithm, multiply
from lantm.spaces.smooth import cotangent, excess, sine, versine
from lantm.spaces.sphere import cross, unit


class Motion2(NamedTuple):
    """An element of SE(2): a turn about 0, then a shift."""

    phase: Float[Array, "2"]
    """(cos, sin) of the angle."""
    shift: Float[Array, "2"]


class Rigid2(EmbeddedKeySpace, Paced):
    """R^2 with the group SE(2). A velocity is that of the turn, and the two of the shift."""

    key_size: ClassVar[int] = 2
    algebra_size: ClassVar[int] = 3

    def project(self, raw: Key) -> Key:
        return raw

    def exp(self, velocity: Float[Array, "3"]) -> Motion2:
        turn, along = velocity[0], velocity[1:]
        square = turn**2
        shift = multiply2(jnp.stack([sine(square), turn * versine(square)]), along)
        return Motion2(unit(turn), shift)

    def log(self, action: Motion2) -> Float[Array, "3"]:
        turn = jnp.arctan2(action.phase[1], action.phase[0])
        slant = jnp.stack([1 - turn**2 * cotangent(turn**2), -turn / 2])
        return jnp.stack([turn, *multiply2(slant, action.shift)])

    def act(self, action: Motion2, key: Key) -> Key:
        return multiply2(action.phase, key) + action.shift

    def inverse(self, action: Motion2) -> Motion2:
        back = jnp.stack([action.phase[0], -action.phase[1]])
        return Motion2(back, -multiply2(back, action.shift))

    def compose(self, second: Motion2, first: Motion2) -> Motion2:
        return Motion2(multiply2(second.phase, first.phase), self.act(second, first.shift))


class Motion3(NamedTuple):
    """An element of SE(3): a turn about 0, then a shift."""

    turn: Quaternion
    """A unit quaternion; its negative is the same turn."""
    shift: Float[Array, "3"]


class Rigid3(EmbeddedKeySpace, Paced):
    """R^3 with the group SE(3). A velocity is the axis of the turn, as long as its angle, and the
    shift's.
    """

    key_size: ClassVar[int] = 3
    algebra_size: ClassVar[int] = 6

    def project(self, raw: Key) -> Key:
        return raw

    def exp(self, velocity: Float[Array, "6"]) -> Motion3:
        turn, along = velocity[:3], velocity[3:]
        square = dot(turn, turn)
        across = cross(turn, along)
        shift = along + scale(versine(square), across) + scale(excess(square), cross(turn, across))
        return Motion3(exponential(turn / 2), shift)

    def log(self, action: Motion3) -> Float[Array, "6"]:
        sign = jnp.where(action.turn[0] < 0, -1.0, 1.0)
        turn = 2 * logarithm(scale(sign, action.turn))
        across = cross(turn, action.shift)
        bent = scale(cotangent(dot(turn, turn)), cross(turn, across))
        return jnp.concatenate([turn, action.shift - across / 2 + bent])

    def act(self, action: Motion3, key: Key) -> Key:
        return rotate(action.turn, key) + action.shift

    def inverse(self, action: Motion3) -> Motion3:
        back = conjugate(action.turn)
        return Motion3(back, -rotate(back, action.shift))

    def compose(self, second: Motion3, first: Motion3) -> Motion3:
        return Motion3(multiply(second.turn, first.turn), self.act(second, first.shift))


def multiply2(left: Float[Array, "2"], right: Float[Array, "2"]) -> Float[Array, "2"]:
    """(a + i b)(x + i y)"""
    (a, b), (x, y) = left, right
    return jnp.stack([a * x - b * y, a * y + b * x])


def rotate(turn: Quaternion, vector: Float[Array, "3"]) -> Float[Array, "3"]:
    """q x q^-1, by Euler's and Rodrigues' formula."""
    w, v = turn[0], turn[1:]
    across = cross(v, vector)
    return vector + 2 * (scale(w, across) + cross(v, across))
