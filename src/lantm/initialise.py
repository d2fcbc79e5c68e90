"""How parameters start."""

from typing import TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

Tree = TypeVar("Tree")


def uniform(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    """Uniform in [-1, 1]: how the authors' program starts every learnable initial state."""
    return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)


def redraw_uniform(tree: Tree, key: PRNGKeyArray) -> Tree:
    """Every parameter anew, uniform in [-1, 1]: the initialisation `1` of the paper's grid."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    keys = jax.random.split(key, len(leaves))
    drawn = [uniform(k, *leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, drawn), rest)
