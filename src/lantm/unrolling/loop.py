"""Many steps of a cell, for a batch of sequences, with a backward pass of its own.

The same as `unroll_scan`, faster: `docs/unroll.md` derives it. What all cells share (LSTM,
interface, append-only memory) is differentiated by hand here; an access, with its key space and
weighting, is left to `jax.vjp`. Inside, time comes first and a memory's slots come last.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from lantm.memory import Slots
from lantm.memory.weighting import to_weights
from lantm.parts import Access, LSTMLayer, LSTMState
from lantm.unrolling.scan import Lengths, Outputs, select

Batched: TypeAlias = Float[Array, "batch _"]
Timed: TypeAlias = Float[Array, "time batch _"]


def cut(outputs: Outputs, lengths: Lengths | None) -> Outputs:
    """Outputs, zero after a sequence's length."""
    if lengths is None:
        return outputs
    counted = jnp.arange(outputs.shape[1])[None, :] < lengths[:, None]
    return jnp.where(counted[:, :, None], outputs, 0.0)


def catch_up(access: Access, commands: Timed, heads: PyTree, lengths: Lengths | None) -> PyTree:
    """Where nothing was written the write head moves after the loop, if anybody wants to know."""

    def step(heads: PyTree, now: Any) -> tuple[PyTree, None]:
        t, command = now
        moved = jax.vmap(access.catch_up)(command, heads)
        return moved if lengths is None else select(t < lengths, moved, heads), None

    return jax.lax.scan(step, heads, (jnp.arange(commands.shape[0]), commands))[0]


def parts(linear: eqx.nn.Linear) -> tuple[Array, Array]:
    """Weight and bias."""
    if linear.bias is None:
        raise ValueError("a linear layer of a cell must have a bias")
    return linear.weight, linear.bias


class Affine(NamedTuple):
    """x -> x @ matrix + bias"""

    matrix: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __call__(self, inputs: Batched) -> Batched:
        return inputs @ self.matrix + self.bias[None]

    def for_all(self, inputs: Timed) -> Timed:
        """One product for all steps."""
        flat = self(flatten(inputs))
        return flat.reshape(*inputs.shape[:2], flat.shape[1])

    @staticmethod
    def gradient(inputs: Timed, outputs: Timed) -> "Affine":
        """From the inputs and the outputs' cotangents of all steps, by one product."""
        with_ones = jnp.concatenate([inputs, jnp.ones_like(inputs[:, :, :1])], axis=2)
        both = flatten(with_ones).T @ flatten(outputs)
        return Affine(both[:-1], both[-1])


class Weights(NamedTuple):
    """What the controller multiplies by."""

    layers: tuple[Affine, ...]
    """From [what is below; its own hidden state]. Below the first: input and reading."""
    command: Affine

    @classmethod
    def of(cls, layers: tuple[LSTMLayer, ...], weight: Array, bias: Array) -> "Weights":
        pairs = [(parts(layer.from_input), parts(layer.from_hidden)) for layer in layers]
        affine = (Affine(jnp.concatenate([w, u], axis=1).T, b + c) for (w, b), (u, c) in pairs)
        return cls(tuple(affine), Affine(weight.T, bias))


class Carry(NamedTuple):
    """The small part of the state."""

    controller: tuple[LSTMState, ...]
    reading: Batched
    heads: PyTree


