"""RAM and RAM/Tape: the paper's baselines with a memory (section 2 and appendix A)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform
from lantm.memory import Slots
from lantm.memory.weighting import softmax, strengthen
from lantm.parts.access import Access, Masses
from lantm.parts.pieces import split
from lantm.parts.trace import HeadTrace

Key = Float[Array, " key_size"]


class TapeKeys(NamedTuple):
    """The keys one step along the tape from where the last reading was."""

    forward: Key
    """k_R = sum_i w_(i-1) k_i"""
    backward: Key
    """k_L = sum_i w_(i+1) k_i"""


class RandomMovement(NamedTuple):
    query: Key
    write_key: Key
    sharpening: Float[Array, " sharpen"]


class RandomAccess(Access):
    """w_i ~ s_i exp<q, k_i>, with both keys from the controller.

    With a `tape` the read key is a mix of the controller's and the two `TapeKeys`; with `sharpen`
    the scores are multiplied by a number above 1 that the controller emits.
    """

    initial_tape: TapeKeys | None
    key_size: int = eqx.field(static=True)
    sharpen: bool = eqx.field(static=True)
    leak: float = eqx.field(static=True)
    """As in `to_weights`."""

    def __init__(
        self,
        key_size: int = 20,
        *,
        tape: bool = False,
        sharpen: bool = False,
        leak: float = 0.0,
        key: PRNGKeyArray,
    ):
        require_positive(key_size=key_size)
        keys = jax.random.split(key)
        self.initial_tape = TapeKeys(*(uniform(k, key_size) for k in keys)) if tape else None
        self.key_size, self.sharpen, self.leak = key_size, sharpen, leak

    @property
    def tape(self) -> bool:
        return self.initial_tape is not None

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """Read key, write key, selection of the read key, sharpening."""
        return self.key_size, self.key_size, 3 * self.tape, int(self.sharpen)

    @property
    def command_size(self) -> int:
        return sum(self.command_sizes)

    @property
    def initial_memories(self) -> int:
        return 2 if self.tape else 1

    @property
    def read_heads(self) -> int:
        return 1

    @property
    def write_heads(self) -> int:
        return 1

    def init_heads(self) -> TapeKeys | None:
        return self.initial_tape

    def project(self, raw: Key) -> Key:
        return raw

    def move(
        self, command: Float[Array, " command_size"], heads: TapeKeys | None
    ) -> tuple[RandomMovement, HeadTrace, HeadTrace]:
        query, write_key, selection, sharpening = split(command, self.command_sizes)
        gate = None
        if heads is not None:
            gate = jax.nn.softmax(selection)
            query = gate @ jnp.stack([query, heads.forward, heads.backward])
        movement = RandomMovement(query, write_key, sharpening)
        read = HeadTrace(query[None], None if gate is None else gate[None])
        return movement, read, HeadTrace(write_key[None])

    def write_keys(self, movement: RandomMovement) -> Float[Array, "1 key_size"]:
        return movement.write_key[None]

    def weigh(self, movement: RandomMovement, slots: Slots) -> Masses:
        scores = slots.keys @ movement.query
        if self.sharpen:
            scores = scores * (1 + jax.nn.softplus(movement.sharpening[0]))
        return strengthen(softmax(scores, slots.valid), slots.strengths, slots.valid)[None]

    def settle(
        self, movement: RandomMovement, weights: Float[Array, "1 slots"], slots: Slots
    ) -> TapeKeys | None:
        return shifted_keys(weights[0], slots) if self.tape else None


def shifted_keys(weights: Float[Array, " slots"], slots: Slots) -> TapeKeys:
    """The keys under the weights shifted by one; what falls off either end is dropped."""
    keys = jnp.where(slots.valid[:, None], slots.keys, 0.0)
    return TapeKeys(weights[:-1] @ keys[1:], weights[1:] @ keys[:-1])
