"""Many steps of a cell, for a batch of sequences, with a backward pass of its own.

The same as `lantm.reference.unroll_scan`, faster: `docs/unroll.md` derives it. What all cells share
(LSTM, interface, append-only memory) is differentiated by hand here; an access, with its key space
and weighting, is left to `jax.vjp`. Inside, time comes first and a memory's values lie
[batch, width, slots], so that a reading runs along the slots.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from lantm.cells import (
    Access,
    Addressing,
    Cell,
    HeadTrace,
    LSTMCell,
    LSTMState,
    MemoryCell,
    MemoryState,
    State,
)
from lantm.cells.lstm import LSTMLayer
from lantm.memory import Memory, Slots
from lantm.reference import Inputs, Lengths, Outputs, select, unroll_scan

Batched: TypeAlias = Float[Array, "batch _"]
Timed: TypeAlias = Float[Array, "time batch _"]


def unroll(
    cell: Cell, state: State, inputs: Inputs, lengths: Lengths | None = None, *, write: bool = True
) -> tuple[State, Outputs]:
    """The final state and every output, as `unroll_scan` has them."""
    if isinstance(cell, MemoryCell):
        state, outputs = _unroll_memory(cell, state, inputs, lengths, write)
    elif isinstance(cell, LSTMCell):
        state, outputs = _unroll_lstm(cell, state, inputs, lengths)
    else:
        return unroll_scan(cell, state, inputs, lengths, write=write)
    if lengths is not None:
        counted = jnp.arange(inputs.shape[1])[None, :] < lengths[:, None]
        outputs = jnp.where(counted[:, :, None], outputs, 0.0)
    return state, outputs


def _unroll_memory(
    cell: MemoryCell, state: MemoryState, inputs: Inputs, lengths: Lengths | None, write: bool
) -> tuple[MemoryState, Outputs]:
    """Input and output projections before and after the loop, for all steps at once."""
    outputs, width = cell.command_sizes[:2]
    interface = parts(cell.interface)
    first = cell.controller.layers[0]
    from_input, from_reading = jnp.split(first.from_input.weight, [cell.input_size], axis=1)
    command = [part[outputs:] for part in interface]
    weights = _weights(cell.controller.layers, from_reading, *command)
    memory = state.memory
    buffers = Buffers(memory.keys, jnp.swapaxes(memory.values, 1, 2), memory.strengths)
    commands = sum(cell.command_sizes[1:]) - cell.access.command_size
    end = Loop(cell.access, width, commands, write)(
        weights,
        _project(inputs, from_input, _bias(first)),
        Carry(state.controller, state.reading, state.heads),
        buffers,
        memory.count,
        lengths,
    )
    shown = _unproject(end.readings, *parts(cell.readout))
    if cell.access.gated_output:
        shown = jax.nn.sigmoid(end.commands[:, :, width + 1].T)[:, :, None] * shown
    direct = _unproject(end.hidden, *(part[:outputs] for part in interface))
    keys, values, strengths = end.buffers
    steps = inputs.shape[1] if lengths is None else lengths.astype(memory.count.dtype)
    count = memory.count + steps if write else memory.count
    memory = Memory(keys, jnp.swapaxes(values, 1, 2), strengths, count)
    return MemoryState(*end.carry, memory), direct + shown


def _unroll_lstm(
    cell: LSTMCell, state: tuple[LSTMState, ...], inputs: Inputs, lengths: Lengths | None
) -> tuple[tuple[LSTMState, ...], Outputs]:
    """An LSTM is a machine with a memory of width zero that it never writes to."""
    batch = inputs.shape[0]
    first = cell.controller.layers[0]
    interface = parts(cell.interface)
    nothing = first.from_input.weight[:, :0]
    weights = _weights(cell.controller.layers, nothing, *(part[:0] for part in interface))
    none, empty = (jnp.zeros((batch, *[0] * rank), inputs.dtype) for rank in (1, 2))
    end = Loop(Blind(), 0, 0, False)(
        weights,
        _project(inputs, first.from_input.weight, _bias(first)),
        Carry(state, none, None),
        Buffers(empty, empty, none),
        jnp.zeros(batch, jnp.int32),
        lengths,
    )
    return end.carry.controller, _unproject(end.hidden, *interface)


def _weights(
    layers: tuple[LSTMLayer, ...], from_reading: Array, command: Array, bias: Array
) -> "Weights":
    below = [from_reading, *(layer.from_input.weight for layer in layers[1:])]
    recurrent = (
        jnp.concatenate([part, layer.from_hidden.weight], axis=1).T
        for part, layer in zip(below, layers, strict=True)
    )
    return Weights(tuple(recurrent), tuple(map(_bias, layers[1:])), command.T, bias)


def _bias(layer: LSTMLayer) -> Float[Array, " gates"]:
    return parts(layer.from_input)[1] + parts(layer.from_hidden)[1]


def parts(linear: eqx.nn.Linear) -> tuple[Array, Array]:
    """Weight and bias."""
    bias = linear.bias
    return linear.weight, jnp.zeros(linear.weight.shape[0]) if bias is None else bias


def _project(inputs: Inputs, weight: Array, bias: Array) -> Timed:
    return jnp.einsum("bti,oi->tbo", inputs, weight) + bias[None, None]


def _unproject(inputs: Timed, weight: Array, bias: Array) -> Outputs:
    return jnp.einsum("tbi,oi->bto", inputs, weight) + bias[None, None]


class Weights(NamedTuple):
    """What multiplies something inside the loop."""

    recurrent: tuple[Float[Array, "inputs gates"], ...]
    """Per LSTM layer, from [what is below; its own hidden state]. Below the first: the reading."""
    biases: tuple[Float[Array, " gates"], ...]
    """Of the layers above the first."""
    command: Float[Array, "hidden commands"]
    command_bias: Float[Array, " commands"]


class Carry(NamedTuple):
    """The small part of the state."""

    controller: tuple[LSTMState, ...]
    reading: Batched
    heads: PyTree


class Buffers(NamedTuple):
    """The memory inside the loop."""

    keys: Float[Array, "batch slots key_size"]
    values: Float[Array, "batch width slots"]
    strengths: Float[Array, "batch slots"]


class Tape(NamedTuple):
    """What the forward pass keeps of every step for the backward pass."""

    before: Carry
    gates: tuple[Timed, ...]
    """Per layer, after their activations: forget, input, output, candidate."""
    squashed: tuple[Timed, ...]
    """Per layer, tanh of the cell state after the step."""


class End(NamedTuple):
    """What comes out of the loop."""

    carry: Carry
    buffers: Buffers
    hidden: Timed
    readings: Timed
    commands: Timed
    """Value, strength, output gate if there is one, the access's command; before activations."""


