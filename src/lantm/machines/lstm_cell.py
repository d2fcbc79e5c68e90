"""A controller on its own, without a memory: with an LSTM the paper's first baseline."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.machines.cell import Cell
from lantm.parts import CONTROLLERS, Controller, LayerState, Trace
from lantm.parts.affine import Affine, weight_and_bias
from lantm.parts.controllers import MakeLayer
from lantm.parts.overrides import written_for
from lantm.unrolling.buffers import Buffers, Writing
from lantm.unrolling.controller import Weights, is_loopable
from lantm.unrolling.loop import Blind, Carry, Loop
from lantm.unrolling.scan import Inputs, Lengths, Noise, Outputs, cut
from lantm.unrolling.timed import for_all

States = tuple[LayerState, ...]


class LSTMCell(Cell):
    """No memory but the controller's own (paper, section 5, baseline a)."""

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
        controller: MakeLayer = CONTROLLERS["lstm"],
        key: PRNGKeyArray,
    ):
        require_positive(output_size=output_size)
        controller_key, interface_key = jax.random.split(key)
        self.controller = Controller(
            controller, input_size, hidden_size, layers, key=controller_key
        )
        self.interface = eqx.nn.Linear(hidden_size, output_size, key=interface_key)
        self.input_size, self.output_size = input_size, output_size

    @property
    def initial_memories(self) -> int:
        return 0

    def init_state(self, capacity: int = 0) -> States:
        return self.controller.initial

    @property
    def noise_size(self) -> int:
        return self.controller.noise_size

    def step(
        self, state: States, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[States, Float[Array, " output_size"], Trace]:
        state = self.controller(state, inputs)
        hidden = state[-1].hidden
        return state, self.interface(hidden), Trace(hidden)

    def unroll(
        self,
        state: States,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
        noise: Noise | None = None,
    ) -> tuple[States, Outputs]:
        """By the fast loop: a machine with a memory of width zero that it never writes to."""
        if not (written_for(type(self), "unroll", "step") and is_loopable(self.controller)):
            return super().unroll(state, inputs, lengths, write=write, noise=noise)
        batch = inputs.shape[0]
        weight, bias = weight_and_bias(self.interface)
        none, empty = (jnp.zeros((batch, *[0] * rank), inputs.dtype) for rank in (1, 2))
        loop = Loop(Blind(), self.controller.activates, Writing(0, 0), skip=0, write=False)
        end = loop(
            Weights.of(self.controller, Affine(weight[:0].T, bias[:0])),
            jnp.swapaxes(inputs, 0, 1),
            Carry(state, none, None),
            Buffers.of(empty, empty, none),
            jnp.zeros(batch, jnp.int32),
            lengths,
            noise,
        )
        outputs = jnp.swapaxes(for_all(Affine(weight.T, bias), end.hidden), 0, 1)
        return end.carry.controller, cut(outputs, lengths)
