"""Many steps of a cell, for a batch of sequences, with a backward pass of its own.

The same as `unroll_scan`, faster: `docs/unroll.md` derives it. What all cells share (affine maps,
append-only memory) is differentiated by hand; an access with its key space and weighting, and a
controller's `activate`, are left to `jax.vjp`. Inside, time comes first and a memory's slots last.
"""

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from lantm.memory import Slots
from lantm.parts import Access
from lantm.parts.controllers import Activate
from lantm.unrolling.buffers import Buffers, Count, Writing
from lantm.unrolling.controller import (
    States,
    Weights,
    command_of,
    control,
    uncontrol,
    weight_gradients,
)
from lantm.unrolling.scan import Lengths, select
from lantm.unrolling.timed import (
    Batched,
    Timed,
    add,
    at,
    blank,
    fill,
    flatten,
    for_all,
    pack,
    prepend,
    trips,
    unpack,
    zeros,
)


class Carry(NamedTuple):
    """The small part of the state."""

    controller: States
    reading: Batched
    """Of all read heads in a row."""
    heads: PyTree


class Tape(NamedTuple):
    """What the forward pass keeps of every step for the backward pass."""

    after: Carry
    uncontrol: Any
    """Of each layer, from the new state's cotangent to those of z and of the old state."""
    mass: Float[Array, "time batch reads 1"]
    """The normaliser of each reading."""
    commands: Timed


class End(NamedTuple):
    """What comes out of the loop."""

    carry: Carry
    buffers: Buffers
    hidden: Timed
    readings: Timed
    commands: Timed
    """Values, strengths, output gate if there is one, the access's command; raw."""


class Known(NamedTuple):
    """What the backward loop needs to know of every step."""

    d_hidden: Timed
    d_reading: Timed
    d_commands: Timed
    mass: Float[Array, "time batch reads 1"]
    reading: Timed
    write_slopes: Timed
    uncontrol: Any
    movement: PyTree
    unmove: Any
    """From the movement's cotangent to those of command and heads, for one sequence."""


class Blind(eqx.Module):
    """The access of a machine without a memory."""

    leak: ClassVar[float] = 0.0
    leaves_behind: ClassVar[bool] = False

    def move(self, command: Array, heads: None) -> tuple[Array]:
        return (command,)

    def move_to_read(self, command: Array, heads: None) -> Array:
        return command

    def write_keys(self, movement: Array) -> Array:
        return movement[None]

    def weigh(self, movement: Array, slots: Slots) -> Float[Array, "1 slots"]:
        return slots.strengths[None]

    def normalise(self, masses: Array) -> Array:
        return masses

    def settle(self, movement: Array, weights: Array, slots: Slots) -> None:
        return None