class Blind(eqx.Module):
    """The access of a machine without a memory."""

    def __call__(self, command: Array, heads: None, slots: Slots) -> Addressing:
        nowhere = HeadTrace(slots.strengths[:0])
        return Addressing(None, slots.strengths, nowhere, nowhere)


@dataclass(frozen=True)
class Loop:
    """The loop over time, forwards and backwards."""

    access: Access | Blind
    width: int
    """Of a memory's value."""
    skip: int
    """Commands before the access's own: value, strength, output gate."""
    write: bool

    def __call__(
        self,
        weights: Weights,
        projected: Timed,
        carry: Carry,
        buffers: Buffers,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
    ) -> End:
        params, static = eqx.partition(self.access, eqx.is_array)
        loop = Loop(static, self.width, self.skip, self.write)

        @jax.custom_vjp
        def run(*arguments: Any) -> End:
            return loop.forward(*arguments)[0]

        run.defvjp(loop.forward, loop.backward)
        return run(weights, params, projected, carry, buffers, count, lengths)

    def forward(
        self,
        weights: Weights,
        params: PyTree,
        projected: Timed,
        carry: Carry,
        buffers: Buffers,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
    ) -> tuple[End, Any]:
        """All steps; what they kept for the backward pass."""
        step = partial(self.step, weights, params, count, lengths)

        def body(t: Int[Array, ""], loop: Any) -> Any:
            carry, buffers, new, record = loop
            buffers = self.append(buffers, new, count, t - 1, lengths)
            carry, new, now = step(t, projected[t], carry, buffers)
            return carry, buffers, new, put(record, t, now)

        time = projected.shape[0]
        steps = trips(time, lengths)
        shapes = jax.eval_shape(step, jnp.array(0), projected[0], carry, buffers)
        new = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), shapes[1])
        blank = jax.tree.map(lambda one: jnp.zeros((time, *one.shape), one.dtype), shapes[2])
        loop = jax.lax.fori_loop(0, steps, body, (carry, buffers, new, blank))
        carry, buffers, new, (tape, outputs) = loop
        buffers = self.append(buffers, new, count, steps - 1, lengths)
        end = End(carry, buffers, *outputs)
        return end, (weights, params, tape, end, count, lengths)

    def step(
        self,
        weights: Weights,
        params: PyTree,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
        t: Int[Array, ""],
        projected: Batched,
        before: Carry,
        buffers: Buffers,
    ) -> tuple[Carry, tuple[Array, Array, Array] | None, Any]:
        """One step: the state after it, the memory to be written, and what to record.

        The memory is written at the start of the next step: before anything reads the buffers, so
        that it happens in place.
        """
        controller, gates, squashed = control(weights, projected, before)
        hidden = controller[-1].hidden
        command = hidden @ weights.command + weights.command_bias[None]
        heads, read, key = self.address(
            self.exist(count, t),
            params,
            command[:, self.skip :],
            before.heads,
            buffers.keys,
            buffers.strengths,
        )
        reading = jnp.einsum("bn,bwn->bw", read, buffers.values)
        after = Carry(controller, reading, heads)
        if lengths is not None:
            after = select(t < lengths, after, before)
        new = (key, self.value(command), self.strength(command)) if self.write else None
        return after, new, (Tape(before, gates, squashed), (hidden, reading, command))

    def append(
        self,
        buffers: Buffers,
        new: tuple[Array, Array, Array] | None,
        count: Int[Array, " batch"],
        t: Int[Array, ""] | int,
        lengths: Lengths | None,
    ) -> Buffers:
        """The buffers with the memory of step t."""
        if new is None:
            return buffers
        key, value, strength = new
        where = written(buffers, count, t, lengths)
        return Buffers(
            buffers.keys.at[where].set(key, mode="drop"),
            buffers.values.at[where[0], :, where[1]].set(value, mode="drop"),
            buffers.strengths.at[where].set(strength, mode="drop"),
        )

    def backward(self, kept: Any, cotangent: End) -> tuple[Any, ...]:
        """The cotangents of everything `forward` was given."""
        weights, params, tape, end, count, lengths = kept
        steps = trips(end.hidden.shape[0], lengths)
        unstep = partial(self.unstep, weights, params, count, lengths, end.buffers)

        def body(i: Int[Array, ""], loop: Any) -> Any:
            carry, buffers, new, d_params, record = loop
            t = steps - 1 - i
            at_t = partial(jax.tree.map, lambda every: every[t])
            outputs = at_t((cotangent.hidden, cotangent.readings, cotangent.commands))
            carry, buffers, d_param, now = unstep(
                t, at_t(tape), end.commands[t], carry, buffers, new, outputs
            )
            new = self.take(buffers, count, t - 1, lengths)
            return carry, buffers, new, add(d_params, d_param), put(record, t, now)

        blank = zeros((tape.gates, end.commands))
        new = self.take(cotangent.buffers, count, steps - 1, lengths)
        loop = (cotangent.carry, cotangent.buffers, new, zeros(params), blank)
        loop = jax.lax.fori_loop(0, steps, body, loop)
        carry, buffers, _, d_params, (d_gates, d_commands) = loop
        if self.write:
            buffers = without_written(buffers, count, end.hidden.shape[0], lengths)
        d_weights = weight_gradients(tape, end.hidden, d_gates, d_commands)
        return d_weights, d_params, d_gates[0], carry, buffers, None, None

    def unstep(
        self,
        weights: Weights,
        params: PyTree,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
        final: Buffers,
        t: Int[Array, ""],
        tape: Tape,
        command: Batched,
        after: Carry,
        buffers: Buffers,
        new: tuple[Array, Array, Array] | None,
        outputs: tuple[Batched, Batched, Batched],
    ) -> tuple[Carry, Buffers, PyTree, Any]:
        """One step backwards, from cotangents after it to cotangents before it.

        The final buffers stand for the step's own: what was written later is not valid yet. The
        cotangent of a memory is complete when the step that wrote it is reached.
        """
        passed = None
        if lengths is not None:
            passed = select(t < lengths, zeros(after), after)
            after = select(t < lengths, after, zeros(after))
        hidden, reading, d_command = outputs
        reading = reading + after.reading
        d_key = None
        if new is not None:
            d_key, d_value, d_strength = new
            value, strength = self.value(command), self.strength(command)
            d_value = d_value * (1 - value**2)
            d_strength = (d_strength * strength * (1 - strength))[:, None]
            front = jnp.concatenate([d_value, d_strength], axis=1)
            d_command = d_command.at[:, : self.width + 1].add(front)
        (_, read, key), pull = jax.vjp(
            partial(self.address, self.exist(count, t)),
            params,
            command[:, self.skip :],
            tape.before.heads,
            final.keys,
            final.strengths,
        )
        d_key = jnp.zeros_like(key) if d_key is None else d_key
        d_read = jnp.einsum("bw,bwn->bn", reading, final.values)
        d_params, d_access, heads, d_keys, d_strengths = pull((after.heads, d_read, d_key))
        d_command = d_command.at[:, self.skip :].add(d_access)
        hidden = hidden + d_command @ weights.command.T
        controller, reading_before, d_gates = uncontrol(weights, tape, after.controller, hidden)
        before = Carry(controller, reading_before, heads)
        if passed is not None:
            before = add(before, passed)
        values = buffers.values + reading[:, :, None] * read[:, None, :]
        buffers = Buffers(buffers.keys + d_keys, values, buffers.strengths + d_strengths)
        return before, buffers, d_params, (d_gates, d_command)

    def take(
        self, buffers: Buffers, count: Int[Array, " batch"], t: Any, lengths: Lengths | None
    ) -> tuple[Array, Array, Array] | None:
        """The cotangents of the memory that step t wrote.

        Taken at the end of the step after it, so that nothing reads the buffers before they are
        added to: that happens in place then.
        """
        if not self.write:
            return None
        where = written(buffers, count, t, lengths)
        return (
            buffers.keys.at[where].get(mode="fill", fill_value=0.0),
            buffers.values.at[where[0], :, where[1]].get(mode="fill", fill_value=0.0),
            buffers.strengths.at[where].get(mode="fill", fill_value=0.0),
        )

    def address(
        self,
        exist: Int[Array, " batch"],
        params: PyTree,
        command: Batched,
        heads: PyTree,
        keys: Array,
        strengths: Array,
    ) -> tuple[PyTree, Batched, Batched]:
        """The access for a batch: heads, read weights, and the key to write at."""
        valid = jnp.arange(strengths.shape[1])[None] < exist[:, None]
        access = eqx.combine(params, self.access)
        outcome = jax.vmap(access)(command, heads, Slots(keys, strengths, valid))
        return outcome.heads, outcome.weights, outcome.write.key

    def exist(self, count: Int[Array, " batch"], t: Int[Array, ""]) -> Int[Array, " batch"]:
        """How many memories exist before step t."""
        return count + t if self.write else count

    def value(self, command: Batched) -> Batched:
        return jnp.tanh(command[:, : self.width])

    def strength(self, command: Batched) -> Float[Array, " batch"]:
        return jax.nn.sigmoid(command[:, self.width])


