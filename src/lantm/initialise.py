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


def set_forget_bias(machine: Tree, bias: float) -> Tree:
    """Both forget biases of every LSTM layer; the forget gate comes first of four."""

    def raised(path: tuple, leaf: Array) -> Array:
        name = jax.tree_util.keystr(path)
        is_bias = name.endswith((".from_input.bias", ".from_hidden.bias"))
        return leaf.at[: leaf.size // 4].set(bias) if is_bias else leaf

    return jax.tree_util.tree_map_with_path(raised, machine)
