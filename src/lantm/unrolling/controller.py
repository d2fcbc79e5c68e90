"""The controller inside the fast loop: a step, and its adjoint."""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from lantm.parts import Controller, Layer, LayerState
from lantm.parts.affine import Affine
from lantm.parts.controllers import Activate
from lantm.parts.overrides import owner
from lantm.unrolling.timed import Batched, Timed, affine_gradient

States: TypeAlias = tuple[LayerState, ...]


class Weights(NamedTuple):
    """What the controller multiplies by."""

    layers: tuple[Affine, ...]
    """From [what is below; its own hidden state]. Below the first: input and reading."""
    command: Affine

    @classmethod
    def of(cls, controller: Controller, command: Affine) -> "Weights":
        return cls(tuple(layer.affine() for layer in controller.layers), command)

    def for_inputs(self, size: int) -> Affine:
        """What multiplies inputs of that size: for all of them, before the loop."""
        matrix, bias = self.layers[0]
        return Affine(matrix[:size], bias)

    def inside(self, size: int) -> "Weights":
        """What multiplies something in the loop."""
        (matrix, bias), *others = self.layers
        return Weights((Affine(matrix[size:], bias), *others), self.command)


def is_loopable(controller: Controller) -> bool:
    """Whether a step of the controller is its layers' affine maps and `activate`."""
    return owner(type(controller), "__call__") is Controller and all(
        owner(type(layer), "__call__") is Layer for layer in controller.layers
    )


def control(
    activates: tuple[Activate, ...],
    weights: Weights,
    projected: Batched,
    reading: Batched,
    states: States,
) -> tuple[States, tuple[Any, ...]]:
    """The new state of every layer, and for each what takes its cotangent to those of z and of the
    old state.
    """
    below, new, pulls = reading, [], []
    layers = zip(activates, weights.layers, states, strict=True)
    for number, (activate, (matrix, bias), state) in enumerate(layers):
        z = jnp.concatenate([below, state.hidden], axis=1) @ matrix
        z = z + (bias[None] if number else projected)
        after, pull = jax.vmap(partial(jax.vjp, activate))(z, state)
        below = after.hidden
        new.append(after)
        pulls.append(pull)
    return tuple(new), tuple(pulls)


def command_of(weights: Weights, states: States) -> Batched:
    """What the last hidden state says."""
    return states[-1].hidden @ weights.command.matrix + weights.command.bias[None]


def uncontrol(
    transposed: Weights, pulls: tuple[Any, ...], after: Any, hidden: Batched
) -> tuple[Any, Batched, tuple[Batched, ...]]:
    """Cotangents of the old states, of the old reading, and of all z.

    `hidden` is what the last hidden state gets from this step's command and output.
    """
    states, all_z = [], []
    for (matrix, _), pull, state in reversed(
        list(zip(transposed.layers, pulls, after, strict=True))
    ):
        new = state._replace(hidden=state.hidden + hidden)
        z, old = jax.vmap(lambda pull, new: pull(new))(pull, new)
        below = z @ matrix
        size = new.hidden.shape[1]
        states.append(old._replace(hidden=old.hidden + below[:, -size:]))
        all_z.append(z)
        hidden = below[:, :-size]
    return tuple(reversed(states)), hidden, tuple(reversed(all_z))


def weight_gradients(
    inputs: Timed,
    readings: Timed,
    before: Any,
    after: Any,
    d_z: tuple[Timed, ...],
    d_command: Timed,
) -> Weights:
    """One product for each matrix."""
    below, layers = jnp.concatenate([inputs, readings], axis=2), []
    for old, new, d in zip(before, after, d_z, strict=True):
        layers.append(affine_gradient(jnp.concatenate([below, old.hidden], axis=2), d))
        below = new.hidden
    return Weights(tuple(layers), affine_gradient(below, d_command))
