"""The Differentiable Neural Computer (Graves et al. 2016, Nature 538), with the three changes of
Csordas & Schmidhuber (2019, arXiv:1904.10278): masked keys, memories that are wiped when they are
freed, and sharp temporal links.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.machines.peers.driver import States
from lantm.machines.peers.slots import SlotCell, oneplus, sharpen, similarity
from lantm.parts import Trace
from lantm.parts.pieces import split


class DNCState(NamedTuple):
    controller: States
    reading: Float[Array, "*batch width"]
    reads: Float[Array, "*batch reads slots"]
    """w^r"""
    write: Float[Array, "*batch slots"]
    """w^w"""
    usage: Float[Array, "*batch slots"]
    """u, from 0 for a free slot to 1"""
    links: Float[Array, "*batch slots slots"]
    """L[i, j]: slot i was written right after j"""
    precedence: Float[Array, "*batch slots"]
    """p, where the last write went"""
    memory: Float[Array, "*batch slots width"]


class DNCCell(SlotCell):
    """Heads that find memories by content and by the order of writing, and slots that are freed.

    A step writes, then reads; `write` changes nothing. Time and room grow with the square of the
    number of slots.
    """

    @property
    def command_size(self) -> int:
        return sum(self.write_sizes) + self.read_heads * sum(self.read_sizes)

    @property
    def write_sizes(self) -> tuple[int, ...]:
        """Key, mask, strength, erase vector, value, allocation gate, write gate."""
        return self.width, self.width, 1, self.width, self.width, 1, 1

    @property
    def read_sizes(self) -> tuple[int, ...]:
        """Key, mask, strength, free gate, modes, sharpness of backward and forward links."""
        return self.width, self.width, 1, 1, 3, 1, 1

    def init_state(self, capacity: int = 0) -> DNCState:
        """All slots free and empty."""
        reading = self.driver.first_reading

        def none(*shape: int) -> Array:
            return jnp.zeros(shape, reading.dtype)

        slots = self.slots
        return DNCState(
            self.driver.controller.initial,
            reading,
            none(self.read_heads, slots),
            *(none(slots), none(slots), none(slots, slots), none(slots)),
            none(slots, self.width),
        )

    def step(
        self, state: DNCState, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[DNCState, Float[Array, " output_size"], Trace]:
        controller, hidden, command = self.driver(state.controller, inputs, state.reading)
        heads = self.read_heads
        writing, reading = jnp.split(command, [sum(self.write_sizes)])
        asked = jax.vmap(lambda part: split(part, self.read_sizes))(reading.reshape(heads, -1))
        key, mask, strength, free, modes, backward, forward = asked
        free, modes = jax.nn.sigmoid(free[:, 0]), jax.nn.softmax(modes)

        kept = jnp.prod(1 - free[:, None] * state.reads, axis=0)  # psi
        usage = (state.usage + state.write - state.usage * state.write) * kept
        weights, memory = self._write(writing, usage, kept, state.memory)
        links, precedence = link(state.links, state.precedence, weights)

        content = jax.vmap(by_content, in_axes=(0, 0, 0, None))(
            key, jax.nn.sigmoid(mask), oneplus(strength[:, 0]), memory
        )
        before = jax.vmap(sharpen)(state.reads @ links, oneplus(backward[:, 0]))
        after = jax.vmap(sharpen)(state.reads @ links.T, oneplus(forward[:, 0]))
        reads = jnp.einsum("hm,mhs->hs", modes, jnp.stack([before, content, after]))
        readings = reads @ memory
        flat = readings.reshape(-1)
        new = DNCState(controller, flat, reads, weights, usage, links, precedence, memory)
        return new, self.driver.output(hidden, flat), Trace(hidden, weights=reads, reading=readings)

    def _write(
        self,
        command: Float[Array, " command"],
        usage: Float[Array, " slots"],
        kept: Float[Array, " slots"],
        memory: Float[Array, "slots width"],
    ) -> tuple[Float[Array, " slots"], Float[Array, "slots width"]]:
        """The write weights, and the memory with freed slots wiped and the value written."""
        key, mask, strength, erase, value, allocation, gate = split(command, self.write_sizes)
        content = by_content(key, jax.nn.sigmoid(mask), oneplus(strength[0]), memory)
        share = jax.nn.sigmoid(allocation[0])
        weights = jax.nn.sigmoid(gate[0]) * (share * allocate(usage) + (1 - share) * content)
        wiped = memory * kept[:, None] * (1 - jnp.outer(weights, jax.nn.sigmoid(erase)))
        return weights, wiped + jnp.outer(weights, value)


def by_content(
    key: Float[Array, " width"],
    mask: Float[Array, " width"],
    strength: Float[Array, ""],
    memory: Float[Array, "slots width"],
) -> Float[Array, " slots"]:
    """Of memories and key only what the mask lets through is compared."""
    return jax.nn.softmax(strength * similarity(key * mask, memory * mask[None]))


def allocate(usage: Float[Array, " slots"]) -> Float[Array, " slots"]:
    """a: the freest slot first, the next one as far as it is not free, and so on."""
    order = jnp.argsort(usage)
    used = usage[order]
    before = jnp.concatenate([jnp.ones_like(used[:1]), jnp.cumprod(used)[:-1]])
    return ((1 - used) * before)[jnp.argsort(order)]


def link(
    links: Float[Array, "slots slots"],
    precedence: Float[Array, " slots"],
    weights: Float[Array, " slots"],
) -> tuple[Float[Array, "slots slots"], Float[Array, " slots"]]:
    """The order of writing after one more write."""
    keep = 1 - weights[:, None] - weights[None, :]
    new = keep * links + jnp.outer(weights, precedence)
    new = jnp.where(jnp.eye(weights.size, dtype=bool), 0.0, new)
    return new, (1 - jnp.sum(weights)) * precedence + weights
