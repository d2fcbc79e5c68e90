"""S^2 under rotations: the keys of SLANTM (paper, section 3.1, example 2)."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.spaces.base import EmbeddedKeySpace, Key, Scalar, dot, scale


class Rotation(NamedTuple):
    """An element of SO(3). (-axis, -angle) is the same rotation, and so is any axis at angle 0."""

    axis: Float[Array, "3"]
    """xi, a unit vector."""
    phase: Float[Array, "2"]
    """(cos theta, sin theta) of the angle."""


class Sphere(EmbeddedKeySpace):
    """S^2 in R^3 with the group SO(3) acting by rotation."""

    bound: Float[Array, ""] | None = None
    """A learnable number b that keeps |theta| below pi sigmoid(b - 5); None: |theta| < 1."""
    geodesic: bool = eqx.field(static=True, default=False)
    """Mix rotations along the shortest path in SO(3) instead of axis and angle on their own."""
    softening: float = eqx.field(static=True, default=0.0)
    """Added to the squared length in every normalisation. The authors' program has 1e-10, which
    leaves keys a little inside the sphere."""

    key_size: ClassVar[int] = 3
    action_size: ClassVar[int] = 4

    @classmethod
    def bounded(cls, key: PRNGKeyArray) -> "Sphere":
        """A sphere with a learnable bound on the angle; every head gets its own."""
        return cls(bound=jax.random.uniform(key, minval=-1.0, maxval=1.0))

    def project(self, raw: Key) -> Key:
        return normalise(raw, self.softening)

    def action(self, raw: Float[Array, "4"]) -> Rotation:
        largest = 1.0 if self.bound is None else jnp.pi * jax.nn.sigmoid(self.bound - 5)
        angle = jnp.tanh(raw[3]) * largest
        phase = jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        return Rotation(normalise(raw[:3], self.softening), phase)

    def act(self, action: Rotation, key: Key) -> Key:
        """Rodrigues' rotation formula."""
        axis, cos, sin = action.axis, action.phase[0], action.phase[1]
        turned = scale(cos, key) + scale(sin, cross(axis, key))
        return turned + scale(dot(axis, key) * (1 - cos), axis)

    def mix_action(self, gate: Scalar, new: Rotation, old: Rotation) -> Rotation:
        if self.geodesic:
            return self.compose(power(self.compose(new, self.inverse(old)), gate), old)
        axis = scale(gate, new.axis) + scale(1 - gate, old.axis)
        phase = scale(gate, new.phase) + scale(1 - gate, old.phase)
        return Rotation(normalise(axis, self.softening), normalise(phase, self.softening))

    def identity(self) -> Rotation:
        return Rotation(jnp.array([1.0, 0.0, 0.0]), jnp.array([1.0, 0.0]))

    def inverse(self, action: Rotation) -> Rotation:
        return Rotation(action.axis, action.phase * jnp.array([1.0, -1.0], action.phase.dtype))

    def compose(self, second: Rotation, first: Rotation) -> Rotation:
        """The product of the two unit quaternions (w, v)."""
        w2, v2 = quaternion(second)
        w1, v1 = quaternion(first)
        return rotation(w2 * w1 - dot(v2, v1), scale(w2, v1) + scale(w1, v2) + cross(v2, v1))


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
    # v is short where the angle is small: scaled up, as `normalise` gives up on short vectors.
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.max(jnp.abs(v)), 1e-15))
    axis = normalise(v / scale)
    sin = dot(axis, v)
    return Rotation(axis, normalise(jnp.stack([w**2 - sin**2, 2 * w * sin])))


def power(action: Rotation, exponent: Scalar) -> Rotation:
    """exp(exponent * log(action)): the same axis, a multiple of the angle."""
    angle = exponent * jnp.arctan2(action.phase[1], action.phase[0])
    return Rotation(action.axis, jnp.stack([jnp.cos(angle), jnp.sin(angle)]))
