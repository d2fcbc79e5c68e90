"""The Differentiable Neural Computer (Graves et al. 2016, Nature 538), with the three changes of
Csordas & Schmidhuber (2019, arXiv:1904.10278): masked keys, memories that are wiped when they are
freed, and sharp temporal links.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.machines.peers.slots import SlotCell, oneplus, sharpen, similarity
from lantm.parts.pieces import split


class DNCMemory(NamedTuple):
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
    rows: Float[Array, "*batch slots width"]
    """M"""


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

    def init_memory(self, reading: Float[Array, " read_width"]) -> DNCMemory:
        """All slots free and empty."""
        slots = self.slots
        shapes = (self.read_heads, slots), (slots,), (slots,), (slots, slots), (slots,)
        return DNCMemory(*(jnp.zeros(s, reading.dtype) for s in (*shapes, (slots, self.width))))

    def work(
        self, command: Float[Array, " command"], memory: DNCMemory, *, write: bool = True
    ) -> tuple[DNCMemory, Float[Array, "reads width"], Float[Array, "reads slots"]]:
        writing, *reading = split(
            command, (sum(self.write_sizes), *(sum(self.read_sizes),) * self.read_heads)
        )
        asked = [split(part, self.read_sizes) for part in reading]

        kept = jnp.ones_like(memory.usage)  # psi
        for (*_, free, _, _, _), before in zip(asked, memory.reads, strict=True):
            kept = kept * (1 - jax.nn.sigmoid(free) * before)
        usage = (memory.usage + memory.write - memory.usage * memory.write) * kept
        weights, rows = self._write(writing, usage, kept, memory.rows)
        links, precedence = link(memory.links, memory.precedence, weights)

        reads = []
        for (key, mask, strength, _, modes, backward, forward), before in zip(
            asked, memory.reads, strict=True
        ):
            content = by_content(key, jax.nn.sigmoid(mask), oneplus(strength[0]), rows)
            earlier = sharpen(before @ links, oneplus(backward[0]))
            later = sharpen(links @ before, oneplus(forward[0]))
            share = jax.nn.softmax(modes)
            reads.append(share[0] * earlier + share[1] * content + share[2] * later)
        readings = jnp.stack([read @ rows for read in reads])
        weighed = jnp.stack(reads)
        new = DNCMemory(weighed, weights, usage, links, precedence, rows)
        return new, readings, weighed

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
    """a: the freest slot first, the next one as far as it is not free, and so on.

    (1 - u_i) times all u_j that come before u_i in order, the first one among equals. The product
    is a sum of logarithms: to sort takes XLA several times as long.
    """
    place = jnp.arange(usage.size)
    mine, other = usage[:, None], usage[None, :]
    earlier = (other < mine) | ((other == mine) & (place[None, :] < place[:, None]))
    logarithms = jnp.log(usage + NOTHING)
    return (1 - usage) * jnp.exp(jnp.sum(jnp.where(earlier, logarithms[None], 0.0), axis=1))


NOTHING = 1e-20
"""Added to usages: so a slot that is free has a logarithm, and the product its derivative there."""


@jax.custom_vjp
def link(
    links: Float[Array, "slots slots"],
    precedence: Float[Array, " slots"],
    weights: Float[Array, " slots"],
) -> tuple[Float[Array, "slots slots"], Float[Array, " slots"]]:
    """The order of writing after one more write. No slot is linked to itself."""
    written = off_diagonal(jnp.outer(weights, precedence))
    new = (1 - weights[:, None] - weights[None]) * links + written
    return new, (1 - jnp.sum(weights)) * precedence + weights


def _link(*given: Array) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
    return link(*given), given


def _unlink(given: tuple[Array, ...], after: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """By products with vectors where JAX would take sums, which last several times as long."""
    links, precedence, weights = given
    d_links, d_precedence = after
    d_written, d_kept = off_diagonal(d_links), links * d_links
    d_weights = (
        *(d_written @ precedence, -jnp.sum(d_kept, axis=1), -jnp.sum(d_kept, axis=0)),
        *(d_precedence, -jnp.sum(d_precedence * precedence)),
    )
    return (
        (1 - weights[:, None] - weights[None]) * d_links,
        weights @ d_written + (1 - jnp.sum(weights)) * d_precedence,
        sum(d_weights[1:], d_weights[0]),
    )


link.defvjp(_link, _unlink)


def off_diagonal(matrix: Float[Array, "slots slots"]) -> Float[Array, "slots slots"]:
    return matrix * (1 - jnp.eye(len(matrix), dtype=matrix.dtype))
