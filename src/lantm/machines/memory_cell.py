"""The cell of every machine with a memory; how it finds its way there is an `Access`."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform
from lantm.machines.cell import Cell
from lantm.memory import InitialMemory, Memory
from lantm.parts import CONTROLLERS, OUTPUTS, Access, Controller, Heads, LayerState, Output, Trace
from lantm.parts.affine import Affine, weight_and_bias
from lantm.parts.controllers import MakeLayer
from lantm.parts.output import MakeOutput
from lantm.parts.overrides import written_for
from lantm.parts.pieces import split
from lantm.spaces import Chart
from lantm.unrolling.buffers import Buffers, Writing
from lantm.unrolling.controller import Weights, is_loopable
from lantm.unrolling.loop import Carry, Loop
from lantm.unrolling.scan import Inputs, Lengths, Noise, Outputs, cut
from lantm.unrolling.timed import for_all


class MemoryState(NamedTuple):
    controller: tuple[LayerState, ...]
    reading: Float[Array, "*batch width"]
    """rho of the last step, of all read heads in a row, which the controller sees in the next."""
    heads: Heads
    memory: Memory


class MemoryCell(Cell):
    """Controller, heads and memory: h' = RNN([x; rho], h), then RW(Sigma, q, h').

    One linear layer on the hidden state emits everything: the output, what to write, and the
    access's command. A step reads before it writes.
    """

    controller: Controller
    interface: eqx.nn.Linear
    output: Output
    access: Access
    initial_memory: InitialMemory
    initial_reading: Float[Array, " width"]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    strength_floor: float = eqx.field(static=True)
    """The least strength of a memory that a step writes."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        access: Access,
        *,
        hidden_size: int = 50,
        width: int = 20,
        layers: int = 1,
        controller: MakeLayer = CONTROLLERS["lstm"],
        output: MakeOutput = OUTPUTS["linear"],
        gated_output: bool = True,
        initial_strength_bias: float = -10.0,
        strength_floor: float = 0.0,
        key: PRNGKeyArray,
    ):
        require_positive(
            input_size=input_size, output_size=output_size, hidden_size=hidden_size, width=width
        )
        keys = jax.random.split(key, 5)
        read_width = access.read_heads * width
        self.strength_floor = strength_floor
        self.input_size, self.output_size, self.access = input_size, output_size, access
        self.controller = Controller(
            controller, input_size + read_width, hidden_size, layers, key=keys[0]
        )
        self.initial_memory = InitialMemory(
            access.initial_memories,
            access.key_size,
            width,
            strength_bias=initial_strength_bias,
            key=keys[1],
        )
        self.initial_reading = uniform(keys[2], read_width)
        self.output = output(hidden_size, read_width, output_size, gated=gated_output, key=keys[3])
        self.interface = eqx.nn.Linear(hidden_size, sum(self.command_sizes), key=keys[4])

    @property
    def width(self) -> int:
        """Numbers in a memory's value."""
        return self.initial_memory.values.shape[1]

    @property
    def command_sizes(self) -> tuple[int, ...]:
        """The pieces of the interface: output, values, strengths, output gate, access."""
        writes = self.access.write_heads
        gate = int(self.output.gated)
        return self.output_size, writes * self.width, writes, gate, self.access.command_size

    @property
    def initial_memories(self) -> int:
        return self.initial_memory.slots

    @property
    def memories_per_step(self) -> int:
        return self.access.write_heads

    @property
    def noise_size(self) -> int:
        return self.controller.noise_size

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
        direct, values, strengths, gate, command = split(self.interface(hidden), self.command_sizes)

        heads, weights, read, wrote = self.access(command, state.heads, state.memory.slots)
        readings = state.memory.read(weights)

        values = jnp.tanh(values).reshape(self.access.write_heads, self.width)
        floor = self.strength_floor
        strengths = floor + (1 - floor) * jax.nn.sigmoid(strengths)
        memory = state.memory
        for new in zip(wrote.key, values, strengths, strict=True) if write else ():
            memory = memory.write(*new)

        output_gate = jax.nn.sigmoid(gate[0]) if self.output.gated else None
        reading = readings.reshape(-1)
        features = self.output.features(output_gate, hidden, reading)
        output = direct + self.output.matrix() @ features
        trace = Trace(hidden, read, wrote, weights, readings, values, strengths, output_gate)
        return MemoryState(controller, reading, heads, memory), output, trace

    def room(self, state: MemoryState) -> Int[Array, " batch"]:
        return state.memory.strengths.shape[1] - state.memory.count

    def chart(self, keys: np.ndarray) -> Chart:
        return self.access.chart(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        return self.access.distances(keys)

    def unroll(
        self,
        state: MemoryState,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
        noise: Noise | None = None,
    ) -> tuple[MemoryState, Outputs]:
        """By the fast loop, where nothing that it relies on was overridden."""
        fast = (
            written_for(type(self), "unroll", "step")
            and is_loopable(self.controller)
            and self.access.in_pieces
        )
        if not fast:
            return super().unroll(state, inputs, lengths, write=write, noise=noise)
        outputs, memory = self.output_size, state.memory
        weight, bias = weight_and_bias(self.interface)
        writing = Writing(self.access.write_heads, self.width, self.strength_floor)
        loop = Loop(self.access, self.controller.activates, writing, self.skipped, write)
        end = loop(
            Weights.of(self.controller, Affine(weight[outputs:].T, bias[outputs:])),
            jnp.swapaxes(inputs, 0, 1),
            Carry(state.controller, state.reading, state.heads),
            Buffers.of(memory.keys, memory.values, memory.strengths),
            memory.count,
            lengths,
            noise,
        )
        gates = jax.nn.sigmoid(end.commands[:, :, self.skipped - 1]) if self.output.gated else None
        features = jax.vmap(jax.vmap(self.output.features))(gates, end.hidden, end.readings)
        matrix = jnp.concatenate([weight[:outputs], self.output.matrix()], axis=1)
        both = jnp.concatenate([end.hidden, features], axis=2)
        said = for_all(Affine(matrix.T, bias[:outputs]), both)
        steps = inputs.shape[1] if lengths is None else lengths.astype(memory.count.dtype)
        count = memory.count + self.memories_per_step * steps if write else memory.count
        after = MemoryState(*end.carry, Memory(*end.buffers.parts, count))
        return after, cut(jnp.swapaxes(said, 0, 1), lengths)

    @property
    def skipped(self) -> int:
        """Commands before the access's own: values, strengths, output gate."""
        return sum(self.command_sizes[1:-1])
