"""Whether the methods of a key space return what they have to, by their shapes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from lantm.spaces.base import KeySpace

SLOTS = 5
"""Memories to measure distances to: a number that no other size is likely to be."""


def require_shapes(space: KeySpace) -> None:
    """A ValueError names the method that returned something else than it has to, and what."""
    key, velocity = number(space.key_size), number(space.algebra_size)
    keys, gate, raw = number(SLOTS, space.key_size), number(), number(space.action_size)
    action = jax.eval_shape(space.action, raw)
    expect(space, "project", key, space.project, key)
    expect(space, "log", velocity, space.log, jax.eval_shape(space.exp, velocity))
    expect(space, "act", key, space.act, action, key)
    expect(space, "mix", key, space.mix, gate, key, key)
    expect(space, "squared_distance", number(SLOTS), space.squared_distance, key, keys)
    expect(space, "inverse", action, space.inverse, action)
    expect(space, "compose", action, space.compose, action, action)
    expect(space, "mix_action", action, space.mix_action, gate, action, action)


def number(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)


def expect(
    space: KeySpace, name: str, wanted: Any, method: Callable[..., Any], *given: Any
) -> None:
    found = jax.eval_shape(method, *given)
    if describe(found) != describe(wanted):
        raise ValueError(
            f"{type(space).__name__}.{name} must return {describe(wanted)}, got {describe(found)}"
        )


def describe(tree: Any) -> str:
    """The shapes of all arrays: `shape (2,)`."""
    leaves = [str(tuple(leaf.shape)) for leaf in jax.tree.leaves(tree)]
    return f"shape {leaves[0]}" if len(leaves) == 1 else f"shapes {' and '.join(leaves)}"
