"""The memory inside the fast loop, and the cotangents of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lantm.unrolling.scan import Lengths
from lantm.unrolling.timed import Batched, Timed

Count = Int[Array, " batch"]


class Buffers(NamedTuple):
    """Slots come last, so that reading runs along them."""

    address: Float[Array, "batch address slots"]
    """Keys, and strengths below them."""
    values: Float[Array, "batch rows slots"]
    """Below them a row of ones, which makes the normaliser of a reading a part of it."""

    @classmethod
    def of(
        cls,
        keys: Float[Array, "batch slots key_size"],
        values: Float[Array, "batch slots width"],
        strengths: Float[Array, "batch slots"],
    ) -> "Buffers":
        strengths = strengths[:, :, None]
        parts = (keys, strengths), (values, jnp.ones_like(strengths))
        return cls(*(jnp.swapaxes(jnp.concatenate(part, axis=2), 1, 2) for part in parts))

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Keys, values and strengths, as a memory has them."""
        keys, values = (jnp.swapaxes(buffer[:, :-1], 1, 2) for buffer in self)
        return keys, values, self.address[:, -1]

    @property
    def capacity(self) -> int:
        return self.values.shape[2]


class Writing(NamedTuple):
    """How a command becomes memories: tanh values, then strengths, of each write head.

    A strength is floor + (1 - floor) sigmoid(x).
    """

    heads: int
    width: int
    floor: float = 0.0

    @property
    def size(self) -> int:
        """Numbers of the command."""
        return self.heads * (self.width + 1)

    def split(self, commands: Float[Array, "*_ size"]) -> tuple[Array, Array]:
        """The parts of a command, or of its cotangents."""
        values = self.heads * self.width
        return commands[..., :values], commands[..., values : self.size]

    def append(
        self,
        buffers: Buffers,
        keys: Float[Array, "batch heads key_size"],
        commands: Batched,
        where: tuple[Array, Array],
    ) -> Buffers:
        """The buffers with new memories for each sequence."""
        values, strengths = self.split(commands)
        values = jnp.tanh(values).reshape(-1, self.heads, self.width)
        strengths = (self.floor + (1 - self.floor) * jax.nn.sigmoid(strengths))[:, :, None]
        parts = (keys, strengths), (values, jnp.ones_like(strengths))
        new = Buffers(*(jnp.concatenate(part, axis=2) for part in parts))
        rows, slots = where
        return jax.tree.map(
            lambda buffer, made: buffer.at[rows, :, slots].set(made, mode="drop"), buffers, new
        )

    def take(
        self, cotangents: Buffers, where: tuple[Array, Array]
    ) -> tuple[Float[Array, "batch heads key_size"], Batched]:
        """Of the memories of one step: the cotangents of their keys; of values and strengths."""
        rows, slots = where
        address, values = (
            buffer.at[rows, :, slots].get(mode="fill", fill_value=0.0) for buffer in cotangents
        )
        batch = address.shape[0]
        written = (values[:, :, :-1].reshape(batch, -1), address[:, :, -1])
        return address[:, :, :-1], jnp.concatenate(written, axis=1)

    def slopes(self, commands: Timed) -> Timed:
        """The derivatives of values and strengths by their commands."""
        values, strengths = self.split(commands)
        value, strength = jnp.tanh(values), jax.nn.sigmoid(strengths)
        by_strength = (1 - self.floor) * strength * (1 - strength)
        return jnp.concatenate([1 - value**2, by_strength], axis=2)

    def where(
        self, buffers: Buffers, count: Count, t: Int[Array, ""], lengths: Lengths | None
    ) -> tuple[Array, Array]:
        """The slots that step t writes for each sequence; beyond the buffer if there are none."""
        slots = (count + t * self.heads)[:, None] + jnp.arange(self.heads)[None]
        rows = jnp.arange(slots.shape[0])[:, None]
        if lengths is None:
            return rows, slots
        return rows, jnp.where((t < lengths)[:, None], slots, buffers.capacity)

    def valid(
        self, buffers: Buffers, count: Count, t: Int[Array, ""]
    ) -> Bool[Array, "batch slots"]:
        """Which memories exist before step t."""
        return jnp.arange(buffers.capacity)[None] < (count + t * self.heads)[:, None]

    def without_written(
        self, cotangents: Buffers, count: Count, time: int, lengths: Lengths | None
    ) -> Buffers:
        """Cotangents of the old buffers: zero where the loop overwrote them."""
        slots = jnp.arange(cotangents.capacity)[None]
        steps = jnp.full_like(count, time) if lengths is None else lengths
        old = (slots < count[:, None]) | (slots >= (count + self.heads * steps)[:, None])
        return jax.tree.map(lambda buffer: jnp.where(old[:, None], buffer, 0.0), cotangents)
