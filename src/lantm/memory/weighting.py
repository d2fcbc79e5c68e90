"""Distances and strengths to read weights (paper, section 4.2).

The schemes score the memories by their distance from the read head, multiply by the strengths and
normalise. `valid` marks the slots of a buffer that hold a memory; the others get weight zero.
"""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from jaxtyping import Scalar as AnyScalar

PerSlot = Float[Array, " slots"]
Valid = Bool[Array, " slots"]

FLOOR = 1e-9
"""Every memory keeps this much weight, so that weights exist when all strengths are zero."""


class Weighting(eqx.Module):
    """How strongly each memory takes part in a reading: w_i(q, Sigma).

    A scheme of one's own has its own `scores`, or `masses` where strengths count otherwise. The
    machines call these and normalise themselves, so `__call__` is not for overriding.
    """

    raw_size: eqx.AbstractVar[int]
    """Numbers the controller emits for this scheme at every step."""
    leak: eqx.AbstractVar[float]
    """Passed on to `to_weights`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls):
            raise TypeError(f"{cls.__name__} must override scores or masses, not __call__")

    @abc.abstractmethod
    def scores(
        self, squared_distances: PerSlot, raw: Float[Array, " raw_size"], valid: Valid
    ) -> PerSlot:
        """The weights if all strengths were equal."""

    def __call__(
        self,
        squared_distances: PerSlot,
        raw: Float[Array, " raw_size"],
        strengths: PerSlot,
        valid: Valid,
    ) -> PerSlot:
        return to_weights(self.masses(squared_distances, raw, strengths, valid), self.leak)

    def masses(
        self,
        squared_distances: PerSlot,
        raw: Float[Array, " raw_size"],
        strengths: PerSlot,
        valid: Valid,
    ) -> PerSlot:
        """The weights before they are normalised."""
        return strengthen(self.scores(squared_distances, raw, valid), strengths, valid)


class InverseSquare(Weighting):
    """w_i ~ s_i d(q, k_i)^-2"""

    softening: float = eqx.field(static=True, default=1e-10)
    """Added to every squared distance. The limit q -> k_i needs no case of its own then: the memory
    takes all of the weight, and several memories at one key share it."""
    leak: float = eqx.field(static=True, default=0.0)
    raw_size: ClassVar[int] = 0

    def scores(
        self, squared_distances: PerSlot, raw: Float[Array, " raw_size"], valid: Valid
    ) -> PerSlot:
        closeness = jnp.where(valid, 1 / (squared_distances + self.softening), 0.0)
        return closeness / jnp.sum(closeness)


class Softmax(Weighting):
    """w_i ~ s_i exp(-d(q, k_i)^2 / T), the temperature T = softplus of the controller's output."""

    leak: float = eqx.field(static=True, default=0.0)
    raw_size: ClassVar[int] = 1

    def scores(
        self, squared_distances: PerSlot, raw: Float[Array, " raw_size"], valid: Valid
    ) -> PerSlot:
        return softmax(-squared_distances / temperature(raw[0]), valid)


class InversePower(Weighting):
    """w_i ~ s_i d(q, k_i)^(-2 gamma), gamma = 1 + softplus of the controller's output.

    Like the inverse square it has no scale and a heavy tail, and it can be as sharp as need be.
    """

    softening: float = eqx.field(static=True, default=1e-6)
    """Added to every squared distance, so that the logarithm exists on a key."""
    leak: float = eqx.field(static=True, default=0.0)
    raw_size: ClassVar[int] = 1

    def scores(
        self, squared_distances: PerSlot, raw: Float[Array, " raw_size"], valid: Valid
    ) -> PerSlot:
        gamma = 1 + jax.nn.softplus(raw[0])
        return softmax(-gamma * jnp.log(squared_distances + self.softening), valid)


WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "inverse_square": InverseSquare,
    "softmax": Softmax,
    "inverse_power": InversePower,
}
"""What makes every weighting, by name."""

COLDEST = 1e-6
"""The lowest temperature. softplus underflows to zero for inputs near -100 in single precision."""


def temperature(raw: AnyScalar) -> AnyScalar:
    """T > 0 from any number."""
    return jnp.maximum(jax.nn.softplus(raw), COLDEST)


def softmax(logits: PerSlot, valid: Valid) -> PerSlot:
    """The softmax over the valid slots."""
    return jax.nn.softmax(jnp.where(valid, logits, -jnp.inf))


def strengthen(scores: PerSlot, strengths: PerSlot, valid: Valid) -> PerSlot:
    """Scores times strengths, with a floor under them."""
    return jnp.where(valid, scores * strengths + FLOOR, 0.0)


def to_weights(masses: PerSlot, leak: float = 0.0) -> PerSlot:
    """The weights of one reading.

    The authors' program adds a `leak` of 1e-10 to the normaliser, so that its weights sum to a
    little less than one where all strengths are small.
    """
    return masses / (jnp.sum(masses) + leak)