class Buffers(NamedTuple):
    """The memory inside the loop: slots last, so that reading runs along them."""

    address: Float[Array, "batch address slots"]
    """Keys, and strengths below them."""
    values: Float[Array, "batch rows slots"]
    """Below them a row of ones, which makes the normaliser of a reading a part of it."""

    @classmethod
    def of(
        cls,
        keys: Float[Array, "batch slots key_size"],
        values: Float[Array, "batch slots width"],
        strengths: Float[Array, "batch slots"],
    ) -> "Buffers":
        strengths = strengths[:, :, None]
        parts = (keys, strengths), (values, jnp.ones_like(strengths))
        return cls(*(jnp.swapaxes(jnp.concatenate(part, axis=2), 1, 2) for part in parts))

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Keys, values and strengths, as a memory has them."""
        keys, values = (jnp.swapaxes(buffer[:, :-1], 1, 2) for buffer in self)
        return keys, values, self.address[:, -1]


class Tape(NamedTuple):
    """What the forward pass keeps of every step for the backward pass."""

    after: Carry
    gates: tuple[Timed, ...]
    """Per layer, after their activations: forget, input, output, candidate."""
    mass: Timed
    """The normaliser of the reading."""
    commands: Timed


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

    leak: ClassVar[float] = 0.0

    def move(self, command: Array, heads: None) -> tuple[Array]:
        return (command,)

    def move_to_read(self, command: Array, heads: None) -> Array:
        return command

    def write_key(self, movement: Array) -> Array:
        return movement

    def weigh(self, movement: Array, slots: Slots) -> Array:
        return slots.strengths

    def settle(self, movement: Array, weights: Array, slots: Slots) -> None:
        return None


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
        inputs: Timed,
        start: Carry,
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
        return run(weights, params, inputs, start, buffers, count, lengths)

    # ---- forwards

    def forward(
        self,
        weights: Weights,
        params: PyTree,
        inputs: Timed,
        start: Carry,
        buffers: Buffers,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
    ) -> tuple[End, Any]:
        """All steps; what they kept for the backward pass."""
        projected = first_rows(weights, inputs).for_all(inputs)
        step = partial(self.step, without_first_rows(weights, inputs), params, count, lengths)

        def body(t: Int[Array, ""], loop: Any) -> Any:
            carry, buffers, record = loop
            carry, buffers, now = step(t, projected[t], carry, buffers)
            return carry, buffers, record.at[t].set(pack(now))

        kept = jax.eval_shape(step, jnp.array(0), projected[0], start, buffers)[2]
        loop = start, buffers, blank(projected, kept)
        loop = jax.lax.fori_loop(0, trips(projected, lengths), body, loop)
        end, buffers, record = loop
        tape: Tape = unpack(record, kept)
        hidden = tape.after.controller[-1].hidden
        given = weights, params, inputs, start, buffers, tape, count, lengths
        return End(end, buffers, hidden, tape.after.reading, tape.commands), given

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
    ) -> tuple[Carry, Buffers, Tape]:
        """One step: the state after it, and what to record.

        The memory is written before the older ones are read, so that it happens in place. The
        reading does not see it: it is not valid yet.
        """
        controller, gates = control(weights, projected, before)
        commands = weights.command(controller[-1].hidden)
        movement = jax.vmap(partial(self.move, params))(commands[:, self.skip :], before.heads)
        if self.write:
            key = jax.vmap(self.access.write_key)(movement)
            buffers = self.append(buffers, key, commands, written(buffers, count, t, lengths))
        valid = self.valid(buffers, count, t)
        heads, masses = jax.vmap(partial(self.look, params))(movement, buffers.address, valid)
        total = jnp.einsum("bn,bwn->bw", masses, buffers.values)
        mass = total[:, -1:] + self.access.leak
        after = Carry(controller, total[:, :-1] / mass, heads)
        if lengths is not None:
            after = select(t < lengths, after, before)
        return after, buffers, Tape(after, gates, mass, commands)

    def move(self, params: PyTree, command: Array, heads: PyTree) -> PyTree:
        """Where the heads of one sequence go."""
        access = eqx.combine(params, self.access)
        return access.move(command, heads)[0] if self.write else access.move_to_read(command, heads)

    def look(
        self, params: PyTree, movement: PyTree, address: Array, valid: Bool[Array, " slots"]
    ) -> tuple[PyTree, Float[Array, " slots"]]:
        """The heads of one sequence after the step, and the masses of its memories."""
        access = eqx.combine(params, self.access)
        slots = Slots(address[:-1].T, address[-1], valid)
        masses = access.weigh(movement, slots)
        return access.settle(movement, to_weights(masses, access.leak), slots), masses

    def append(
        self, buffers: Buffers, key: Batched, commands: Batched, where: tuple[Array, Array]
    ) -> Buffers:
        """The buffers with a memory for each sequence."""
        rows, slots = where
        strength = jax.nn.sigmoid(commands[:, self.width : self.width + 1])
        parts = (key, strength), (jnp.tanh(commands[:, : self.width]), jnp.ones_like(strength))
        new = Buffers(*(jnp.concatenate(part, axis=1) for part in parts))
        return jax.tree.map(
            lambda buffer, one: buffer.at[rows, :, slots].set(one, mode="drop"), buffers, new
        )

    def valid(
        self, buffers: Buffers, count: Int[Array, " batch"], t: Int[Array, ""]
    ) -> Bool[Array, "batch slots"]:
        """Which memories exist before step t."""
        exist = count + t if self.write else count
        return jnp.arange(buffers.values.shape[2])[None] < exist[:, None]

    # ---- backwards

    def backward(self, given: Any, cotangent: End) -> tuple[Any, ...]:
        """The cotangents of everything `forward` was given."""
        weights, params, inputs, start, final, tape, count, lengths = given
        before: Carry = jax.tree.map(prepend, start, tape.after)
        commands = tape.commands[:, :, self.skip :]
        known = Known(
            cotangent.hidden,
            cotangent.readings,
            cotangent.commands,
            tape.mass,
            tape.after.reading,
            self.write_slopes(tape.commands),
            tuple(map(gate_slopes, tape.gates, before.controller, tape.after.controller)),
            *self.linearise(params, commands, before.heads),
        )
        inner = without_first_rows(weights, inputs)
        inner = jax.tree.map(jnp.transpose, inner)  # here: inside the loop it takes longer
        unstep = partial(self.unstep, inner, params, count, lengths, final)
        steps = trips(tape.mass, lengths)

        def body(i: Int[Array, ""], loop: Any) -> Any:
            carry, buffers, d_params, record = loop
            t = steps - 1 - i
            if lengths is not None:
                carry = select(t == lengths - 1, cotangent.carry, carry)
            carry, buffers, d_param, now = unstep(t, at(known, t), carry, buffers)
            return carry, buffers, add(d_params, d_param), record.at[t].set(pack(now))

        carry = cotangent.carry if lengths is None else zeros(cotangent.carry)
        kept = jax.eval_shape(unstep, jnp.array(0), at(known, 0), carry, cotangent.buffers)[3]
        loop = carry, cotangent.buffers, zeros(params), blank(tape.mass, kept)
        carry, buffers, d_params, record = jax.lax.fori_loop(0, steps, body, loop)
        d_gates, d_commands, d_movements = unpack(record, kept)
        if lengths is not None:
            carry = select(lengths == 0, cotangent.carry, carry)
        if self.write:
            buffers = without_written(buffers, count, tape.mass.shape[0], lengths)
        d_params = add(d_params, self.unmove_params(params, commands, before.heads, d_movements))
        d_weights = weight_gradients(inputs, before, tape.after, d_gates, d_commands)
        backwards = Affine(first_rows(weights, inputs).matrix.T, jnp.zeros(inputs.shape[2]))
        d_inputs = backwards.for_all(d_gates[0])
        return d_weights, d_params, d_inputs, carry, buffers, None, None

    def unstep(
        self,
        weights: Weights,
        params: PyTree,
        count: Int[Array, " batch"],
        lengths: Lengths | None,
        final: Buffers,
        t: Int[Array, ""],
        known: "Known",
        after: Carry,
        buffers: Buffers,
    ) -> tuple[Carry, Buffers, PyTree, Any]:
        """One step backwards, from cotangents after it to cotangents before it.

        The final buffers stand for the step's own: what was written later is not valid yet. The
        cotangent of a memory is complete when the step that wrote it is reached, and that step's
        own reading adds nothing to it.
        """
        reading = (known.d_reading + after.reading) / known.mass
        mass = -jnp.sum(reading * known.reading, axis=1, keepdims=True)
        total = jnp.concatenate([reading, mass], axis=1)
        d_masses = jnp.einsum("bw,bwn->bn", total, final.values)
        valid = self.valid(final, count, t)

        def look(params: PyTree, movement: PyTree, address: Array) -> tuple[PyTree, Array]:
            return jax.vmap(partial(self.look, params))(movement, address, valid)

        (_, masses), pull = jax.vjp(look, params, known.movement, final.address)
        d_params, d_movement, d_address = pull((after.heads, d_masses))
        values = total[:, :, None] * masses[:, None, :]
        buffers = Buffers(buffers.address + d_address, buffers.values + values)
        d_front = jnp.zeros_like(known.d_commands[:, : self.skip])
        if self.write:
            where = written(buffers, count, t, lengths)
            d_key, d_written = self.take(buffers, where)
            d_front = d_front.at[:, : self.width + 1].set(d_written * known.write_slopes)
            _, pull = jax.vjp(jax.vmap(self.access.write_key), known.movement)
            d_movement = add(d_movement, pull(d_key)[0])
        d_access, heads = jax.vmap(lambda unmove, d: unmove(d))(known.unmove, d_movement)
        d_commands = known.d_commands + jnp.concatenate([d_front, d_access], axis=1)
        hidden = known.d_hidden + d_commands @ weights.command.matrix
        controller, reading, d_gates = uncontrol(weights, known.gates, after.controller, hidden)
        before = Carry(controller, reading, heads)
        return before, buffers, d_params, (d_gates, d_commands, d_movement)

    def take(
        self, buffers: Buffers, where: tuple[Array, Array]
    ) -> tuple[Batched, Float[Array, "batch _"]]:
        """The cotangents of one memory of each sequence: of its key; of its value and strength."""
        rows, slots = where
        address, value = (
            buffer.at[rows, :, slots].get(mode="fill", fill_value=0.0) for buffer in buffers
        )
        return address[:, :-1], jnp.concatenate([value[:, :-1], address[:, -1:]], axis=1)

    def write_slopes(self, commands: Timed) -> Timed:
        """The derivatives of value and strength by their commands."""
        value = jnp.tanh(commands[:, :, : self.width])
        strength = jax.nn.sigmoid(commands[:, :, self.width : self.width + 1])
        return jnp.concatenate([1 - value**2, strength * (1 - strength)], axis=2)

    def linearise(self, params: PyTree, commands: Timed, heads: PyTree) -> tuple[PyTree, Any]:
        """All movements before the loop, with what takes their cotangents to commands and heads."""

        def one(command: Array, heads: PyTree) -> tuple[PyTree, Any]:
            return jax.vjp(partial(self.move, params), command, heads)

        return jax.vmap(jax.vmap(one))(commands, heads)

    def unmove_params(
        self, params: PyTree, commands: Timed, heads: PyTree, d_movements: PyTree
    ) -> PyTree:
        """The cotangents of what a key space learns, of all steps at once."""

        def move(params: PyTree) -> PyTree:
            return jax.vmap(jax.vmap(partial(self.move, params)))(commands, heads)

        return jax.vjp(move, params)[1](d_movements)[0]


class GateSlopes(NamedTuple):
    """What turns cotangents of an LSTM layer's new state into those of its pre-activations."""

    gates: Timed
    """For forget, input, output (times the hidden state's cotangent), candidate."""
    cell: Timed
    """From the hidden state to the cell state."""
    forget: Timed


