"""Two key spaces as one: every head is in both at once."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.spaces.base import Action, Key, KeySpace, Raw, Reach, Scalar, Velocity
from lantm.spaces.chart import COMPONENT, MOST, Chart, numbered, principal_components


class Pair(NamedTuple):
    """A group element of each space."""

    first: Action
    second: Action


class BothReaches(Reach):
    """Each space's own bound on its own numbers."""

    first: Reach
    second: Reach
    size: int = eqx.field(static=True)
    """Numbers of the first."""

    def __call__(self, raw: Raw) -> Raw:
        return jnp.concatenate([self.first(raw[: self.size]), self.second(raw[self.size :])])


class Product(KeySpace):
    """Pairs of keys under pairs of group elements; squared distances add up."""

    first: KeySpace
    second: KeySpace

    def __init__(self, first: KeySpace, second: KeySpace):
        self.first, self.second = first, second

    @property
    def key_size(self) -> int:
        return self.first.key_size + self.second.key_size

    @property
    def algebra_size(self) -> int:
        return self.first.algebra_size + self.second.algebra_size

    def keys(self, key: Key) -> tuple[Array, Array]:
        """The parts of a key."""
        return key[: self.first.key_size], key[self.first.key_size :]

    def project(self, raw: Key) -> Key:
        first, second = self.keys(raw)
        return jnp.concatenate([self.first.project(first), self.second.project(second)])

    def exp(self, velocity: Velocity) -> Pair:
        size = self.first.algebra_size
        return Pair(self.first.exp(velocity[:size]), self.second.exp(velocity[size:]))

    def log(self, action: Pair) -> Velocity:
        return jnp.concatenate([self.first.log(action.first), self.second.log(action.second)])

    def act(self, action: Pair, key: Key) -> Key:
        first, second = self.keys(key)
        moved = self.first.act(action.first, first), self.second.act(action.second, second)
        return jnp.concatenate(moved)

    def mix(self, gate: Scalar, candidate: Key, key: Key) -> Key:
        (new, other_new), (old, other_old) = self.keys(candidate), self.keys(key)
        mixed = self.first.mix(gate, new, old), self.second.mix(gate, other_new, other_old)
        return jnp.concatenate(mixed)

    def squared_distance(
        self, key: Key, keys: Float[Array, "slots key_size"]
    ) -> Float[Array, " slots"]:
        (first, second), size = self.keys(key), self.first.key_size
        near = self.first.squared_distance(first, keys[:, :size])
        return near + self.second.squared_distance(second, keys[:, size:])

    def inverse(self, action: Pair) -> Pair:
        return Pair(self.first.inverse(action.first), self.second.inverse(action.second))

    def compose(self, second: Pair, first: Pair) -> Pair:
        return Pair(
            self.first.compose(second.first, first.first),
            self.second.compose(second.second, first.second),
        )

    # ---- as the two have them

    @property
    def action_size(self) -> int:
        return self.first.action_size + self.second.action_size

    def action(self, raw: Raw) -> Pair:
        size = self.first.action_size
        return Pair(self.first.action(raw[:size]), self.second.action(raw[size:]))

    def reach(self, key: PRNGKeyArray) -> Reach:
        first, second = jax.random.split(key)
        reaches = self.first.reach(first), self.second.reach(second)
        return BothReaches(*reaches, self.first.action_size)

    def identity(self) -> Pair:
        return Pair(self.first.identity(), self.second.identity())

    def mix_action(self, gate: Scalar, new: Pair, old: Pair) -> Pair:
        return Pair(
            self.first.mix_action(gate, new.first, old.first),
            self.second.mix_action(gate, new.second, old.second),
        )

    def chart(self, keys: np.ndarray) -> Chart:
        """The charts of the two side by side, where a picture has room for them."""
        size = self.first.key_size
        parts = [self.first.chart(keys[:, :size]), self.second.chart(keys[:, size:])]
        points, names = without_blanks(parts)
        if len(names) > MOST:
            return Chart(principal_components(points, 2), "components", numbered(COMPONENT, 2))
        return Chart(points, "space" if len(names) == MOST else "plane", names)


def without_blanks(charts: list[Chart]) -> tuple[np.ndarray, tuple[str, ...]]:
    """All coordinates, apart from those that are only there to make a plane of a line."""
    columns = [
        (column, name)
        for chart in charts
        for column, name in zip(chart.points.T, chart.axes, strict=True)
        if name
    ]
    return np.column_stack([column for column, _ in columns]), tuple(name for _, name in columns)
