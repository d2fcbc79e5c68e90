"""The cell of every machine with a memory; how it finds its way there is an `Access`."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform
from lantm.machines.cell import Cell
from lantm.memory import InitialMemory, Memory
from lantm.parts import Access, Controller, Heads, LSTMState, Trace
from lantm.parts.pieces import split
from lantm.unrolling.loop import Affine, Buffers, Carry, Loop, Weights, catch_up, cut, parts
from lantm.unrolling.scan import Inputs, Lengths, Outputs


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

    def room(self, state: MemoryState) -> Int[Array, " batch"]:
        return state.memory.strengths.shape[1] - state.memory.count

    def unroll(
        self,
        state: MemoryState,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
    ) -> tuple[MemoryState, Outputs]:
        """By the fast loop; outputs after it, for all steps at once."""
        outputs, width = self.command_sizes[:2]
        weight, bias = parts(self.interface)
        memory = state.memory
        commands = sum(self.command_sizes[1:]) - self.access.command_size
        end = Loop(self.access, width, commands, write)(
            Weights.of(self.controller.layers, weight[outputs:], bias[outputs:]),
            jnp.swapaxes(inputs, 0, 1),
            Carry(state.controller, state.reading, state.heads),
            Buffers.of(memory.keys, memory.values, memory.strengths),
            memory.count,
            lengths,
        )
        shown = jnp.concatenate([end.readings, jnp.ones_like(end.readings[:, :, :1])], axis=2)
        if self.access.gated_output:
            shown = jax.nn.sigmoid(end.commands[:, :, width + 1, None]) * shown
        readout = jnp.concatenate([self.readout.weight, parts(self.readout)[1][:, None]], axis=1)
        both = Affine(jnp.concatenate([weight[:outputs], readout], axis=1).T, bias[:outputs])
        logits = both.for_all(jnp.concatenate([end.hidden, shown], axis=2))
        steps = inputs.shape[1] if lengths is None else lengths.astype(memory.count.dtype)
        count = memory.count + steps if write else memory.count
        controller, reading, heads = end.carry
        if not write:
            heads = catch_up(self.access, end.commands[:, :, commands:], heads, lengths)
        memory = Memory(*end.buffers.parts, count)
        after = MemoryState(controller, reading, heads, memory)
        return after, cut(jnp.swapaxes(logits, 0, 1), lengths)
