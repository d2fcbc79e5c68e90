"""The cell of every machine with a memory; how it finds its way there is an `Access`."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.cells.contract import Cell, HeadTrace, Trace, split
from lantm.cells.lstm import Controller, LSTMState
from lantm.errors import require_positive
from lantm.initialise import uniform
from lantm.memory import InitialMemory, Memory, Slots
from lantm.weighting import normalise

Heads: TypeAlias = Any
"""What an access carries from step to step: the heads' positions, for one."""

Movement: TypeAlias = Any
"""What a command makes of the heads, before the memory is looked at."""


class Addressing(NamedTuple):
    """The outcome of addressing: where the heads are and what they see."""

    heads: Heads
    weights: Float[Array, " slots"]
    """w_i"""
    read: HeadTrace
    write: HeadTrace
    """Its key is the key of the memory to be written."""


class Access(eqx.Module):
    """All in which the memory machines differ: keys, heads and read weights."""

    key_size: eqx.AbstractVar[int]
    command_size: eqx.AbstractVar[int]
    """Numbers the controller emits for addressing at every step."""
    initial_memories: eqx.AbstractVar[int]
    """Memories that exist before the first step."""
    leak: eqx.AbstractVar[float]
    """Of the read weights, as in `lantm.weighting.normalise`."""
    gated_output: eqx.AbstractVar[bool]
    """Whether the controller gates the reading's part in the output."""

    @abc.abstractmethod
    def init_heads(self) -> Heads:
        """The learnable heads before the first step."""

    @abc.abstractmethod
    def project(self, raw: Float[Array, " key_size"]) -> Float[Array, " key_size"]:
        """The key of an initial memory from its raw parameter."""

    @abc.abstractmethod
    def move(
        self, command: Float[Array, " command_size"], heads: Heads
    ) -> tuple[Movement, HeadTrace, HeadTrace]:
        """Where the heads go; and what the read and the write head did."""

    def move_to_read(self, command: Float[Array, " command_size"], heads: Heads) -> Movement:
        """The same where nothing is written: what reading does not need may stay behind."""
        return self.move(command, heads)[0]

    def catch_up(self, command: Float[Array, " command_size"], heads: Heads) -> Heads:
        """Move what `move_to_read` left behind."""
        return heads

    @abc.abstractmethod
    def write_key(self, movement: Movement) -> Float[Array, " key_size"]:
        """The key of the memory to be written."""

    @abc.abstractmethod
    def weigh(self, movement: Movement, slots: Slots) -> Float[Array, " slots"]:
        """The read weights of the memories that exist so far, before `normalise`."""

    @abc.abstractmethod
    def settle(self, movement: Movement, weights: Float[Array, " slots"], slots: Slots) -> Heads:
        """The heads after the step."""

    def __call__(
        self, command: Float[Array, " command_size"], heads: Heads, slots: Slots
    ) -> Addressing:
        """Move the heads and weigh the memories that exist so far."""
        movement, read, write = self.move(command, heads)
        weights = normalise(self.weigh(movement, slots), self.leak)
        return Addressing(self.settle(movement, weights, slots), weights, read, write)


class MemoryState(NamedTuple):
    controller: tuple[LSTMState, ...]
    reading: Float[Array, " width"]
    """rho of the last step, which the controller sees in the next."""
    heads: Heads
    memory: Memory


class MemoryCell(Cell):
    """LSTM controller, heads and memory: h' = RNN([x; rho], h), then RW(Sigma, q, h').

    One linear layer on the hidden state emits everything: the output, what to write, and the
    access's command. A step reads before it writes.
    """

    controller: Controller
    interface: eqx.nn.Linear
    readout: eqx.nn.Linear
    access: Access
    initial_memory: InitialMemory
    initial_reading: Float[Array, " width"]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        output_size: int,
        access: Access,
        *,
        hidden_size: int = 50,
        width: int = 20,
        layers: int = 1,
        initial_strength_bias: float = -10.0,
        key: PRNGKeyArray,
    ):
        require_positive(
            input_size=input_size, output_size=output_size, hidden_size=hidden_size, width=width
        )
        keys = jax.random.split(key, 5)
        self.input_size, self.output_size, self.access = input_size, output_size, access
        self.controller = Controller(input_size + width, hidden_size, layers, key=keys[0])
        self.initial_memory = InitialMemory(
            access.initial_memories,
            access.key_size,
            width,
            strength_bias=initial_strength_bias,
            key=keys[1],
        )
        self.initial_reading = uniform(keys[2], width)
        self.readout = eqx.nn.Linear(width, output_size, key=keys[3])
        self.interface = eqx.nn.Linear(hidden_size, sum(self.command_sizes), key=keys[4])

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """The pieces of the interface: output, value, strength, output gate, access."""
        width = self.initial_reading.shape[0]
        gate = int(self.access.gated_output)
        return self.output_size, width, 1, gate, self.access.command_size

    @property
    def initial_memories(self) -> int:
        return self.initial_memory.slots

    def init_state(self, capacity: int) -> MemoryState:
        keys = jax.vmap(self.access.project)(self.initial_memory.keys)
        return MemoryState(
            self.controller.initial,
            jnp.tanh(self.initial_reading),
            self.access.init_heads(),
            self.initial_memory.build(keys, capacity),
        )

    def step(
        self, state: MemoryState, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[MemoryState, Float[Array, " output_size"], Trace]:
        controller = self.controller(state.controller, jnp.concatenate([inputs, state.reading]))
        hidden = controller[-1].hidden
        output, value, strength, gate, command = split(self.interface(hidden), self.command_sizes)

        heads, weights, read, wrote = self.access(command, state.heads, state.memory.slots)
        reading = state.memory.read(weights)

        value, strength = jnp.tanh(value), jax.nn.sigmoid(strength[0])
        memory = state.memory.write(wrote.key, value, strength) if write else state.memory

        output_gate = jax.nn.sigmoid(gate[0]) if self.access.gated_output else None
        shown = self.readout(reading)
        output = output + (shown if output_gate is None else output_gate * shown)
        trace = Trace(hidden, read, wrote, weights, reading, value, strength, output_gate)
        return MemoryState(controller, reading, heads, memory), output, trace
