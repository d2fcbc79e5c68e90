"""Many steps of a cell by a plain scan: slow, obvious, and with a trace of every step."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from lantm.parts import Trace

Inputs: TypeAlias = Float[Array, "batch time input_size"]
Outputs: TypeAlias = Float[Array, "batch time output_size"]
Lengths: TypeAlias = Int[Array, " batch"]
Noise: TypeAlias = Float[Array, "time batch noise_size"]
State: TypeAlias = Any
"""All that a cell carries from step to step: a named, immutable value of arrays."""
Kept = TypeVar("Kept")


@runtime_checkable
class Steps(Protocol):
    """What can be unrolled: a cell, as far as the loop over time is concerned."""

    def step(
        self, state: State, inputs: Float[Array, " input_size"], *, write: bool = True
    ) -> tuple[State, Float[Array, " output_size"], Trace]: ...


def unroll_scan(
    cell: Steps,
    state: State,
    inputs: Inputs,
    lengths: Lengths | None = None,
    *,
    write: bool = True,
) -> tuple[State, Outputs]:
    """The final state and every output.

    A sequence ends after its length: its state stays as it is and its outputs are zero from there
    on. Without lengths all steps count.
    """
    return _scan(cell, state, inputs, lengths, write, keep=lambda outputs, trace: outputs)


def unroll_traced(
    cell: Steps, state: State, inputs: Inputs, lengths: Lengths | None = None, *, write: bool = True
) -> tuple[State, tuple[Outputs, Trace]]:
    """The same, with what every step did; what a trace says after a sequence's length is void."""
    return _scan(cell, state, inputs, lengths, write, keep=lambda outputs, trace: (outputs, trace))


def _scan(
    cell: Steps,
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


def select(choose: Bool[Array, " batch"], yes: PyTree, no: PyTree) -> PyTree:
    """`yes` where chosen, else `no`, for every leaf of a batch."""
    return jax.tree.map(
        lambda a, b: jnp.where(choose.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no
    )


def cut(outputs: Outputs, lengths: Lengths | None) -> Outputs:
    """Outputs, zero after a sequence's length."""
    if lengths is None:
        return outputs
    counted = jnp.arange(outputs.shape[1])[None, :] < lengths[:, None]
    return jnp.where(counted[:, :, None], outputs, 0.0)
