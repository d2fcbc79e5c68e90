"""The LSTM: the controller of every machine."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform


class LSTMState(NamedTuple):
    hidden: Float[Array, " hidden"]
    """h"""
    cell: Float[Array, " hidden"]
    """c"""


class LSTMLayer(eqx.Module):
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

    def __call__(self, state: LSTMState, inputs: Float[Array, " input_size"]) -> LSTMState:
        gates = self.from_input(inputs) + self.from_hidden(state.hidden)
        forget, enter, leave, candidate = jnp.split(gates, 4)
        cell = jax.nn.sigmoid(forget) * state.cell + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
        return LSTMState(jax.nn.sigmoid(leave) * jnp.tanh(cell), cell)


class Controller(eqx.Module):
    """A stack of LSTM layers."""

    layers: tuple[LSTMLayer, ...]

    def __init__(self, input_size: int, hidden_size: int, layers: int = 1, *, key: PRNGKeyArray):
        require_positive(input_size=input_size, hidden_size=hidden_size, layers=layers)
        sizes = [input_size] + [hidden_size] * (layers - 1)
        keys = jax.random.split(key, layers)
        self.layers = tuple(
            LSTMLayer(size, hidden_size, key=k) for size, k in zip(sizes, keys, strict=True)
        )

    @property
    def initial(self) -> tuple[LSTMState, ...]:
        return tuple(layer.initial for layer in self.layers)

    def __call__(
        self, states: tuple[LSTMState, ...], inputs: Float[Array, " input_size"]
    ) -> tuple[LSTMState, ...]:
        """The new state of every layer; the last one's `hidden` is the output."""
        new = []
        for layer, state in zip(self.layers, states, strict=True):
            new.append(layer(state, inputs))
            inputs = new[-1].hidden
        return tuple(new)
