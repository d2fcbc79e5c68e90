"""A recurrent network with a stack (Joulin & Mikolov 2015, arXiv:1503.01007)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.machines.peers.driver import States
from lantm.machines.peers.slots import SlotCell
from lantm.parts import Trace
from lantm.parts.pieces import split

ACTIONS = 3
"""Push, pop, nothing."""


class StackState(NamedTuple):
    controller: States
    stack: Float[Array, "*batch slots width"]
    """The top first; zeros where there is nothing."""


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

    def init_state(self, capacity: int = 0) -> StackState:
        """Nothing on the stack but a learned first value, below which there is nothing."""
        bottom = self.driver.first_reading
        below = jnp.zeros((self.slots - 1, self.width), bottom.dtype)
        stack = jnp.concatenate([bottom[None], below])
        return StackState(self.driver.controller.initial, stack)

    def step(
        self, state: StackState, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[StackState, Float[Array, " output_size"], Trace]:
        controller, hidden, command = self.driver(state.controller, inputs, state.stack[0])
        actions, value = split(command, (ACTIONS, self.width))
        stack = act(state.stack, jax.nn.softmax(actions), jax.nn.sigmoid(value))
        output = self.driver.output(hidden, stack[0])
        return StackState(controller, stack), output, Trace(hidden, reading=stack[:1])


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
