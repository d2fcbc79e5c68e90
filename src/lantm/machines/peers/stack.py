"""A recurrent network with a stack (Joulin & Mikolov 2015, arXiv:1503.01007)."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.machines.peers.slots import SlotCell
from lantm.parts.pieces import split

ACTIONS = 3
"""Push, pop, nothing."""


class StackCell(SlotCell):
    """The controller sees the top of the stack, then pushes, pops or does nothing.

    What it does is a mixture of the three. To read on is to pop, so that `write` changes nothing.
    What is pushed onto a full stack lets its bottom fall off.
    """

    def __init__(
        self, input_size: int, output_size: int, slots: int = 128, width: int = 20, **driver: Any
    ):
        """With one head; `driver` is the rest of what `Driver` takes."""
        super().__init__(input_size, output_size, slots, width, **driver)

    @property
    def command_size(self) -> int:
        return ACTIONS + self.width

    def init_memory(self, reading: Float[Array, " width"]) -> Float[Array, "slots width"]:
        """The stack, its top first: that learned value, below which there is nothing."""
        below = jnp.zeros((self.slots - 1, self.width), reading.dtype)
        return jnp.concatenate([reading[None], below])

    def work(
        self, command: Float[Array, " command"], memory: Any, *, write: bool = True
    ) -> tuple[Any, Float[Array, "1 width"], None]:
        actions, value = split(command, (ACTIONS, self.width))
        stack = act(memory, jax.nn.softmax(actions), jax.nn.sigmoid(value))
        return stack, stack[:1], None


@jax.custom_vjp
def act(
    stack: Float[Array, "slots width"],
    actions: Float[Array, "3"],
    value: Float[Array, " width"],
) -> Float[Array, "slots width"]:
    """The stack after a push of that value, a pop, or nothing, each with its probability
    (equations 4 and 5 of the paper).
    """
    push, pop, nothing = actions
    pushed = jnp.concatenate([value[None], stack[:-1]])
    popped = jnp.concatenate([stack[1:], jnp.zeros_like(stack[:1])])
    return push * pushed + pop * popped + nothing * stack


def _act(*given: Array) -> tuple[Array, tuple[Array, ...]]:
    return act(*given), given


def _undo(given: tuple[Array, ...], after: Array) -> tuple[Array, Array, Array]:
    """By the same moves backwards; what JAX would find takes three times as long."""
    stack, actions, value = given
    push, pop, nothing = actions
    none = jnp.zeros_like(after[:1])
    down, up = jnp.concatenate([after[1:], none]), jnp.concatenate([none, after[:-1]])
    pushed = jnp.sum(after[0] * value) + jnp.sum(after[1:] * stack[:-1])
    d_actions = pushed, jnp.sum(after[:-1] * stack[1:]), jnp.sum(after * stack)
    return push * down + pop * up + nothing * after, jnp.stack(d_actions), push * after[0]


act.defvjp(_act, _undo)
