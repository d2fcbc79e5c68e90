"""Many steps of a cell by a plain scan: slow, obvious, and with a trace of every step."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from lantm.cells import Cell, MemoryState, State, Trace
from lantm.errors import require_shape

Inputs: TypeAlias = Float[Array, "batch time input_size"]
Outputs: TypeAlias = Float[Array, "batch time output_size"]
Lengths: TypeAlias = Int[Array, " batch"]
Kept = TypeVar("Kept")


def init_states(cell: Cell, batch: int, capacity: int) -> State:
    """The cell's initial state for every sequence of a batch."""
    state = cell.init_state(capacity)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), state)


def unroll_scan(
    cell: Cell, state: State, inputs: Inputs, lengths: Lengths | None = None, *, write: bool = True
) -> tuple[State, Outputs]:
    """The final state and every output.

    A sequence ends after its length: its state stays as it is and its outputs are zero from there
    on. Without lengths all steps count.
    """
    return _scan(cell, state, inputs, lengths, write, keep=lambda outputs, trace: outputs)


def unroll_traced(
    cell: Cell, state: State, inputs: Inputs, lengths: Lengths | None = None, *, write: bool = True
) -> tuple[State, tuple[Outputs, Trace]]:
    """The same, with what every step did; what a trace says after a sequence's length is void."""
    return _scan(cell, state, inputs, lengths, write, keep=lambda outputs, trace: (outputs, trace))


def _scan(
    cell: Cell,
    state: State,
    inputs: Inputs,
    lengths: Lengths | None,
    write: bool,
    keep: Callable[[Float[Array, "batch output_size"], Trace], Kept],
) -> tuple[State, Kept]:
    step = jax.vmap(partial(cell.step, write=write))

    def body(state: State, now: tuple[Int[Array, ""], Array]) -> tuple[State, Kept]:
        time, x = now
        new, outputs, trace = step(state, x)
        if lengths is not None:
            new, outputs = select(time < lengths, (new, outputs), (state, jnp.zeros_like(outputs)))
        return new, keep(outputs, trace)

    times = jnp.arange(inputs.shape[1])
    state, kept = jax.lax.scan(body, state, (times, jnp.swapaxes(inputs, 0, 1)))
    return state, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)


def checked(
    state: State, shape: tuple[int, ...], lengths: Lengths | None, *, write: bool = True
) -> State:
    """The same state, or an error (under `jax.jit` too) if the lengths or its buffer do not fit.

    `shape` is that of the inputs: batch, time, and whatever follows.
    """
    batch, time = shape[:2]
    steps = jnp.full(batch, time) if lengths is None else lengths
    require_shape("lengths", steps.shape, batch)
    if lengths is not None:
        message = f"lengths must be between 0 and {time}, the time steps given"
        state = eqx.error_if(state, (lengths < 0) | (lengths > time), message)
    if write and isinstance(state, MemoryState):
        capacity = state.memory.strengths.shape[1]
        message = (
            f"lengths must fit the state's buffer of {capacity} memories: make the state with "
            "room for as many steps as will be written"
        )
        state = eqx.error_if(state, state.memory.count + steps > capacity, message)
    return state


def select(choose: Bool[Array, " batch"], yes: PyTree, no: PyTree) -> PyTree:
    """`yes` where chosen, else `no`, for every leaf of a batch."""
    return jax.tree.map(
        lambda a, b: jnp.where(choose.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no
    )
