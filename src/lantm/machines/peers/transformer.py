"""An encoder-decoder Transformer (Vaswani et al. 2017), pre-norm, with rotary positions (Su et al.
2021).
"""

from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lantm.errors import require_lengths, require_positive
from lantm.machines.seq2seq import MachineTrace, SequenceModel, Tokens, require_input
from lantm.parts import Trace
from lantm.tasks import Vocabulary
from lantm.unrolling.scan import Lengths, cut

HEAD_SIZE = 16
"""Numbers of a head's keys: a model of 64 has four heads."""
AT_ONCE = 32
"""Problems that are answered at the same time: the scores of all would not fit, of long ones."""

Sequence = Float[Array, "time size"]
Source = Float[Array, "keys size"]
Weights = Float[Array, "heads time keys"]


class Attention(eqx.Module):
    """Attention with rotary positions, in the residual stream: x + A(norm(x), y)."""

    norm: eqx.nn.LayerNorm
    heads: eqx.nn.MultiheadAttention
    rotary: eqx.nn.RotaryPositionalEmbedding

    def __init__(self, size: int, *, key: PRNGKeyArray):
        self.norm = eqx.nn.LayerNorm(size)
        self.heads = eqx.nn.MultiheadAttention(size // HEAD_SIZE, size, key=key)
        self.rotary = eqx.nn.RotaryPositionalEmbedding(HEAD_SIZE)

    def __call__(
        self, x: Sequence, mask: Bool[Array, "time keys"], memory: Source | None = None
    ) -> tuple[Sequence, Weights]:
        """The stream after attention to itself, or to a memory; and the weights."""
        query = jax.vmap(self.norm)(x)
        source = query if memory is None else memory
        attended = self.heads(query, source, source, mask, process_heads=self.turn)
        return x + attended, self.weights(query, source, mask)

    def turn(self, query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
        """Queries and keys turned by their positions, [time, heads, size] each."""
        turn = jax.vmap(self.rotary, in_axes=1, out_axes=1)
        return turn(query), turn(key), value

    def weights(self, query: Sequence, source: Source, mask: Bool[Array, "time keys"]) -> Weights:
        """What the attention above is a mean by; for traces."""
        parts = jax.vmap(self.heads.query_proj)(query), jax.vmap(self.heads.key_proj)(source)
        queries, keys = (part.reshape(len(part), -1, HEAD_SIZE) for part in parts)
        queries, keys, _ = self.turn(queries, keys, keys)
        scores = jnp.einsum("qhd,khd->hqk", queries, keys) / HEAD_SIZE**0.5
        return jax.nn.softmax(jnp.where(mask[None], scores, -jnp.inf))


class FeedForward(eqx.Module):
    """x + B gelu(A norm(x))."""

    norm: eqx.nn.LayerNorm
    enter: eqx.nn.Linear
    leave: eqx.nn.Linear

    def __init__(self, size: int, *, key: PRNGKeyArray):
        enter_key, leave_key = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(size)
        self.enter = eqx.nn.Linear(size, 4 * size, key=enter_key)
        self.leave = eqx.nn.Linear(4 * size, size, key=leave_key)

    def __call__(self, x: Sequence) -> Sequence:
        def at(place: Float[Array, " size"]) -> Float[Array, " size"]:
            return self.leave(jax.nn.gelu(self.enter(self.norm(place))))

        return x + jax.vmap(at)(x)


class EncoderBlock(eqx.Module):
    attention: Attention
    forward: FeedForward

    def __init__(self, size: int, *, key: PRNGKeyArray):
        first, second = jax.random.split(key)
        self.attention = Attention(size, key=first)
        self.forward = FeedForward(size, key=second)

    def __call__(self, x: Sequence, mask: Bool[Array, "time time"]) -> tuple[Sequence, Weights]:
        x, weights = self.attention(x, mask)
        return self.forward(x), weights


class DecoderBlock(eqx.Module):
    attention: Attention
    look: Attention
    """To what the encoder made of the input."""
    forward: FeedForward

    def __init__(self, size: int, *, key: PRNGKeyArray):
        first, second, third = jax.random.split(key, 3)
        self.attention = Attention(size, key=first)
        self.look = Attention(size, key=second)
        self.forward = FeedForward(size, key=third)

    def __call__(
        self, x: Sequence, memory: Source, there: Bool[Array, "time keys"]
    ) -> tuple[Sequence, Weights]:
        earlier = jnp.tril(jnp.ones((len(x), len(x)), bool))
        x, _ = self.attention(x, earlier)
        x, weights = self.look(x, there, memory)
        return self.forward(x), weights


class Transformer(SequenceModel):
    """The encoder sees the whole input with `#` after it; the decoder sees `#` at every step.

    It decodes as the other machines do: without its own or the right last symbols, so that all
    steps are answered at once. A step sees no later one, so that an answer does not depend on how
    many steps are asked for. Steps and input symbols are counted from 0 alike; attention knows the
    differences of these numbers only.
    """

    embedding: eqx.nn.Embedding
    encoder: tuple[EncoderBlock, ...]
    decoder: tuple[DecoderBlock, ...]
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]
    """At the end of the encoder and of the decoder."""
    readout: eqx.nn.Linear
    vocabulary: Vocabulary = eqx.field(static=True)

    def __init__(
        self, vocabulary: Vocabulary, size: int = 64, blocks: int = 3, *, key: PRNGKeyArray
    ):
        require_positive(hidden_size=size, blocks=blocks)
        if size % HEAD_SIZE:
            raise ValueError(
                f"hidden_size of a transformer must be a multiple of {HEAD_SIZE}, got {size}"
            )
        embed_key, read_key, *keys = jax.random.split(key, 2 + 2 * blocks)
        self.vocabulary = vocabulary
        self.embedding = eqx.nn.Embedding(vocabulary.size, size, key=embed_key)
        self.encoder = tuple(EncoderBlock(size, key=k) for k in keys[:blocks])
        self.decoder = tuple(DecoderBlock(size, key=k) for k in keys[blocks:])
        self.norms = eqx.nn.LayerNorm(size), eqx.nn.LayerNorm(size)
        self.readout = eqx.nn.Linear(size, vocabulary.size, key=read_key)

    def __call__(
        self,
        tokens: Tokens,
        steps: int,
        lengths: Lengths | None = None,
        answer_lengths: Lengths | None = None,
        noise: Array | None = None,
    ) -> Float[Array, "batch steps vocabulary"]:
        if noise is not None:
            raise ValueError("noise is for machines with a controller; a transformer has none")
        return cut(self._run(tokens, steps, lengths).logits, answer_lengths)

    def trace(self, tokens: Tokens, steps: int, lengths: Lengths | None = None) -> MachineTrace:
        """Its read heads are the heads of the last blocks: the encoder's own attention, then the
        decoder's to the encoder; the slots are the symbols of the input, then `#`.
        """
        found = self._run(tokens, steps, lengths)
        time = tokens.shape[1]
        encode = jax.tree.map(lambda part: part[:, :time], found.encode)  # without that of `#`
        return found._replace(encode=encode)

    def slot_names(self, inputs: Iterable[str], slots: int) -> list[str]:
        return [*inputs, "#"]

    def _run(self, tokens: Tokens, steps: int, lengths: Lengths | None) -> MachineTrace:
        require_input(tokens, self.vocabulary)
        require_positive(steps=steps)
        require_lengths(lengths, tokens.shape[1])
        batch, time = tokens.shape
        lengths = jnp.full(batch, time) if lengths is None else lengths

        def alone(problem: tuple[Array, Array]) -> MachineTrace:
            return self._answer(*problem, steps)

        return jax.lax.map(alone, (tokens, lengths), batch_size=min(AT_ONCE, batch))

    def _answer(
        self, tokens: Int[Array, " time"], length: Int[Array, ""], steps: int
    ) -> MachineTrace:
        """Of one problem, without a batch."""
        places = jnp.arange(tokens.shape[0] + 1)
        separator = self.vocabulary.separator
        marked = jnp.where(places == length, separator, jnp.append(tokens, separator))
        there = places <= length

        x = self.embedding.weight[marked]
        *blocks, last = self.encoder
        mask = jnp.broadcast_to(there, (there.size, there.size))
        for block in blocks:
            x, _ = block(x, mask)
        x, own = last(x, mask)
        memory = jax.vmap(self.norms[0])(x)

        y = jnp.broadcast_to(self.embedding.weight[separator], (steps, x.shape[1]))
        *blocks, last = self.decoder
        mask = jnp.broadcast_to(there, (steps, there.size))
        for block in blocks:
            y, _ = block(y, memory, mask)
        y, read = last(y, memory, mask)
        hidden = jax.vmap(self.norms[1])(y)

        def told(hidden: Sequence, weights: Weights) -> Trace:
            return Trace(hidden, weights=jnp.swapaxes(weights, 0, 1))

        return MachineTrace(told(memory, own), told(hidden, read), jax.vmap(self.readout)(hidden))
