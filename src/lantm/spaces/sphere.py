"""S^2 under rotations: the keys of SLANTM (paper, section 4.1, example 2)."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.spaces.base import EmbeddedKeySpace, Key, Reach, Scalar, dot, scale
from lantm.spaces.chart import Chart, numbered


class Rotation(NamedTuple):
    """An element of SO(3). (-axis, -angle) is the same rotation, and so is any axis at angle 0."""

    axis: Float[Array, "3"]
    """xi, a unit vector."""
    phase: Float[Array, "2"]
    """(cos theta, sin theta) of the angle."""


class OneRadian(Reach):
    """Of axis and angle, the angle below 1."""

    def __call__(self, raw: Float[Array, "4"]) -> Float[Array, "4"]:
        return jnp.stack([*raw[:3], jnp.tanh(raw[3])])


class LearnedAngle(Reach):
    """Of axis and angle, the angle below pi sigmoid(b - 5), with b learned."""

    bound: Float[Array, ""]
    """b"""

    def __call__(self, raw: Float[Array, "4"]) -> Float[Array, "4"]:
        largest = jnp.pi * jax.nn.sigmoid(self.bound - 5)
        return jnp.stack([*raw[:3], jnp.tanh(raw[3]) * largest])


class Sphere(EmbeddedKeySpace):
    """S^2 in R^3 with the group SO(3) acting by rotation."""

    bounded: bool = eqx.field(static=True, default=False)
    """Whether heads learn a bound on their angles; if not, it is 1 radian."""
    geodesic: bool = eqx.field(static=True, default=False)
    """Mix rotations along the shortest path in SO(3) instead of axis and angle on their own."""
    softening: float = eqx.field(static=True, default=0.0)
    """Added to the squared length in every normalisation. The authors' program has 1e-10, which
    leaves keys a little inside the sphere."""

    key_size: ClassVar[int] = 3
    algebra_size: ClassVar[int] = 3

    def project(self, raw: Key) -> Key:
        return normalise(raw, self.softening)

    def exp(self, velocity: Float[Array, "3"]) -> Rotation:
        axis = direction(velocity)
        return Rotation(axis, unit(dot(axis, velocity)))

    def log(self, action: Rotation) -> Float[Array, "3"]:
        return scale(jnp.arctan2(action.phase[1], action.phase[0]), action.axis)

    def act(self, action: Rotation, key: Key) -> Key:
        """Rodrigues' rotation formula."""
        axis, cos, sin = action.axis, action.phase[0], action.phase[1]
        turned = scale(cos, key) + scale(sin, cross(axis, key))
        return turned + scale(dot(axis, key) * (1 - cos), axis)

    def inverse(self, action: Rotation) -> Rotation:
        return Rotation(action.axis, action.phase * jnp.array([1.0, -1.0], action.phase.dtype))

    def compose(self, second: Rotation, first: Rotation) -> Rotation:
        """The product of the two unit quaternions (w, v)."""
        w2, v2 = quaternion(second)
        w1, v1 = quaternion(first)
        return rotation(w2 * w1 - dot(v2, v1), scale(w2, v1) + scale(w1, v2) + cross(v2, v1))

    # ---- its own forms

    @property
    def action_size(self) -> int:
        """An axis, and an angle."""
        return 4

    def action(self, raw: Float[Array, "4"]) -> Rotation:
        """From an axis of any length, and the angle."""
        return Rotation(normalise(raw[:3], self.softening), unit(raw[3]))

    def reach(self, key: PRNGKeyArray) -> Reach:
        if not self.bounded:
            return OneRadian()
        return LearnedAngle(jax.random.uniform(key, minval=-1.0, maxval=1.0))

    def mix_action(self, gate: Scalar, new: Rotation, old: Rotation) -> Rotation:
        if self.geodesic:
            return super().mix_action(gate, new, old)
        axis = scale(gate, new.axis) + scale(1 - gate, old.axis)
        phase = scale(gate, new.phase) + scale(1 - gate, old.phase)
        return Rotation(normalise(axis, self.softening), normalise(phase, self.softening))

    def chart(self, keys: np.ndarray) -> Chart:
        return Chart(keys, "sphere", numbered("coordinate {}", 3))


SHORTEST = 1e-10
"""The squared length below which a vector has no direction worth the name."""


def normalise(raw: Float[Array, " n"], softening: float = 0.0) -> Float[Array, " n"]:
    """L2 normalisation, the paper's pi for spheres.

    A vanishing vector (antipodal keys mixed half and half, say) becomes the first basis vector,
    with gradient zero. The inner `where` keeps the untaken branch's gradient finite there.
    """
    square = dot(raw, raw) + softening
    has_direction = square > SHORTEST
    length = jnp.sqrt(jnp.where(has_direction, square, 1.0))
    first = [1.0] + [0.0] * (raw.size - 1)
    units = zip(scale(1 / length, raw), first, strict=True)
    return jnp.stack([jnp.where(has_direction, x, otherwise) for x, otherwise in units])


def direction(vector: Float[Array, "3"]) -> Float[Array, "3"]:
    """Its unit vector, also where it is short: scaled up, as `normalise` gives up on short ones."""
    size = jax.lax.stop_gradient(jnp.maximum(jnp.max(jnp.abs(vector)), 1e-20))
    return normalise(vector / size)


def unit(angle: Scalar) -> Float[Array, "2"]:
    """(cos, sin)"""
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def cross(left: Float[Array, "3"], right: Float[Array, "3"]) -> Float[Array, "3"]:
    """Number by number, as `dot`."""
    (a, b, c), (x, y, z) = left, right
    return jnp.stack([b * z - c * y, c * x - a * z, a * y - b * x])


def quaternion(action: Rotation) -> tuple[Scalar, Float[Array, "3"]]:
    """The unit quaternion cos(theta / 2) + sin(theta / 2) xi."""
    half = jnp.arctan2(action.phase[1], action.phase[0]) / 2
    return jnp.cos(half), scale(jnp.sin(half), action.axis)


def rotation(w: Scalar, v: Float[Array, "3"]) -> Rotation:
    """The rotation of the unit quaternion w + v."""
    axis = direction(v)
    sin = dot(axis, v)
    return Rotation(axis, normalise(jnp.stack([w**2 - sin**2, 2 * w * sin])))
