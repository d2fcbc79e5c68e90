"""The controller of a machine with a memory: it sees what was read, and commands what to do."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lantm.errors import require_positive
from lantm.initialise import uniform
from lantm.parts import CONTROLLERS, Controller, LayerState
from lantm.parts.controllers import MakeLayer

States = tuple[LayerState, ...]


class Driver(eqx.Module):
    """h' = RNN([x; r], h), a command W h', and an output V [h'; r']."""

    controller: Controller
    interface: eqx.nn.Linear
    readout: eqx.nn.Linear
    initial_reading: Float[Array, " width"]
    """Before tanh; learned, as everywhere here."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        read_width: int,
        command_size: int,
        *,
        hidden_size: int = 50,
        layers: int = 1,
        controller: MakeLayer = CONTROLLERS["lstm"],
        key: PRNGKeyArray,
    ):
        require_positive(input_size=input_size, output_size=output_size, read_width=read_width)
        keys = jax.random.split(key, 4)
        self.controller = Controller(
            controller, input_size + read_width, hidden_size, layers, key=keys[0]
        )
        self.interface = eqx.nn.Linear(hidden_size, command_size, key=keys[1])
        self.readout = eqx.nn.Linear(hidden_size + read_width, output_size, key=keys[2])
        self.initial_reading = uniform(keys[3], read_width)

    @property
    def first_reading(self) -> Float[Array, " width"]:
        return jnp.tanh(self.initial_reading)

    def __call__(
        self,
        states: States,
        inputs: Float[Array, " input_size"],
        reading: Float[Array, " width"],
    ) -> tuple[States, Float[Array, " hidden"], Float[Array, " command"]]:
        """The controller's new state, its output, and the command."""
        states = self.controller(states, jnp.concatenate([inputs, reading]))
        hidden = states[-1].hidden
        return states, hidden, self.interface(hidden)

    def output(
        self, hidden: Float[Array, " hidden"], reading: Float[Array, " width"]
    ) -> Float[Array, " output_size"]:
        return self.readout(jnp.concatenate([hidden, reading]))
