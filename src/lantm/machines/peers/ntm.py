"""The Neural Turing Machine (Graves, Wayne & Danihelka 2014, arXiv:1410.5401)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.machines.peers.slots import SlotCell, oneplus, sharpen, similarity
from lantm.parts.pieces import split

SHIFTS = 3
"""A head moves back, stays or moves on by one slot."""


class NTMMemory(NamedTuple):
    weights: Float[Array, "*batch heads slots"]
    """w of the read heads, then of the write head."""
    rows: Float[Array, "*batch slots width"]
    """M"""


class Address(NamedTuple):
    """A head's command, as section 3.3 of the paper names it."""

    key: Float[Array, " width"]
    """k"""
    strength: Float[Array, ""]
    """beta >= 0"""
    gate: Float[Array, ""]
    """g, of content against the last weights"""
    shift: Float[Array, "3"]
    """s, a distribution over -1, 0 and 1"""
    exponent: Float[Array, ""]
    """gamma >= 1"""


class NTMCell(SlotCell):
    """Heads that find memories by content, and move along them by shifts.

    A step reads, then writes, both in the memory as the last step left it; `write` changes nothing.
    """

    @property
    def command_size(self) -> int:
        return (self.read_heads + 1) * sum(self.head_sizes) + 2 * self.width

    @property
    def head_sizes(self) -> tuple[int, ...]:
        """The pieces of a head's command."""
        return self.width, 1, 1, SHIFTS, 1

    def init_memory(self, reading: Float[Array, " read_width"]) -> NTMMemory:
        """Every head at the first slot of an empty memory."""
        first = jax.nn.one_hot(jnp.zeros(self.read_heads + 1, int), self.slots, dtype=reading.dtype)
        return NTMMemory(first, jnp.zeros((self.slots, self.width), reading.dtype))

    def work(
        self, command: Float[Array, " command"], memory: NTMMemory, *, write: bool = True
    ) -> tuple[NTMMemory, Float[Array, "reads width"], Float[Array, "reads slots"]]:
        *commands, erase, add = split(
            command, ((sum(self.head_sizes),) * (self.read_heads + 1) + (self.width,) * 2)
        )
        weights = [
            self._address(command, before, memory.rows)
            for command, before in zip(commands, memory.weights, strict=True)
        ]
        rows = change(memory.rows, weights[-1], jax.nn.sigmoid(erase), jnp.tanh(add))
        readings = jnp.stack([read @ memory.rows for read in weights[:-1]])
        weights = jnp.stack(weights)
        return NTMMemory(weights, rows), readings, weights[:-1]

    def _address(
        self,
        command: Float[Array, " command"],
        before: Float[Array, " slots"],
        memory: Float[Array, "slots width"],
    ) -> Float[Array, " slots"]:
        key, strength, gate, shift, exponent = split(command, self.head_sizes)
        address = Address(
            jnp.tanh(key),
            jax.nn.softplus(strength[0]),
            jax.nn.sigmoid(gate[0]),
            jax.nn.softmax(shift),
            oneplus(exponent[0]),
        )
        return find(address, before, memory)


def find(
    address: Address, before: Float[Array, " slots"], memory: Float[Array, "slots width"]
) -> Float[Array, " slots"]:
    """A head's new weights: by content, mixed with the last ones, shifted around, sharpened
    (equations 5 to 9).
    """
    content = jax.nn.softmax(address.strength * similarity(address.key, memory))
    gated = address.gate * content + (1 - address.gate) * before
    return sharpen(rotate(gated, address.shift), address.exponent)


def rotate(weights: Float[Array, " slots"], shift: Float[Array, "3"]) -> Float[Array, " slots"]:
    """Circular convolution: shift is a distribution over moves by -1, 0 and 1 slots."""
    back, stay, on = shift
    return back * jnp.roll(weights, -1) + stay * weights + on * jnp.roll(weights, 1)


def change(
    memory: Float[Array, "slots width"],
    weights: Float[Array, " slots"],
    erase: Float[Array, " width"],
    add: Float[Array, " width"],
) -> Float[Array, "slots width"]:
    """Erase, then add (equations 3 and 4)."""
    return memory * (1 - jnp.outer(weights, erase)) + jnp.outer(weights, add)
