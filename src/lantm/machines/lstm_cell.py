"""The LSTM on its own: the paper's first baseline."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.machines.cell import Cell
from lantm.parts import Controller, LSTMState, Trace
from lantm.unrolling.loop import Affine, Blind, Buffers, Carry, Loop, Weights, cut, parts
from lantm.unrolling.scan import Inputs, Lengths, Outputs


class LSTMCell(Cell):
    """No memory but the controller's own (paper, section 4, baseline a)."""

    controller: Controller
    interface: eqx.nn.Linear
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        output_size: int,
        hidden_size: int = 256,
        layers: int = 1,
        *,
        key: PRNGKeyArray,
    ):
        require_positive(output_size=output_size)
        controller_key, interface_key = jax.random.split(key)
        self.controller = Controller(input_size, hidden_size, layers, key=controller_key)
        self.interface = eqx.nn.Linear(hidden_size, output_size, key=interface_key)
        self.input_size = input_size
        self.output_size = output_size

    @property
    def initial_memories(self) -> int:
        return 0

    def init_state(self, capacity: int = 0) -> tuple[LSTMState, ...]:
        return self.controller.initial

    def step(
        self,
        state: tuple[LSTMState, ...],
        inputs: Float[Array, " input_size"],
        *,
        write: bool = True,
    ) -> tuple[tuple[LSTMState, ...], Float[Array, " output_size"], Trace]:
        state = self.controller(state, inputs)
        hidden = state[-1].hidden
        return state, self.interface(hidden), Trace(hidden)

    def unroll(
        self,
        state: tuple[LSTMState, ...],
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
    ) -> tuple[tuple[LSTMState, ...], Outputs]:
        """By the fast loop: a machine with a memory of width zero that it never writes to."""
        batch = inputs.shape[0]
        weight, bias = parts(self.interface)
        none, empty = (jnp.zeros((batch, *[0] * rank), inputs.dtype) for rank in (1, 2))
        end = Loop(Blind(), 0, 0, False)(
            Weights.of(self.controller.layers, weight[:0], bias[:0]),
            jnp.swapaxes(inputs, 0, 1),
            Carry(state, none, None),
            Buffers.of(empty, empty, none),
            jnp.zeros(batch, jnp.int32),
            lengths,
        )
        outputs = jnp.swapaxes(Affine(weight.T, bias).for_all(end.hidden), 0, 1)
        return end.carry.controller, cut(outputs, lengths)