class Known(NamedTuple):
    """What the backward loop needs to know of every step."""

    d_hidden: Timed
    d_reading: Timed
    d_commands: Timed
    mass: Timed
    reading: Timed
    write_slopes: Timed
    gates: tuple[GateSlopes, ...]
    movement: PyTree
    unmove: Any
    """From the movement's cotangent to those of command and heads, for one sequence."""


def control(
    weights: Weights, projected: Batched, before: Carry
) -> tuple[tuple[LSTMState, ...], tuple[Batched, ...]]:
    """The controller's new state, and its gates for the backward pass."""
    below, states, all_gates = before.reading, [], []
    for number, (layer, state) in enumerate(zip(weights.layers, before.controller, strict=True)):
        z = jnp.concatenate([below, state.hidden], axis=1) @ layer.matrix
        gates = activate(z + (layer.bias[None] if number else projected))
        forget, enter, leave, candidate = jnp.split(gates, 4, axis=1)
        cell = forget * state.cell + enter * candidate
        below = leave * jnp.tanh(cell)
        states.append(LSTMState(below, cell))
        all_gates.append(gates)
    return tuple(states), tuple(all_gates)


def activate(z: Batched) -> Batched:
    """Three sigmoids and a tanh by one tanh: sigmoid(z) = (1 + tanh(z / 2)) / 2."""
    quarter = z.shape[1] // 4
    scale = jnp.where(jnp.arange(z.shape[1]) < 3 * quarter, 0.5, 1.0).astype(z.dtype)[None]
    return jnp.tanh(z * scale) * scale + (1 - scale)


