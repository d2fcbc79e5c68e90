"""The memory Sigma: an append-only set of (key, value, strength) (paper, section 4.2)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform


class Slots(NamedTuple):
    """What addressing sees of a memory."""

    keys: Float[Array, "slots key_size"]
    strengths: Float[Array, " slots"]
    valid: Bool[Array, " slots"]
    """Which slots hold a memory."""


class Memory(eqx.Module):
    """A buffer whose first `count` slots hold memories. Immutable: a write returns a new one."""

    keys: Float[Array, "*batch slots key_size"]
    """k_i"""
    values: Float[Array, "*batch slots width"]
    """v_i"""
    strengths: Float[Array, "*batch slots"]
    """s_i"""
    count: Int[Array, "*batch"]

    @property
    def capacity(self) -> int:
        return self.strengths.shape[-1]

    @property
    def slots(self) -> Slots:
        return Slots(self.keys, self.strengths, jnp.arange(self.capacity) < self.count)

    def read(self, weights: Float[Array, "*reads slots"]) -> Float[Array, "*reads width"]:
        """rho = sum_i w_i v_i"""
        return weights @ self.values

    def write(
        self,
        key: Float[Array, " key_size"],
        value: Float[Array, " width"],
        strength: Float[Array, ""],
    ) -> "Memory":
        """Sigma with (k, v, s) added.

        A full buffer is an error where the count is known; inside `jax.jit` it is not, and whoever
        makes the buffer has to make it large enough.
        """
        if not isinstance(self.count, jax.core.Tracer) and int(self.count) >= self.capacity:
            raise ValueError(f"capacity must be above {self.capacity}: the memory is full")
        return Memory(
            self.keys.at[self.count].set(key, mode="drop"),
            self.values.at[self.count].set(value, mode="drop"),
            self.strengths.at[self.count].set(strength, mode="drop"),
            self.count + 1,
        )


class InitialMemory(eqx.Module):
    """The learnable memories that exist before the first step, as raw numbers."""

    keys: Float[Array, "slots key_size"]
    values: Float[Array, "slots width"]
    strengths: Float[Array, " slots"]
    strength_bias: float = eqx.field(static=True)

    def __init__(
        self,
        slots: int,
        key_size: int,
        width: int,
        *,
        strength_bias: float = -10.0,
        key: PRNGKeyArray,
    ):
        require_positive(slots=slots, key_size=key_size, width=width)
        keys, values, strengths = jax.random.split(key, 3)
        self.keys = uniform(keys, slots, key_size)
        self.values = uniform(values, slots, width)
        self.strengths = uniform(strengths, slots)
        self.strength_bias = strength_bias

    @property
    def slots(self) -> int:
        return self.strengths.shape[0]

    def build(self, keys: Float[Array, "slots key_size"], capacity: int) -> Memory:
        """A memory with `capacity` slots that begins with these memories, at the given keys.

        Slots without a memory hold the last of these keys: a point of the manifold, where
        distances have derivatives.
        """
        require_positive(capacity=capacity)
        if capacity < self.slots:
            raise ValueError(
                f"capacity must be at least {self.slots}, the initial memories; got {capacity}"
            )
        room = capacity - self.slots
        return Memory(
            jnp.pad(keys, ((0, room), (0, 0)), mode="edge"),
            jnp.pad(jnp.tanh(self.values), ((0, room), (0, 0))),
            jnp.pad(jax.nn.sigmoid(self.strengths + self.strength_bias), (0, room)),
            jnp.array(self.slots, jnp.int32),
        )
