"""What a cell is: one step of a machine, and how many steps of it are made."""

import abc

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lantm.errors import require_shape
from lantm.parts import Trace
from lantm.spaces import Chart, coordinates, straight_distances
from lantm.unrolling.scan import Inputs, Lengths, Noise, Outputs, State, unroll_scan


class Cell(eqx.Module):
    """One step of a machine: controller, heads and memory. Unbatched; `jax.vmap` adds the batch."""

    input_size: eqx.AbstractVar[int]
    output_size: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def initial_memories(self) -> int:
        """Memories that exist before the first step."""

    @property
    def memories_per_step(self) -> int:
        """Memories that a step writes."""
        return 1

    @abc.abstractmethod
    def init_state(self, capacity: int) -> State:
        """The learnable initial state, with room for `capacity` memories, initial ones included."""

    @abc.abstractmethod
    def step(
        self, state: State, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[State, Float[Array, " output_size"], Trace]:
        """The next state, this step's output, and what happened. `write` keeps new memories."""

    @property
    def noise_size(self) -> int:
        """Numbers of a step that noise can be put on; 0: none."""
        return 0

    def unroll(
        self,
        state: State,
        inputs: Inputs,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
        noise: Noise | None = None,
    ) -> tuple[State, Outputs]:
        """The final state and every output of a batch: what `unroll_scan` gives, or gives slower.

        `noise` is added to what the controller's first layer activates. A cell that overrides this
        sees to it that whoever overrides its `step` gets that.
        """
        if noise is not None:
            raise ValueError("noise is only for cells in the fast loop")
        return unroll_scan(self, state, inputs, lengths, write=write)

    def room(self, state: State) -> Int[Array, " batch"] | None:
        """Memories that a batch of states has room for; None: any number."""
        return None

    def chart(self, keys: np.ndarray) -> Chart:
        """Keys of its memories, one a row, as points of a picture."""
        return coordinates(keys)

    def distances(self, keys: np.ndarray) -> np.ndarray:
        """How far each of these keys is from each."""
        return straight_distances(keys)


def unroll(
    cell: Cell, state: State, inputs: Inputs, lengths: Lengths | None = None, *, write: bool = True
) -> tuple[State, Outputs]:
    """The final state and every output, the way the cell does it fastest."""
    return cell.unroll(state, inputs, lengths, write=write)


def init_states(cell: Cell, batch: int, capacity: int) -> State:
    """The cell's initial state for every sequence of a batch."""
    state = cell.init_state(capacity)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), state)


def states_for(cell: Cell, batch: int, steps: int) -> State:
    """The same with room for that many steps that write."""
    return init_states(cell, batch, cell.initial_memories + steps * cell.memories_per_step)


def checked(
    cell: Cell,
    state: State,
    shape: tuple[int, ...],
    lengths: Lengths | None,
    *,
    write: bool = True,
) -> State:
    """The same state, or an error (under `jax.jit` too) if the lengths or its buffer do not fit.

    `shape` is that of the inputs: batch, time, and whatever follows.
    """
    batch, time = shape[:2]
    require_state(cell, state, batch)
    steps = jnp.full(batch, time) if lengths is None else lengths
    require_shape("lengths", steps.shape, batch)
    if lengths is not None:
        message = f"lengths must be between 0 and {time}, the time steps given"
        state = eqx.error_if(state, (lengths < 0) | (lengths > time), message)
    room = cell.room(state) if write else None
    if room is not None:
        full = steps * cell.memories_per_step > room
        if not isinstance(full, jax.core.Tracer) and bool(jnp.any(full)):
            raise ValueError(FULL)
        state = eqx.error_if(state, full, FULL)
    return state


FULL = (
    "lengths must fit the state's buffer of memories: make the state with room for as many steps "
    "as will be written"
)


def require_state(cell: Cell, state: State, batch: int) -> None:
    """The state has to be of that cell, and of as many sequences as there are inputs."""
    if state is None:
        raise ValueError("state must be given: init_state makes one")
    wanted = eqx.filter_eval_shape(init_states, cell, batch, cell.initial_memories)
    leaves = jax.tree.leaves(state)
    if jax.tree.structure(state) != jax.tree.structure(wanted):
        raise ValueError("state must be of this cell, got one of another")
    for leaf, like in zip(leaves, jax.tree.leaves(wanted), strict=True):
        if leaf.shape[:1] != (batch,):
            raise ValueError(f"state must be of {batch} sequences, got one of {leaf.shape[0]}")
        if leaf.ndim != like.ndim or leaf.shape[2:] != like.shape[2:]:
            raise ValueError("state must be of this cell, got one of other sizes")
