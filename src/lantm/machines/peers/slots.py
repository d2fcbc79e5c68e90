"""Memories of fixed size: what the recurrent peers share."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lantm.errors import require_positive
from lantm.machines.cell import Cell
from lantm.machines.peers.driver import Driver, States
from lantm.parts import Trace
from lantm.parts.affine import Affine, weight_and_bias
from lantm.parts.overrides import written_for
from lantm.unrolling.controller import Weights, is_loopable
from lantm.unrolling.fixed import FixedLoop, Small
from lantm.unrolling.scan import Inputs, Lengths, Noise, Outputs, cut
from lantm.unrolling.timed import for_all

SOFT = 1e-6
"""Added to squared lengths: the direction of a memory of zeros would turn infinitely fast."""
TINY = 1e-12
"""Weights count for at least this, of which a logarithm is taken."""


class SlotState(NamedTuple):
    controller: States
    reading: Float[Array, "*batch width"]
    """Of all read heads in a row, which the controller sees in the next step."""
    memory: Any
    """What else a step changes: a named tuple of arrays."""


class SlotCell(Cell):
    """A cell whose memory has a fixed number of slots, which no parameter depends on.

    So a trained machine can be given more of them. All its steps may write, those of the answer
    too, as published.
    """

    driver: Driver
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    slots: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    read_heads: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        output_size: int,
        slots: int = 128,
        width: int = 20,
        read_heads: int = 1,
        **driver: Any,
    ):
        """`driver` is the rest of what `Driver` takes."""
        require_positive(slots=slots, width=width, read_heads=read_heads)
        self.input_size, self.output_size = input_size, output_size
        self.slots, self.width, self.read_heads = slots, width, read_heads
        read_width, command_size = read_heads * width, self.command_size
        self.driver = Driver(input_size, output_size, read_width, command_size, **driver)

    @property
    @abc.abstractmethod
    def command_size(self) -> int:
        """Numbers that the controller emits at every step."""

    @abc.abstractmethod
    def init_memory(self, reading: Float[Array, " read_width"]) -> Any:
        """The memory before the first step, and the reading that the controller begins with."""

    @abc.abstractmethod
    def work(
        self, command: Float[Array, " command"], memory: Any, *, write: bool = True
    ) -> tuple[Any, Float[Array, "reads width"], Float[Array, "reads slots"] | None]:
        """What a step does: the memory after it, what was read, and with which weights, if there
        are any. All parameters are the driver's.
        """

    @property
    def initial_memories(self) -> int:
        return 0

    @property
    def noise_size(self) -> int:
        return self.driver.controller.noise_size

    def init_state(self, capacity: int = 0) -> SlotState:
        reading = self.driver.first_reading
        return SlotState(self.driver.controller.initial, reading, self.init_memory(reading))

    def step(
        self, state: SlotState, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[SlotState, Float[Array, " output_size"], Trace]:
        controller, hidden, command = self.driver(state.controller, inputs, state.reading)
        memory, readings, weights = self.work(command, state.memory, write=write)
        reading = readings.reshape(-1)
        trace = Trace(hidden, weights=weights, reading=readings)
        return SlotState(controller, reading, memory), self.driver.output(hidden, reading), trace

    def unroll(
        self,
        state: SlotState,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
        noise: Noise | None = None,
    ) -> tuple[SlotState, Outputs]:
        """By a fast loop, where nothing that it relies on was overridden."""
        driver = self.driver
        if not (written_for(type(self), "unroll", "step") and is_loopable(driver.controller)):
            return super().unroll(state, inputs, lengths, write=write, noise=noise)
        plan = eqx.filter(self, eqx.is_array, inverse=True)

        def work(command: Array, memory: Any) -> tuple[Any, Array]:
            memory, readings, _ = plan.work(command, memory, write=write)
            return memory, readings.reshape(-1)

        weight, bias = weight_and_bias(driver.interface)
        small, memory, hidden, readings = FixedLoop(work, driver.controller.activates)(
            Weights.of(driver.controller, Affine(weight.T, bias)),
            jnp.swapaxes(inputs, 0, 1),
            Small(state.controller, state.reading),
            state.memory,
            lengths,
            noise,
        )
        weight, bias = weight_and_bias(driver.readout)
        both = jnp.concatenate([hidden, readings], axis=2)
        outputs = jnp.swapaxes(for_all(Affine(weight.T, bias), both), 0, 1)
        return SlotState(*small, memory), cut(outputs, lengths)


def similarity(
    key: Float[Array, " width"], memory: Float[Array, "slots width"]
) -> Float[Array, " slots"]:
    """The cosine of the angle between the key and each row; 0 where one is a vector of zeros."""
    squares = (jnp.sum(key**2) + SOFT) * (jnp.sum(memory**2, axis=1) + SOFT)
    return memory @ key / jnp.sqrt(squares)


def sharpen(weights: Float[Array, " slots"], exponent: Float[Array, ""]) -> Float[Array, " slots"]:
    """w_i^e / sum_j w_j^e, by logarithms: large exponents would let every power underflow.

    Where all weights are 0 the result is even.
    """
    return jax.nn.softmax(exponent * jnp.log(jnp.maximum(weights, TINY)))


def oneplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """1 + log(1 + e^x), at least 1."""
    return 1 + jax.nn.softplus(x)
