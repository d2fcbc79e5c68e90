"""Tokens in, tokens out: encode with writing, then decode without feedback (paper, section 5)."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lantm.errors import require_lengths, require_positive, require_shape
from lantm.machines.cell import Cell, checked, states_for
from lantm.memory import Memory
from lantm.parts import Trace
from lantm.spaces import Chart, coordinates, straight_distances
from lantm.tasks import Vocabulary
from lantm.unrolling.scan import Lengths, Noise, State, unroll_traced

Tokens: TypeAlias = Int[Array, "batch time"]


class MachineTrace(NamedTuple):
    """What every step of both phases did."""

    encode: Trace
    decode: Trace
    logits: Float[Array, "batch steps vocabulary"]


class SequenceModel(eqx.Module):
    """From the tokens of an input to the logits of an answer: all that training and evaluation
    need to know.
    """

    vocabulary: eqx.AbstractVar[Vocabulary]

    @abc.abstractmethod
    def __call__(
        self,
        tokens: Tokens,
        steps: int,
        lengths: Lengths | None = None,
        answer_lengths: Lengths | None = None,
        noise: Float[Array, "all_steps batch noise_size"] | None = None,
    ) -> Float[Array, "batch steps vocabulary"]:
        """The logits of an answer of `steps` symbols, the end symbol included.

        They depend neither on padding after an input's length nor on how many steps come after
        one. With `answer_lengths` they are zero after an answer's own length.
        """

    @abc.abstractmethod
    def trace(self, tokens: Tokens, steps: int, lengths: Lengths | None = None) -> MachineTrace:
        """What every step of the same call does."""

    @property
    def noise_size(self) -> int:
        """Numbers of a step that noise can be put on; 0: none."""
        return 0

    @property
    def initial_memory(self) -> Memory | None:
        """The memories before the first step, of a batch of one; None: it has no such store."""
        return None

    @property
    def initial_memories(self) -> int:
        """How many these are."""
        return 0

    def chart(self, keys: np.ndarray) -> Chart:
        """Keys of its memories, one a row, as points of a picture."""
        return coordinates(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        """How far each of these keys is from each."""
        return straight_distances(keys)

    def slot_names(self, inputs: Sequence[str], slots: int) -> list[str]:
        """What read weights without keys are about, for pictures: slots by number."""
        return [str(number) for number in range(slots)]

    def predict(
        self, tokens: Tokens, steps: int, lengths: Lengths | None = None
    ) -> Int[Array, "batch steps"]:
        """The greedy answer; from its first end symbol on, only end symbols."""
        answers = jnp.argmax(self(tokens, steps, lengths), axis=-1)
        end = self.vocabulary.end
        return jnp.where(jnp.cumsum(answers == end, axis=1) > 0, end, answers)


class Machine(SequenceModel):
    """An encoder-decoder: one cell reads the input and writes, then answers without writing."""

    embedding: eqx.nn.Embedding
    cell: Cell
    vocabulary: Vocabulary = eqx.field(static=True)

    def __init__(self, vocabulary: Vocabulary, cell: Cell, *, key: PRNGKeyArray):
        if cell.output_size != vocabulary.size:
            raise ValueError(
                f"cell.output_size must be {vocabulary.size}, the vocabulary's size; "
                f"got {cell.output_size}"
            )
        self.embedding = eqx.nn.Embedding(vocabulary.size, cell.input_size, key=key)
        self.cell, self.vocabulary = cell, vocabulary

    def init_state(self, batch: int, steps: int) -> State:
        """The state before the first token, with room for `steps` writes."""
        return states_for(self.cell, batch, steps)

    def encode(
        self,
        tokens: Tokens,
        lengths: Lengths | None = None,
        *,
        state: State | None = None,
        noise: Noise | None = None,
    ) -> State:
        """Read the input, from `^` on, writing a memory at every step.

        `noise` is that of `Cell.unroll`.
        """
        inputs = self.embed(tokens)
        require_lengths(lengths, tokens.shape[1])
        if state is None:
            state = self.init_state(*tokens.shape)
        else:
            state = checked(self.cell, state, tokens.shape, lengths)
        return self.cell.unroll(state, inputs, lengths, **given(noise))[0]

    def decode(
        self,
        state: State,
        steps: int,
        lengths: Lengths | None = None,
        *,
        noise: Noise | None = None,
    ) -> tuple[Float[Array, "batch steps vocabulary"], State]:
        """Answer for a number of steps: the logits, and the state after them.

        With lengths an answer ends after its own; no time goes into steps that nobody answers.
        """
        inputs = self.placeholders(state, steps)
        require_lengths(lengths, steps)
        state, logits = self.cell.unroll(state, inputs, lengths, write=False, **given(noise))
        return logits, state

    def __call__(
        self,
        tokens: Tokens,
        steps: int,
        lengths: Lengths | None = None,
        answer_lengths: Lengths | None = None,
        noise: Float[Array, "all_steps batch noise_size"] | None = None,
    ) -> Float[Array, "batch steps vocabulary"]:
        """The logits of an answer of `steps` symbols, the end symbol included.

        With `answer_lengths` they are zero after an answer's own length. `noise` is for the steps
        of the input, then for those of the answer; it is added to what the controller's first
        layer activates.
        """
        asking, answering = (None, None) if noise is None else split_noise(noise, tokens, steps)
        state = self.encode(tokens, lengths, noise=asking)
        return self.decode(state, steps, answer_lengths, noise=answering)[0]

    def trace(self, tokens: Tokens, steps: int, lengths: Lengths | None = None) -> MachineTrace:
        require_lengths(lengths, tokens.shape[1])
        state = self.init_state(*tokens.shape)
        state, (_, encode) = unroll_traced(self.cell, state, self.embed(tokens), lengths)
        answer = self.placeholders(state, steps)
        _, (logits, decode) = unroll_traced(self.cell, state, answer, write=False)
        return MachineTrace(encode, decode, logits)

    def embed(self, tokens: Tokens) -> Float[Array, "batch time embedding"]:
        require_input(tokens, self.vocabulary)
        return self.embedding.weight[tokens]

    def placeholders(self, state: State, steps: int) -> Float[Array, "batch steps embedding"]:
        """The decoder's inputs: `#` at every step."""
        require_positive(steps=steps)
        batch = jax.tree.leaves(state)[0].shape[0]
        separator = self.embedding.weight[self.vocabulary.separator]
        return jnp.broadcast_to(separator, (batch, steps, separator.size))

    @property
    def noise_size(self) -> int:
        return self.cell.noise_size

    @property
    def initial_memory(self) -> Memory | None:
        memory = getattr(self.init_state(1, 0), "memory", None)
        return memory if isinstance(memory, Memory) else None

    @property
    def initial_memories(self) -> int:
        return self.cell.initial_memories

    def chart(self, keys: np.ndarray) -> Chart:
        return self.cell.chart(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        return self.cell.distances(keys)


def require_input(tokens: Tokens, vocabulary: Vocabulary) -> None:
    """The tokens are a batch of inputs that can be asked."""
    require_shape("tokens", tokens.shape, "batch", "time")
    require_positive(time=tokens.shape[1])
    require_tokens(tokens, vocabulary)


def require_tokens(tokens: Tokens, vocabulary: Vocabulary) -> None:
    """Every token has to be a symbol or a mark; unknown inside `jax.jit`."""
    if isinstance(tokens, jax.core.Tracer):
        return
    found = np.asarray(tokens)
    lowest, highest = int(found.min()), int(found.max())
    if lowest < 0 or highest >= vocabulary.size:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(f"tokens must be from 0 to {vocabulary.size - 1}, got {wrong}")


def given(noise: Noise | None) -> dict[str, Any]:
    """The argument of that name, if there is one: a cell of one's own need not know it."""
    return {} if noise is None else {"noise": noise}


def split_noise(
    noise: Float[Array, "all_steps batch noise_size"], tokens: Tokens, steps: int
) -> tuple[Array, Array]:
    """That of the input's steps, and that of the answer's."""
    batch, time = tokens.shape
    require_shape("noise", noise.shape, time + steps, batch, "noise_size")
    return noise[:time], noise[time:]


class Scores(NamedTuple):
    """Shares of what was predicted right."""

    fine: Float[Array, ""] | float
    """Of the symbols of all answers, end symbols included."""
    coarse: Float[Array, ""] | float
    """Of the answers, whole and with their end symbol."""


def answer_loss(
    logits: Float[Array, "batch steps vocabulary"],
    answers: Int[Array, "batch steps"],
    lengths: Lengths | None = None,
) -> Float[Array, ""]:
    """The negative log likelihood of an answer's symbols, on average."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, answers)
    return jnp.mean(losses, where=counted(answers, lengths))


def score(
    logits: Float[Array, "batch steps vocabulary"],
    answers: Int[Array, "batch steps"],
    lengths: Lengths | None = None,
) -> Scores:
    """Fine and coarse accuracy of greedy prediction."""
    right, mask = jnp.argmax(logits, axis=-1) == answers, counted(answers, lengths)
    whole = jnp.all(right | ~mask, axis=1)
    return Scores(jnp.mean(right, where=mask, dtype=float), jnp.mean(whole, dtype=float))


def counted(
    answers: Int[Array, "batch steps"], lengths: Lengths | None
) -> Bool[Array, "batch steps"]:
    """The symbols that belong to an answer; lengths include the end symbol."""
    if lengths is None:
        return jnp.ones(answers.shape, bool)
    return jnp.arange(answers.shape[1])[None, :] < lengths[:, None]
