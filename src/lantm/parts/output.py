"""From the controller's state and the readings to a step's output."""

import abc
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.parts.affine import weight_and_bias

Vector = Float[Array, " _"]


class Output(eqx.Module):
    """What a step says: what the controller says itself, and a linear map of some features.

    The loops call it after the last step, for all steps at once, with one product for both.
    """

    gated: eqx.AbstractVar[bool]
    """Whether the controller gates the readings' part."""

    @abc.abstractmethod
    def features(
        self,
        gate: Float[Array, ""] | None,
        hidden: Float[Array, " hidden"],
        reading: Float[Array, " width"],
    ) -> Float[Array, " features"]:
        """Of the controller's state and all readings in a row."""

    @abc.abstractmethod
    def matrix(self) -> Float[Array, "output_size features"]:
        """What they are multiplied by."""


class LinearOutput(Output):
    """The paper's: a linear function of h plus, gated, one of the reading."""

    readout: eqx.nn.Linear
    gated: bool = eqx.field(static=True)

    def __init__(
        self, hidden_size: int, width: int, output_size: int, *, gated: bool, key: PRNGKeyArray
    ):
        self.readout = eqx.nn.Linear(width, output_size, key=key)
        self.gated = gated

    def features(self, gate: Float[Array, ""] | None, hidden: Vector, reading: Vector) -> Vector:
        """The reading and, for the bias, a one."""
        shown = jnp.append(reading, jnp.ones((), reading.dtype))
        return shown if gate is None else gate * shown

    def matrix(self) -> Float[Array, "output_size features"]:
        weight, bias = weight_and_bias(self.readout)
        return jnp.concatenate([weight, bias[:, None]], axis=1)


class NonlinearOutput(Output):
    """The paper's output plus B relu(A [h; reading] + b): what depends on both at once.

    A sum of a function of h and a function of the reading cannot add a digit in memory to a carry
    in the state.
    """

    linear: LinearOutput
    inner: eqx.nn.Linear
    outer: eqx.nn.Linear

    def __init__(
        self,
        hidden_size: int,
        width: int,
        output_size: int,
        *,
        gated: bool,
        key: PRNGKeyArray,
        units: int = 64,
    ):
        require_positive(units=units)
        inner, outer = jax.random.split(jax.random.fold_in(key, 1))
        self.linear = LinearOutput(hidden_size, width, output_size, gated=gated, key=key)
        self.inner = eqx.nn.Linear(hidden_size + width, units, key=inner)
        self.outer = eqx.nn.Linear(units, output_size, use_bias=False, key=outer)

    @property
    def gated(self) -> bool:
        return self.linear.gated

    def features(self, gate: Float[Array, ""] | None, hidden: Vector, reading: Vector) -> Vector:
        both = jax.nn.relu(self.inner(jnp.concatenate([hidden, reading])))
        return jnp.concatenate([self.linear.features(gate, hidden, reading), both])

    def matrix(self) -> Float[Array, "output_size features"]:
        return jnp.concatenate([self.linear.matrix(), self.outer.weight], axis=1)


MakeOutput: TypeAlias = Callable[..., Output]
"""From `hidden_size`, `width`, `output_size`, `gated` and the random `key`."""


OUTPUTS: dict[str, MakeOutput] = {"linear": LinearOutput, "nonlinear": NonlinearOutput}
"""What makes an output layer, by name."""