@dataclass(frozen=True)
class Loop:
    """The loop over time, forwards and backwards."""

    access: Access | Blind
    activates: tuple[Activate, ...]
    """Of each layer of the controller."""
    writing: Writing
    skip: int
    """Commands before the access's own: values, strengths, output gate."""
    write: bool

    def __call__(
        self,
        weights: Weights,
        inputs: Timed,
        start: Carry,
        buffers: Buffers,
        count: Count,
        lengths: Lengths | None,
        noise: Timed | None = None,
    ) -> End:
        """All steps; `noise` is added to what the first layer of the controller activates."""
        params, static = eqx.partition(self.access, eqx.is_array)
        loop = dataclasses.replace(self, access=static)

        @jax.custom_vjp
        def run(*arguments: Any) -> End:
            return loop.forward(*arguments, differentiate=False)[0]

        run.defvjp(loop.forward, loop.backward)
        end = run(weights, params, inputs, start, buffers, count, lengths, noise)
        if self.write or not self.access.leaves_behind:
            return end
        commands = end.commands[:, :, self.skip :]
        if lengths is not None:
            commands = fill(commands, trips(commands, lengths), self.first_command(weights, start))
        heads = catch_up(self.access, commands, end.carry.heads, lengths)
        return end._replace(carry=end.carry._replace(heads=heads))

    def first_command(self, weights: Weights, start: Carry) -> Batched:
        """What the controller would tell the access at the very start.

        It stands in for the commands of steps that were not made: an access may have no derivative
        at the zeros that they left.
        """
        command = command_of(weights, start.controller)[:, self.skip :]
        return jax.lax.stop_gradient(command)

    # ---- forwards

    def forward(
        self,
        weights: Weights,
        params: PyTree,
        inputs: Timed,
        start: Carry,
        buffers: Buffers,
        count: Count,
        lengths: Lengths | None,
        noise: Timed | None,
        *,
        differentiate: bool = True,
    ) -> tuple[End, Any]:
        """All steps; what they kept for the backward pass, if there is to be one."""
        size = inputs.shape[2]
        projected = for_all(weights.for_inputs(size), inputs)
        if noise is not None:
            projected = projected + noise
        step = partial(self.step, weights.inside(size), params, count, lengths)

        def body(t: Array, loop: Any) -> Any:
            carry, buffers, record = loop
            carry, buffers, now = record_step(t, projected[t], carry, buffers)
            return carry, buffers, record.at[t].set(pack(now, record.dtype))

        def record_step(*given: Any) -> tuple[Carry, Buffers, Tape]:
            carry, buffers, tape = step(*given)
            return carry, buffers, tape if differentiate else tape._replace(uncontrol=None)

        kept = jax.eval_shape(record_step, jnp.array(0), projected[0], start, buffers)[2]
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
        count: Count,
        lengths: Lengths | None,
        t: Array,
        projected: Batched,
        before: Carry,
        buffers: Buffers,
    ) -> tuple[Carry, Buffers, Tape]:
        """One step: the state after it, and what to record.

        Memories are written before the older ones are read, so that it happens in place. The
        reading does not see them: they are not valid yet.
        """
        states, pulls = control(
            self.activates, weights, projected, before.reading, before.controller
        )
        commands = command_of(weights, states)
        movement = jax.vmap(partial(self.move, params))(commands[:, self.skip :], before.heads)
        if self.write:
            keys = jax.vmap(partial(self.write_keys, params))(movement)
            where = self.writing.where(buffers, count, t, lengths)
            buffers = self.writing.append(buffers, keys, commands, where)
        valid = self.valid(buffers, count, t)
        heads, masses = jax.vmap(partial(self.look, params))(movement, buffers.address, valid)
        reading, mass = self.read(masses, buffers)
        after = Carry(states, reading, heads)
        if lengths is not None:
            after = select(t < lengths, after, before)
        return after, buffers, Tape(after, pulls, mass, commands)

    def move(self, params: PyTree, command: Array, heads: PyTree) -> PyTree:
        """Where the heads of one sequence go."""
        access = eqx.combine(params, self.access)
        if self.access.leaves_behind and not self.write:
            return access.move_to_read(command, heads)
        return access.move(command, heads)[0]

    def write_keys(self, params: PyTree, movement: PyTree) -> Float[Array, "writes key_size"]:
        return eqx.combine(params, self.access).write_keys(movement)

    def look(
        self, params: PyTree, movement: PyTree, address: Array, valid: Bool[Array, " slots"]
    ) -> tuple[PyTree, Float[Array, "reads slots"]]:
        """The heads of one sequence after the step, and the masses of its memories."""
        access = eqx.combine(params, self.access)
        slots = Slots(address[:-1].T, address[-1], valid)
        masses = access.weigh(movement, slots)
        return access.settle(movement, access.normalise(masses), slots), masses

    def read(
        self, masses: Float[Array, "batch reads slots"], buffers: Buffers
    ) -> tuple[Batched, Float[Array, "batch reads 1"]]:
        """The readings of all heads in a row, and their normalisers."""
        readings, normalisers = [], []
        for i in range(masses.shape[1]):  # XLA has a quick product of a vector, not of one row
            total = jnp.einsum("bn,bwn->bw", masses[:, i], buffers.values)
            normalisers.append(total[:, -1:] + self.access.leak)
            readings.append(total[:, :-1] / normalisers[-1])
        return jnp.concatenate(readings, axis=1), jnp.stack(normalisers, axis=1)

    def valid(self, buffers: Buffers, count: Count, t: Array) -> Bool[Array, "batch slots"]:
        """Which memories exist before step t."""
        return self.writing.valid(buffers, count, t if self.write else jnp.zeros_like(t))

    # ---- backwards

    def backward(self, given: Any, cotangent: End) -> tuple[Any, ...]:
        """The cotangents of everything `forward` was given."""
        weights, params, inputs, start, final, tape, count, lengths = given
        before: Carry = jax.tree.map(prepend, start, tape.after)
        steps = trips(tape.commands, lengths)
        commands, heads = tape.commands[:, :, self.skip :], before.heads
        if lengths is not None:
            instead = self.first_command(weights, start), start.heads
            commands, heads = fill((commands, heads), steps, instead)
        known = Known(
            cotangent.hidden,
            cotangent.readings,
            cotangent.commands,
            tape.mass,
            tape.after.reading,
            self.writing.slopes(tape.commands),
            tape.uncontrol,
            *self.linearise_moves(params, commands, heads),
        )
        # transposed here: inside the loop it takes longer
        inner = jax.tree.map(jnp.transpose, weights.inside(inputs.shape[2]))
        unstep = partial(self.unstep, inner, params, count, lengths, final)

        def body(i: Array, loop: Any) -> Any:
            carry, buffers, d_params, record = loop
            t = steps - 1 - i
            if lengths is not None:
                carry = select(t == lengths - 1, cotangent.carry, carry)
            carry, buffers, d_param, now = unstep(t, at(known, t), carry, buffers)
            return carry, buffers, add(d_params, d_param), record.at[t].set(pack(now, record.dtype))

        carry = cotangent.carry if lengths is None else zeros(cotangent.carry)
        kept = jax.eval_shape(unstep, jnp.array(0), at(known, 0), carry, cotangent.buffers)[3]
        loop = carry, cotangent.buffers, zeros(params), blank(tape.commands, kept)
        carry, buffers, d_params, record = jax.lax.fori_loop(0, steps, body, loop)
        d_z, d_commands, d_movements = unpack(record, kept)
        d_params = add(d_params, self.unmove_params(params, commands, heads, d_movements))
        if lengths is not None:
            carry = select(lengths == 0, cotangent.carry, carry)
        if self.write:
            time = tape.commands.shape[0]
            buffers = self.writing.without_written(buffers, count, time, lengths)
        states = before.controller, tape.after.controller
        d_weights = weight_gradients(inputs, before.reading, *states, d_z, d_commands)
        matrix = weights.for_inputs(inputs.shape[2]).matrix
        d_inputs = (flatten(d_z[0]) @ matrix.T).reshape(inputs.shape)
        return d_weights, d_params, d_inputs, carry, buffers, None, None, None

    def unstep(
        self,
        weights: Weights,
        params: PyTree,
        count: Count,
        lengths: Lengths | None,
        final: Buffers,
        t: Array,
        known: Known,
        after: Carry,
        buffers: Buffers,
    ) -> tuple[Carry, Buffers, PyTree, Any]:
        """One step backwards, from cotangents after it to cotangents before it.

        The final buffers stand for the step's own: what was written later is not valid yet. The
        cotangent of a memory is complete when the step that wrote it is reached, and that step's
        own reading adds nothing to it.
        """
        d_totals = self.unread(known, after.reading)
        d_masses = [jnp.einsum("bw,bwn->bn", total, final.values) for total in d_totals]
        valid = self.valid(final, count, t)

        def look(params: PyTree, movement: PyTree, address: Array) -> tuple[PyTree, Array]:
            return jax.vmap(partial(self.look, params))(movement, address, valid)

        (_, masses), pull = jax.vjp(look, params, known.movement, final.address)
        d_params, d_movement, d_address = pull((after.heads, jnp.stack(d_masses, axis=1)))
        values = sum(d[:, :, None] * masses[:, i, None, :] for i, d in enumerate(d_totals))
        buffers = Buffers(buffers.address + d_address, buffers.values + values)
        d_front = jnp.zeros_like(known.d_commands[:, : self.skip])
        if self.write:
            where = self.writing.where(buffers, count, t, lengths)
            d_keys, d_written = self.writing.take(buffers, where)
            d_front = d_front.at[:, : self.writing.size].set(d_written * known.write_slopes)
            every = lambda params, movement: jax.vmap(partial(self.write_keys, params))(movement)  # noqa: E731
            _, pull = jax.vjp(every, params, known.movement)
            more_params, more_movement = pull(d_keys)
            d_params, d_movement = add(d_params, more_params), add(d_movement, more_movement)
        d_access, heads = jax.vmap(lambda unmove, d: unmove(d))(known.unmove, d_movement)
        d_commands = known.d_commands + jnp.concatenate([d_front, d_access], axis=1)
        hidden = known.d_hidden + d_commands @ weights.command.matrix
        states, reading, d_z = uncontrol(weights, known.uncontrol, after.controller, hidden)
        before = Carry(states, reading, heads)
        return before, buffers, d_params, (d_z, d_commands, d_movement)

    def unread(self, known: Known, later: Batched) -> list[Batched]:
        """For each read head the cotangents of the weighted sum of values and, last, of masses."""
        d_reading, totals = known.d_reading + later, []
        for i in range(known.mass.shape[1]):
            own = slice(i * self.writing.width, (i + 1) * self.writing.width)
            d_sum = d_reading[:, own] / known.mass[:, i]
            d_mass = -jnp.sum(d_sum * known.reading[:, own], axis=1, keepdims=True)
            totals.append(jnp.concatenate([d_sum, d_mass], axis=1))
        return totals

    def linearise_moves(self, params: PyTree, commands: Timed, heads: PyTree) -> tuple[PyTree, Any]:
        """All movements before the loop, with what takes their cotangents to commands and heads."""

        def one(command: Array, heads: PyTree) -> tuple[PyTree, Any]:
            return jax.vjp(partial(self.move, params), command, heads)

        return jax.vmap(jax.vmap(one))(commands, heads)

    def unmove_params(
        self, params: PyTree, commands: Timed, heads: PyTree, d_movements: PyTree
    ) -> PyTree:
        """The cotangents of what heads learn, of all steps at once."""

        def move(params: PyTree) -> PyTree:
            return jax.vmap(jax.vmap(partial(self.move, params)))(commands, heads)

        return jax.vjp(move, params)[1](d_movements)[0]


def catch_up(access: Any, commands: Timed, heads: PyTree, lengths: Lengths | None) -> PyTree:
    """Where nothing was written the write heads move after the loop, if anybody wants to know."""

    def step(heads: PyTree, now: Any) -> tuple[PyTree, None]:
        t, command = now
        moved = jax.vmap(access.catch_up)(command, heads)
        return moved if lengths is None else select(t < lengths, moved, heads), None

    return jax.lax.scan(step, heads, (jnp.arange(commands.shape[0]), commands))[0]