def gate_slopes(gates: Timed, before: LSTMState, after: LSTMState) -> GateSlopes:
    forget, enter, leave, candidate = jnp.split(gates, 4, axis=2)
    squashed = jnp.tanh(after.cell)
    slopes = (
        before.cell * forget * (1 - forget),
        candidate * enter * (1 - enter),
        squashed * leave * (1 - leave),
        enter * (1 - candidate**2),
    )
    return GateSlopes(jnp.concatenate(slopes, axis=2), leave * (1 - squashed**2), forget)


def uncontrol(
    weights: Weights, slopes: tuple[GateSlopes, ...], after: tuple[LSTMState, ...], hidden: Batched
) -> tuple[tuple[LSTMState, ...], Batched, tuple[Batched, ...]]:
    """Cotangents of the controller's old state, of the old reading, and of all pre-activations."""
    states, all_gates = [], []
    for layer, slope, state in reversed(list(zip(weights.layers, slopes, after, strict=True))):
        hidden = hidden + state.hidden
        cell = state.cell + hidden * slope.cell
        gates = jnp.concatenate([cell, cell, hidden, cell], axis=1) * slope.gates
        inputs = gates @ layer.matrix
        size = cell.shape[1]
        states.append(LSTMState(inputs[:, -size:], cell * slope.forget))
        all_gates.append(gates)
        hidden = inputs[:, :-size]
    return tuple(reversed(states)), hidden, tuple(reversed(all_gates))