def control(
    weights: Weights, projected: Batched, before: Carry
) -> tuple[tuple[LSTMState, ...], tuple[Batched, ...], tuple[Batched, ...]]:
    """The controller's new state; its gates and squashed cell states for the backward pass."""
    below, states, gates, squashed = before.reading, [], [], []
    for layer, (matrix, state) in enumerate(zip(weights.recurrent, before.controller, strict=True)):
        z = jnp.concatenate([below, state.hidden], axis=1) @ matrix
        z = z + (weights.biases[layer - 1][None] if layer else projected)
        size = state.hidden.shape[1]
        sigmoids = jax.nn.sigmoid(z[:, : 3 * size])
        candidate = jnp.tanh(z[:, 3 * size :])
        forget, enter, leave = jnp.split(sigmoids, 3, axis=1)
        cell = forget * state.cell + enter * candidate
        squashed.append(jnp.tanh(cell))
        below = leave * squashed[-1]
        states.append(LSTMState(below, cell))
        gates.append(jnp.concatenate([sigmoids, candidate], axis=1))
    return tuple(states), tuple(gates), tuple(squashed)


def uncontrol(
    weights: Weights, tape: Tape, after: tuple[LSTMState, ...], hidden: Batched
) -> tuple[tuple[LSTMState, ...], Batched, tuple[Batched, ...]]:
    """Cotangents of the controller's old state, of the old reading, and of all pre-activations."""
    states, all_gates = [], []
    for layer in reversed(range(len(weights.recurrent))):
        forget, enter, leave, candidate = jnp.split(tape.gates[layer], 4, axis=1)
        squashed = tape.squashed[layer]
        hidden = hidden + after[layer].hidden
        cell = after[layer].cell + hidden * leave * (1 - squashed**2)
        gates = jnp.concatenate(
            [
                cell * tape.before.controller[layer].cell * forget * (1 - forget),
                cell * candidate * enter * (1 - enter),
                hidden * squashed * leave * (1 - leave),
                cell * enter * (1 - candidate**2),
            ],
            axis=1,
        )
        inputs = gates @ weights.recurrent[layer].T
        size = squashed.shape[1]
        states.append(LSTMState(inputs[:, -size:], cell * forget))
        all_gates.append(gates)
        hidden = inputs[:, :-size]
    return tuple(reversed(states)), hidden, tuple(reversed(all_gates))


