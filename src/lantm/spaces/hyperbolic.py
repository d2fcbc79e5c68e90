"""H^2, the hyperbolic plane, under its isometries: the room grows exponentially with the radius."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lantm.spaces.base import Key, Paced, Scalar, dot, scale
from lantm.spaces.chart import Chart, numbered
from lantm.spaces.smooth import ARCSINE, ARCSINE_SQUARE, NARROW, positive, smooth

FAR = 20.0
"""Keys stay within |log y| <= FAR and |x| <= exp(FAR), velocities within FAR: there single
precision has no overflow, and beyond it could not tell directions apart."""

ARSINE = [(-1) ** k * coefficient for k, coefficient in enumerate(ARCSINE)]
DISTANCE = [0.0, *(4 * (-1) ** k * coefficient for k, coefficient in enumerate(ARCSINE_SQUARE))]
"""Of arsinh(t) / t, and (2 arsinh(t))^2."""
SHORTEST = 1e-15
"""The least |c z + d| to divide by. It is 0 only by rounding, where c x = -d and y is tiny."""


class Moebius(NamedTuple):
    """z -> (a z + b) / (c z + d) with a d - b c = 1. The negative of all four is the same one."""

    a: Scalar
    b: Scalar
    c: Scalar
    d: Scalar


class Hyperbolic(Paced):
    """The half-plane of z = x + i y, y > 0, with the group PSL(2, R). A key is (x, log y).

    A velocity is that along y, across it, and the angle of a turn about i: of a boost by one unit,
    keys on its axis go as far as 1.
    """

    key_size: ClassVar[int] = 2
    algebra_size: ClassVar[int] = 3

    def project(self, raw: Key) -> Key:
        x, height = raw
        far = jnp.exp(jnp.asarray(FAR, raw.dtype))
        return jnp.stack([jnp.clip(x, -far, far), jnp.clip(height, -FAR, FAR)])

    def exp(self, velocity: Float[Array, "3"]) -> Moebius:
        along, across, turn = shorten(velocity) / 2
        square = along**2 + across**2 - turn**2
        cosh = smooth(square, positive(0), jnp.cosh, jnp.cos)
        sinh = smooth(square, positive(1), lambda t: jnp.sinh(t) / t, lambda t: jnp.sin(t) / t)
        return Moebius(
            cosh + sinh * along, sinh * (across - turn), sinh * (across + turn), cosh - sinh * along
        )

    def log(self, action: Moebius) -> Float[Array, "3"]:
        """Of the two signs that with the smaller turn."""
        sign = jnp.where(action.a + action.d < 0, -1.0, 1.0)
        a, b, c, d = (sign * number for number in action)
        along, half_trace = (a - d) / 2, (a + d) / 2
        square = along**2 + b * c

        def turn(t: Scalar) -> Scalar:
            return jnp.arctan2(t, half_trace) / t

        share = smooth(square, ARSINE, lambda t: arsinh(t) / t, turn, near=NARROW)
        return jnp.stack([2 * share * along, share * (b + c), share * (c - b)])

    def act(self, action: Moebius, key: Key) -> Key:
        (a, b, c, d), (x, height) = action, key
        y = jnp.exp(height)
        real, imaginary = c * x + d, c * y
        length = jnp.sqrt(jnp.maximum(real**2 + imaginary**2, SHORTEST**2))
        moved = ((a * x + b) * (real / length) + a * y * (imaginary / length)) / length
        return self.project(jnp.stack([moved, height - 2 * jnp.log(length)]))

    def mix(self, gate: Scalar, candidate: Key, key: Key) -> Key:
        return scale(gate, candidate) + scale(1 - gate, key)

    def squared_distance(self, key: Key, keys: Float[Array, "slots 2"]) -> Float[Array, " slots"]:
        """sinh(d / 2)^2 = sinh((h - h') / 2)^2 + (x - x')^2 / (4 y y'), from differences alone, so
        that nothing cancels far out.
        """
        half = (keys[:, 1] - key[1]) / 2
        growth, grown = jnp.exp(half), jnp.expm1(half)
        up = grown * (grown + 2) / (2 * growth)
        over = (keys[:, 0] - key[0]) * (jnp.exp(-key[1]) / growth) / 2
        return smooth(up**2 + over**2, DISTANCE, lambda t: (2 * arsinh(t)) ** 2, near=NARROW)

    def inverse(self, action: Moebius) -> Moebius:
        return Moebius(action.d, -action.b, -action.c, action.a)

    def compose(self, second: Moebius, first: Moebius) -> Moebius:
        (a, b, c, d), (e, f, g, h) = second, first
        return Moebius(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)

    # ---- its own forms

    def chart(self, keys: np.ndarray) -> Chart:
        """Poincare's disc, with i as its middle."""
        z = keys[:, 0] + 1j * np.exp(keys[:, 1])
        disc = (z - 1j) / (z + 1j)
        return Chart(np.column_stack([disc.real, disc.imag]), "disc", numbered("disc {}", 2))


def shorten(velocity: Float[Array, "3"]) -> Float[Array, "3"]:
    """The same direction, of a length that stays finite when it is exponentiated."""
    square = dot(velocity, velocity)
    is_long = square > FAR**2
    return scale(FAR / jnp.sqrt(jnp.where(is_long, square, FAR**2)), velocity)


def arsinh(t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Of positive numbers that are not small; quicker than one for all."""
    return jnp.log(t + jnp.sqrt(1 + t**2))