def weight_gradients(
    inputs: Timed, before: Carry, after: Carry, d_gates: tuple[Timed, ...], d_commands: Timed
) -> Weights:
    """One product for each matrix."""
    below, layers = jnp.concatenate([inputs, before.reading], axis=2), []
    for old, new, d_gate in zip(before.controller, after.controller, d_gates, strict=True):
        layers.append(Affine.gradient(jnp.concatenate([below, old.hidden], axis=2), d_gate))
        below = new.hidden
    return Weights(tuple(layers), Affine.gradient(below, d_commands))


def first_rows(weights: Weights, inputs: Timed) -> Affine:
    """What multiplies the inputs: for all of them before the loop."""
    matrix, bias = weights.layers[0]
    return Affine(matrix[: inputs.shape[2]], bias)


def without_first_rows(weights: Weights, inputs: Timed) -> Weights:
    """What multiplies something in the loop."""
    (matrix, bias), *others = weights.layers
    return Weights((Affine(matrix[inputs.shape[2] :], bias), *others), weights.command)


def written(
    buffers: Buffers, count: Int[Array, " batch"], t: Int[Array, ""], lengths: Lengths | None
) -> tuple[Array, Array]:
    """The slot that step t writes for each sequence; one beyond the buffer if there is none."""
    batch, _, capacity = buffers.values.shape
    slots = count + t
    return jnp.arange(batch), slots if lengths is None else jnp.where(t < lengths, slots, capacity)


def without_written(
    buffers: Buffers, count: Int[Array, " batch"], time: int, lengths: Lengths | None
) -> Buffers:
    """Cotangents of the old buffers: zero where the loop overwrote them."""
    slots = jnp.arange(buffers.values.shape[2])[None]
    new = jnp.full_like(count, time) if lengths is None else lengths
    old = (slots < count[:, None]) | (slots >= (count + new)[:, None])
    return jax.tree.map(lambda buffer: jnp.where(old[:, None], buffer, 0.0), buffers)


def trips(every: Timed, lengths: Lengths | None) -> int | Int[Array, ""]:
    """Steps to make: known only at run time where there are lengths."""
    time = every.shape[0]
    return time if lengths is None else jnp.minimum(jnp.max(lengths), time)


def flatten(every: Timed) -> Float[Array, "_ _"]:
    """All steps of all sequences below each other."""
    time, batch, size = every.shape
    return every.reshape(time * batch, size)


def pack(tree: PyTree) -> Batched:
    """All numbers of a step in one array."""
    leaves = jax.tree.leaves(tree)
    flat = [leaf.reshape(leaf.shape[0], math.prod(leaf.shape[1:])) for leaf in leaves]
    return jnp.concatenate(flat, axis=-1)


def unpack(packed: Array, like: PyTree) -> Any:
    """The tree again, of leaves like those of a step, with the leading axes of `packed`."""
    leaves, structure = jax.tree.flatten(like)
    shapes = [leaf.shape[1:] for leaf in leaves]
    ends = accumulate(map(math.prod, shapes))
    pieces = jnp.split(packed, list(ends)[:-1], axis=-1)
    whole = (
        piece.reshape(*packed.shape[:-1], *shape)
        for piece, shape in zip(pieces, shapes, strict=True)
    )
    return jax.tree.unflatten(structure, whole)


def blank(every: Timed, like: PyTree) -> Timed:
    """Room for what is like this at every step, packed."""
    size = sum(math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(like))
    return jnp.zeros((*every.shape[:2], size), every.dtype)


def prepend(first: Array, rest: Array) -> Array:
    """What there was before each step: the first, then what there was after the others."""
    return jnp.concatenate([first[None], rest[:-1]])


def at(tree: PyTree, t: Int[Array, ""] | int) -> Any:
    return jax.tree.map(lambda every: every[t], tree)


def zeros(tree: PyTree) -> PyTree:
    return jax.tree.map(jnp.zeros_like, tree)


def add(tree: PyTree, other: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, tree, other)