def weight_gradients(
    tape: Tape, hidden: Timed, d_gates: tuple[Timed, ...], d_commands: Timed
) -> Weights:
    """One product for each matrix, over all steps."""
    below, recurrent = tape.before.reading, []
    for state, gates, squashed, d_gate in zip(
        tape.before.controller, tape.gates, tape.squashed, d_gates, strict=True
    ):
        inputs = jnp.concatenate([below, state.hidden], axis=2)
        recurrent.append(jnp.einsum("tbi,tbz->iz", inputs, d_gate))
        size = squashed.shape[2]
        below = gates[:, :, 2 * size : 3 * size] * squashed
    return Weights(
        tuple(recurrent),
        tuple(jnp.sum(d_gate, axis=(0, 1)) for d_gate in d_gates[1:]),
        jnp.einsum("tbh,tbc->hc", hidden, d_commands),
        jnp.sum(d_commands, axis=(0, 1)),
    )


def written(
    buffers: Buffers, count: Int[Array, " batch"], t: Int[Array, ""] | int, lengths: Lengths | None
) -> tuple[Array, Array]:
    """The slot that step t writes for each sequence; one beyond the buffer if there is none."""
    batch, capacity = buffers.strengths.shape
    writes = t >= 0 if lengths is None else (t >= 0) & (t < lengths)
    return jnp.arange(batch), jnp.where(writes, count + t, capacity)


def without_written(
    buffers: Buffers, count: Int[Array, " batch"], time: int, lengths: Lengths | None
) -> Buffers:
    """Cotangents of the old buffers: zero where the loop overwrote them."""
    slots = jnp.arange(buffers.strengths.shape[1])[None]
    new = jnp.full_like(count, time) if lengths is None else lengths
    old = (slots < count[:, None]) | (slots >= (count + new)[:, None])
    return Buffers(
        jnp.where(old[:, :, None], buffers.keys, 0.0),
        jnp.where(old[:, None, :], buffers.values, 0.0),
        jnp.where(old, buffers.strengths, 0.0),
    )


def trips(time: int, lengths: Lengths | None) -> int | Int[Array, ""]:
    """Steps to make: known only at run time where there are lengths."""
    return time if lengths is None else jnp.minimum(jnp.max(lengths), time)


def put(record: PyTree, t: Int[Array, ""], now: PyTree) -> PyTree:
    return jax.tree.map(lambda every, one: every.at[t].set(one), record, now)


def zeros(tree: PyTree) -> PyTree:
    return jax.tree.map(jnp.zeros_like, tree)


def add(tree: PyTree, other: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, tree, other)
