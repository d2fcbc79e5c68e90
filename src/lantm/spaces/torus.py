"""Circles and products of them under turns: keys that come back to where they were."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lantm.errors import require_positive
from lantm.spaces.base import EmbeddedKeySpace, Key, Paced
from lantm.spaces.chart import Chart, coordinates
from lantm.spaces.sphere import normalise

Angles = Float[Array, " circles"]


class Torus(EmbeddedKeySpace, Paced):
    """n unit circles in R^2n, each under SO(2). A group element is the angles of the turns."""

    circles: int = eqx.field(static=True)
    compact: ClassVar[bool] = True

    def __init__(self, circles: int = 2, *, bounded: bool = True):
        require_positive(circles=circles)
        self.circles, self.bounded = circles, bounded

    @property
    def key_size(self) -> int:
        return 2 * self.circles

    @property
    def algebra_size(self) -> int:
        return self.circles

    def project(self, raw: Key) -> Key:
        return jnp.concatenate([normalise(raw[i : i + 2]) for i in range(0, self.key_size, 2)])

    def exp(self, velocity: Angles) -> Angles:
        return velocity

    def log(self, action: Angles) -> Angles:
        return jnp.arctan2(jnp.sin(action), jnp.cos(action))

    def act(self, action: Angles, key: Key) -> Key:
        cos, sin = jnp.cos(action), jnp.sin(action)
        turned: list[Array] = []
        for i in range(self.circles):
            x, y = key[2 * i], key[2 * i + 1]
            turned += [cos[i] * x - sin[i] * y, sin[i] * x + cos[i] * y]
        return jnp.stack(turned)

    def inverse(self, action: Angles) -> Angles:
        return -action

    def compose(self, second: Angles, first: Angles) -> Angles:
        return second + first

    # ---- its own forms

    def chart(self, keys: np.ndarray) -> Chart:
        """The circle as it is, several as their angles."""
        if self.circles == 1:
            return Chart(keys, "circle", ("cosine", "sine"))
        chart = coordinates(np.arctan2(keys[:, 1::2], keys[:, 0::2]), "angle {}")
        return chart._replace(view="torus") if self.circles == 2 else chart
