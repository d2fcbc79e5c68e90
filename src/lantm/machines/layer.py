"""The memory as a layer for other people's models."""

from functools import partial

import equinox as eqx
import jax

from lantm.errors import require_lengths, require_positive, require_shape
from lantm.machines.cell import Cell, checked, states_for
from lantm.parts import Trace
from lantm.unrolling.scan import Inputs, Lengths, Outputs, State, unroll_scan, unroll_traced


class MemoryLayer(eqx.Module):
    """A recurrent layer: `(inputs, state, lengths) -> (outputs, state)`, with the state explicit.

    It takes any cell. Chunks of a long sequence can be fed one after the other by handing each
    call's state to the next; a sequence that has ended (`lengths`) keeps its state.

    The fast loop has reverse-mode derivatives, of the first order. With `reference` the plain scan
    takes its place: slower, and differentiable in every way that JAX knows.
    """

    cell: Cell
    reference: bool = eqx.field(static=True, default=False)

    def init_state(self, batch: int, steps: int) -> State:
        """A fresh state with room for `steps` writes."""
        require_positive(batch=batch, steps=steps)
        return states_for(self.cell, batch, steps)

    def __call__(
        self,
        inputs: Inputs,
        state: State,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
    ) -> tuple[Outputs, State]:
        """The outputs of every step, zero after a sequence's length, and the state after it."""
        state = self._checked(inputs, state, lengths, write)
        unroll = partial(unroll_scan, self.cell) if self.reference else self.cell.unroll
        state, outputs = unroll(state, inputs, lengths, write=write)
        return outputs, state

    def trace(
        self,
        inputs: Inputs,
        state: State,
        lengths: Lengths | None = None,
        *,
        write: bool = True,
    ) -> Trace:
        """What every step of the same call does."""
        state = self._checked(inputs, state, lengths, write)
        _, (_, trace) = unroll_traced(self.cell, state, inputs, lengths, write=write)
        return trace

    def _checked(self, inputs: Inputs, state: State, lengths: Lengths | None, write: bool) -> State:
        require_shape("inputs", inputs.shape, "batch", "time", self.cell.input_size)
        require_positive(time=inputs.shape[1])
        require_lengths(lengths, inputs.shape[1])
        require_precision(inputs, self.cell)
        return checked(self.cell, state, inputs.shape, lengths, write=write)


def require_precision(inputs: Inputs, cell: Cell) -> None:
    """Inputs have to be numbers like the cell's parameters: a mixture would be neither."""
    kinds = {leaf.dtype for leaf in jax.tree.leaves(cell) if eqx.is_inexact_array(leaf)}
    for kind in kinds - {inputs.dtype}:
        raise ValueError(f"inputs must be {kind}, as the parameters are; got {inputs.dtype}")
