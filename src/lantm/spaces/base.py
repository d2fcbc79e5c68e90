"""What a key space is: a manifold of keys with a Lie group acting on it (paper, section 3).

Everything here speaks of one key and one group element; `jax.vmap` adds the batch.
"""

import abc
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.spaces.chart import Chart, coordinates

Key: TypeAlias = Float[Array, " key_size"]
"""A point of the manifold K, in the coordinates of the space around it."""

Action: TypeAlias = Any
"""An element of the Lie group A, as the key space represents it: an array or a tuple of arrays."""

Velocity: TypeAlias = Float[Array, " algebra_size"]
"""An element of the Lie algebra: a direction to go in, and how far."""

Raw: TypeAlias = Float[Array, " action_size"]
"""What a controller emits to choose a group element."""

Scalar: TypeAlias = Float[Array, ""]


def dot(left: Float[Array, " n"], right: Float[Array, " n"]) -> Scalar:
    """Number by number: XLA makes one loop of that, but not of a sum over so short an axis."""
    return sum((x * y for x, y in zip(left[1:], right[1:], strict=True)), left[0] * right[0])


def scale(factor: Scalar, vector: Float[Array, " n"]) -> Float[Array, " n"]:
    """Number by number, for the sake of its derivative: that of a product is a sum."""
    return jnp.stack([factor * x for x in vector])


class Reach(eqx.Module):
    """How far a head's actions may go. It belongs to the head, and may learn."""

    @abc.abstractmethod
    def __call__(self, raw: Raw) -> Raw:
        """The controller's numbers, bounded."""


class Free(Reach):
    """No bound."""

    def __call__(self, raw: Raw) -> Raw:
        return raw


class UnitBall(Reach):
    """a / sqrt(1 + |a|^2): shorter than 1 (appendix A)."""

    def __call__(self, raw: Raw) -> Raw:
        return scale(1 / jnp.sqrt(1 + dot(raw, raw)), raw)


class LearnedPace(Reach):
    """A ball whose radius a head learns, at most 1; at first its steps are short."""

    bound: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.array(SHORT))
    """Before a sigmoid."""

    def __call__(self, raw: Raw) -> Raw:
        return scale(jax.nn.sigmoid(self.bound), UnitBall()(raw))


SHORT = -3.0
"""A radius of 0.05: some 130 steps around a circle."""


class KeySpace(eqx.Module):
    """A manifold K of keys, a Lie group A that acts on it, and a distance that A preserves.

    A space learns nothing: all heads share one.
    """

    key_size: eqx.AbstractVar[int]
    """Numbers in a key."""
    algebra_size: eqx.AbstractVar[int]
    """The dimension of the group."""

    @abc.abstractmethod
    def project(self, raw: Key) -> Key:
        """pi: any vector to a point of the manifold."""

    @abc.abstractmethod
    def exp(self, velocity: Velocity) -> Action:
        """The group element that a direction of the Lie algebra leads to."""

    @abc.abstractmethod
    def log(self, action: Action) -> Velocity:
        """The shortest direction that leads to a group element."""

    @abc.abstractmethod
    def act(self, action: Action, key: Key) -> Key:
        """a . q"""

    @abc.abstractmethod
    def mix(self, gate: Scalar, candidate: Key, key: Key) -> Key:
        """From `key` (gate 0) to `candidate` (gate 1): section 4.3 with gate = 1 - t."""

    @abc.abstractmethod
    def squared_distance(
        self, key: Key, keys: Float[Array, "slots key_size"]
    ) -> Float[Array, " slots"]:
        """d(q, k_i)^2, which unlike d is smooth where the head sits on a key."""

    @abc.abstractmethod
    def inverse(self, action: Action) -> Action:
        """The group element that undoes `action`."""

    @abc.abstractmethod
    def compose(self, second: Action, first: Action) -> Action:
        """The group element that does `first`, then `second`."""

    # ---- what a space may have in a form of its own

    @property
    def action_size(self) -> int:
        """Numbers a controller emits to choose a group element."""
        return self.algebra_size

    def action(self, raw: Raw) -> Action:
        """a(h): what a controller emits, bounded by the head's reach, to a group element."""
        return self.exp(raw)

    def reach(self, key: PRNGKeyArray) -> Reach:
        """How far a head may go in one step; the random key is for what it may have to learn."""
        return UnitBall()

    def identity(self) -> Action:
        """The group element that moves nothing."""
        return self.exp(jnp.zeros(self.algebra_size))

    def mix_action(self, gate: Scalar, new: Action, old: Action) -> Action:
        """From `old` (gate 0) to `new` (gate 1), along the one-parameter subgroup between them: the
        canonical interpolation of the paper's footnote; appendix B with gate = r.
        """
        between = self.log(self.compose(new, self.inverse(old)))
        return self.compose(self.exp(scale(gate, between)), old)

    def chart(self, keys: np.ndarray) -> Chart:
        """Keys, one a row, as points of a picture."""
        return coordinates(keys)


class EmbeddedKeySpace(KeySpace):
    """A manifold inside R^n, with R^n's distance and, projected back, R^n's straight lines.

    The group has to act by isometries of R^n.
    """

    def mix(self, gate: Scalar, candidate: Key, key: Key) -> Key:
        return self.project(scale(gate, candidate) + scale(1 - gate, key))

    def squared_distance(
        self, key: Key, keys: Float[Array, "slots key_size"]
    ) -> Float[Array, " slots"]:
        away = [(keys[:, i] - key[i]) ** 2 for i in range(self.key_size)]
        return sum(away[1:], away[0])


class Paced(KeySpace):
    """A key space whose heads go less than 1 in a step (appendix A), unless it is not `bounded`."""

    bounded: bool = eqx.field(static=True, default=True, kw_only=True)
    compact: ClassVar[bool] = False
    """Whether whoever goes on comes back. With steps of nearly 1 a tape would lie upon itself after
    a few memories, so heads begin with short ones and learn how long they are."""

    def reach(self, key: PRNGKeyArray) -> Reach:
        if not self.bounded:
            return Free()
        return LearnedPace() if self.compact else UnitBall()
