"""A start with heads that go straight on."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from lantm.machines.cell import Cell
from lantm.machines.memory_cell import MemoryCell
from lantm.parts import LieAccess
from lantm.parts.pieces import split

PACE = 0.3
"""The length of a straight start's action, before a space bounds it; heads can go twice as fast."""


def straighten(cell: Cell, key: PRNGKeyArray) -> Cell:
    """The same cell with heads that at first go straight on, in the same direction.

    All heads get one short action of random direction, and what the controller's state adds to it
    is a tenth of what it was. So keys begin as a line, whatever is written. A cell without such
    heads stays as it is.
    """
    if not (isinstance(cell, MemoryCell) and isinstance(cell.access, LieAccess)):
        return cell
    access = cell.access
    weight, bias = jnp.asarray(cell.interface.weight), jnp.asarray(cell.interface.bias)
    *_, command = split(jnp.arange(cell.interface.out_features), cell.command_sizes)
    for head, places in zip(access.heads, split(command, access.command_sizes), strict=False):
        _, _, action, _ = split(places, head.command_sizes)
        direction = jax.random.normal(key, action.shape)
        bias = bias.at[action].set(PACE * direction / jnp.linalg.norm(direction))
        weight = weight.at[action].divide(10)
    return eqx.tree_at(
        lambda cell: (cell.interface.weight, cell.interface.bias), cell, (weight, bias)
    )
