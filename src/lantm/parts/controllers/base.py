"""What a controller is: layers, each an affine map and then a small `activate`."""

import abc
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.parts.affine import Affine

Vector: TypeAlias = Float[Array, " _"]


@runtime_checkable
class LayerState(Protocol):
    """What a layer carries from step to step: a named tuple of arrays, one of them `hidden`."""

    @property
    def hidden(self) -> Array: ...


Activate: TypeAlias = Callable[[Vector, Any], Any]
"""`Layer.activate`"""


class Layer(eqx.Module):
    """One recurrent layer: z = [x; h] M + b, then state' = activate(z, state).

    All parameters are in the affine map and the initial state, so that the fast loop can keep the
    derivatives of `activate` for all steps, and form those of the parameters in one product.
    """

    initial: eqx.AbstractVar[LayerState]
    """Learned."""

    @abc.abstractmethod
    def affine(self) -> Affine:
        """From the input and, below it, the hidden state to z."""

    @staticmethod
    @abc.abstractmethod
    def activate(z: Vector, state: Any) -> Any:
        """The new state, a `LayerState` like the old one."""

    def __call__(self, state: LayerState, inputs: Vector) -> LayerState:
        matrix, bias = self.affine()
        return self.activate(jnp.concatenate([inputs, state.hidden]) @ matrix + bias, state)


MakeLayer: TypeAlias = Callable[..., Layer]
"""From `input_size`, `hidden_size` and the random `key`."""


class Controller(eqx.Module):
    """A stack of layers."""

    layers: tuple[Layer, ...]

    def __init__(
        self,
        make: MakeLayer,
        input_size: int,
        hidden_size: int,
        layers: int = 1,
        *,
        key: PRNGKeyArray,
    ):
        require_positive(input_size=input_size, hidden_size=hidden_size, layers=layers)
        sizes = [input_size] + [hidden_size] * (layers - 1)
        keys = jax.random.split(key, layers)
        self.layers = tuple(
            make(size, hidden_size, key=k) for size, k in zip(sizes, keys, strict=True)
        )

    @property
    def initial(self) -> tuple[LayerState, ...]:
        return tuple(layer.initial for layer in self.layers)

    @property
    def noise_size(self) -> int:
        """Numbers that the first layer activates."""
        return self.layers[0].affine().bias.shape[0]

    @property
    def activates(self) -> tuple[Activate, ...]:
        return tuple(layer.activate for layer in self.layers)

    def __call__(self, states: tuple[LayerState, ...], inputs: Vector) -> tuple[LayerState, ...]:
        """The new state of every layer; the last one's `hidden` is the output."""
        new = []
        for layer, state in zip(self.layers, states, strict=True):
            new.append(layer(state, inputs))
            inputs = new[-1].hidden
        return tuple(new)
