"""The gated recurrent unit of Cho et al. (2014), in the form of cuDNN and PyTorch."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.initialise import uniform
from lantm.parts.affine import Affine, weight_and_bias
from lantm.parts.controllers.base import Layer, Vector


class GRUState(NamedTuple):
    hidden: Float[Array, "*batch hidden"]
    """h"""


class GRULayer(Layer):
    """h' = (1 - u) n + u h with n = tanh(W x + r (U h)).

    The rows of both maps lie in the order reset r, update u, candidate n.
    """

    from_input: eqx.nn.Linear
    from_hidden: eqx.nn.Linear
    initial: GRUState

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        self.from_input = eqx.nn.Linear(input_size, 3 * hidden_size, key=keys[0])
        self.from_hidden = eqx.nn.Linear(hidden_size, 3 * hidden_size, key=keys[1])
        self.initial = GRUState(uniform(keys[2], hidden_size))

    def affine(self) -> Affine:
        """z has four parts: what adds up for r and for u, and both halves of n on their own."""
        (weight, bias), (recurrent, other) = map(
            weight_and_bias, (self.from_input, self.from_hidden)
        )
        size = self.initial.hidden.shape[0]
        gates = 2 * size

        def parts(both: Array, left: Array, right: Array) -> Array:
            return jnp.concatenate([both[:gates], left, right])

        none = jnp.zeros_like(weight[:size]), jnp.zeros_like(recurrent[:size])
        from_input = parts(weight, weight[gates:], none[0])
        from_hidden = parts(recurrent, none[1], recurrent[gates:])
        biases = parts(bias + other, bias[gates:], other[gates:])
        return Affine(jnp.concatenate([from_input, from_hidden], axis=1).T, biases)

    @staticmethod
    def activate(z: Vector, state: GRUState) -> GRUState:
        reset, update, new, old = jnp.split(z, 4)
        candidate = jnp.tanh(new + jax.nn.sigmoid(reset) * old)
        keep = jax.nn.sigmoid(update)
        return GRUState((1 - keep) * candidate + keep * state.hidden)
