"""Vectors that a controller emits, in pieces."""

from collections.abc import Sequence
from itertools import accumulate

import jax.numpy as jnp
from jaxtyping import Array, Shaped


def split(vector: Shaped[Array, " n"], sizes: Sequence[int]) -> list[Shaped[Array, " _"]]:
    """Consecutive pieces of the given sizes."""
    return jnp.split(vector, list(accumulate(sizes))[:-1])
