"""The LSTM: the paper's controller (section 5)."""

from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.initialise import uniform
from lantm.parts.affine import Affine, weight_and_bias
from lantm.parts.controllers.base import Layer, Vector

Tree = TypeVar("Tree")


class LSTMState(NamedTuple):
    hidden: Float[Array, "*batch hidden"]
    """h"""
    cell: Float[Array, "*batch hidden"]
    """c"""


class LSTMLayer(Layer):
    """One layer, with a learnable initial state and, as in Torch, two bias vectors.

    The gates lie in the order forget, input, output, candidate.
    """

    from_input: eqx.nn.Linear
    from_hidden: eqx.nn.Linear
    initial: LSTMState

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.from_input = eqx.nn.Linear(input_size, 4 * hidden_size, key=keys[0])
        self.from_hidden = eqx.nn.Linear(hidden_size, 4 * hidden_size, key=keys[1])
        self.initial = LSTMState(uniform(keys[2], hidden_size), uniform(keys[3], hidden_size))

    def affine(self) -> Affine:
        (weight, bias), (recurrent, other) = map(
            weight_and_bias, (self.from_input, self.from_hidden)
        )
        return Affine(jnp.concatenate([weight, recurrent], axis=1).T, bias + other)

    @staticmethod
    def activate(z: Vector, state: LSTMState) -> LSTMState:
        return activate(z, state)


@jax.custom_jvp
def activate(z: Vector, state: LSTMState) -> LSTMState:
    """c' = f c + i n and h' = o tanh(c')."""
    forget, enter, leave, candidate = jnp.split(squash(z)[0], 4)
    cell = forget * state.cell + enter * candidate
    return LSTMState(leave * jnp.tanh(cell), cell)


@activate.defjvp
def activate_jvp(given: Any, directions: Any) -> tuple[LSTMState, LSTMState]:
    """The derivative by as few numbers as it takes: the fast loop keeps them for every step."""
    z, state = given
    d_z, d_state = directions
    gates, slopes = squash(z)
    forget, enter, leave, candidate = jnp.split(gates, 4)
    cell = forget * state.cell + enter * candidate
    squashed = jnp.tanh(cell)
    by_gates = slopes * jnp.concatenate([state.cell, candidate, squashed, enter])
    by_forget, by_enter, by_leave, by_candidate = jnp.split(by_gates * d_z, 4)
    d_cell = forget * d_state.cell + by_forget + by_enter + by_candidate
    d_hidden = by_leave + leave * (1 - squashed**2) * d_cell
    return LSTMState(leave * squashed, cell), LSTMState(d_hidden, d_cell)


def squash(z: Vector) -> tuple[Vector, Vector]:
    """Three sigmoids and a tanh by one tanh, and their derivatives.

    sigmoid(z) = (1 + tanh(z / 2)) / 2
    """
    scale = jnp.where(jnp.arange(z.size) < 3 * (z.size // 4), 0.5, 1.0).astype(z.dtype)
    curve = jnp.tanh(z * scale)
    return curve * scale + (1 - scale), scale**2 * (1 - curve**2)


def set_forget_bias(machine: Tree, bias: float, cells: int | None = None) -> Tree:
    """Both forget biases of every LSTM layer, or of its first cells; the forget gate comes first
    of four.
    """

    def raised(linear: eqx.nn.Linear) -> eqx.nn.Linear:
        biases = weight_and_bias(linear)[1]
        return eqx.tree_at(
            lambda part: part.bias, linear, biases.at[: cells or biases.size // 4].set(bias)
        )

    def changed(node: Any) -> Any:
        if not is_layer(node):
            return node
        maps = raised(node.from_input), raised(node.from_hidden)
        return eqx.tree_at(lambda layer: (layer.from_input, layer.from_hidden), node, maps)

    def is_layer(node: Any) -> bool:
        return isinstance(node, LSTMLayer)

    return jax.tree.map(changed, machine, is_leaf=is_layer)
