"""Many steps of a machine whose memory has a fixed size, with a backward pass of its own.

As in `loop.py` the controller's affine maps are differentiated by hand. The memory is not
append-only, so that its state before every step is kept, and what a step does to it is made again
on the way back. No time goes into steps that no sequence makes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from lantm.parts.controllers import Activate
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
    at,
    blank,
    flatten,
    for_all,
    pack,
    prepend,
    trips,
    unpack,
    zeros,
)

Work: TypeAlias = Callable[[Array, PyTree], tuple[PyTree, Array]]
"""From a command and a memory to the memory after it and what was read; of one sequence."""


class Small(NamedTuple):
    """The state but for the memory."""

    controller: States
    reading: Batched


class Tape(NamedTuple):
    """What the forward pass keeps of every step for the backward pass, beside the memory."""

    after: Small
    uncontrol: Any
    commands: Timed


class End(NamedTuple):
    """What comes out of the loop."""

    small: Small
    memory: PyTree
    counts: PyTree
    hidden: Timed
    readings: Timed


@dataclass(frozen=True)
class FixedLoop:
    """The loop over time, forwards and backwards."""

    work: Work
    activates: tuple[Activate, ...]

    def __call__(
        self,
        weights: Weights,
        inputs: Timed,
        start: Small,
        memory: PyTree,
        lengths: Lengths | None,
        noise: Timed | None = None,
    ) -> tuple[Small, PyTree, Timed, Timed]:
        """The final state, and every hidden state and reading."""

        @jax.custom_vjp
        def run(*given: Any) -> End:
            return self.forward(*given, differentiate=False)[0]

        run.defvjp(self.forward, self.backward)
        smooth, counts = eqx.partition(memory, eqx.is_inexact_array)
        end = run(weights, inputs, start, smooth, counts, lengths, noise)
        return end.small, eqx.combine(end.memory, end.counts), end.hidden, end.readings

    # ---- forwards

    def forward(
        self,
        weights: Weights,
        inputs: Timed,
        start: Small,
        memory: PyTree,
        counts: PyTree,
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
        inside = weights.inside(size)

        def step(projected: Batched, before: Small, memory: PyTree, counts: PyTree) -> Any:
            states, pulls = control(
                self.activates, inside, projected, before.reading, before.controller
            )
            commands = command_of(inside, states)
            (memory, reading), counts = self.change(commands, memory, counts)
            return Small(states, reading), memory, counts, pulls, commands

        def body(t: Array, loop: Any) -> Any:
            state, record, memories = loop
            if differentiate:
                memories = jax.tree.map(
                    lambda every, now: every.at[t].set(now), memories, state[1:]
                )
            small, memory, counts, pulls, commands = step(projected[t], *state)
            after = small, memory, counts
            if lengths is not None:
                after = choose(t >= lengths, state, after)
            now = Tape(after[0], pulls if differentiate else None, commands)
            return after, record.at[t].set(pack(now, record.dtype)), memories

        *_, pulls, commands = jax.eval_shape(step, projected[0], start, memory, counts)
        kept = Tape(start, pulls if differentiate else None, commands)
        memories = jax.tree.map(
            lambda part: jnp.zeros((len(inputs), *part.shape), part.dtype), (memory, counts)
        )
        loop = (start, memory, counts), blank(projected, kept), memories if differentiate else None
        loop = jax.lax.fori_loop(0, trips(projected, lengths), body, loop)
        after, record, memories = loop
        tape: Tape = unpack(record, kept)
        hidden = tape.after.controller[-1].hidden
        given = weights, inputs, start, tape, memories, lengths
        small, memory, counts = after
        return End(small, memory, counts, hidden, tape.after.reading), given

    def change(self, commands: Batched, memory: PyTree, counts: PyTree) -> tuple[Any, PyTree]:
        """What a step does to the memories of a batch: they and what was read, which have
        derivatives; and beside these what has none.
        """
        new, reading = jax.vmap(self.work)(commands, eqx.combine(memory, counts))
        memory, counts = eqx.partition(new, eqx.is_inexact_array)
        return (memory, reading), counts

    # ---- backwards

    def backward(self, given: Any, cotangent: End) -> tuple[Any, ...]:
        """The cotangents of everything `forward` was given."""
        weights, inputs, start, tape, memories, lengths = given
        before: Small = jax.tree.map(prepend, start, tape.after)
        steps, size = trips(inputs, lengths), inputs.shape[2]
        inner = jax.tree.map(jnp.transpose, weights.inside(size))
        known = tape.uncontrol, tape.commands, cotangent.hidden, cotangent.readings, memories
        d_end = cotangent.small, cotangent.memory

        def body(i: Array, loop: Any) -> Any:
            d_after, record = loop
            t = steps - 1 - i
            if lengths is not None:
                d_after = choose(t == lengths - 1, d_end, d_after)
            d_before, now = self.unstep(inner, at(known, t), *d_after)
            return d_before, record.at[t].set(pack(now, record.dtype))

        d_after = d_end if lengths is None else zeros(d_end)
        recorded = jax.eval_shape(partial(self.unstep, inner), at(known, 0), *d_end)[1]
        loop = d_after, blank(tape.commands, recorded)
        d_start, record = jax.lax.fori_loop(0, steps, body, loop)
        if lengths is not None:
            d_start = choose(lengths == 0, d_end, d_start)
        d_z, d_commands = unpack(record, recorded)
        states = before.controller, tape.after.controller
        d_weights = weight_gradients(inputs, before.reading, *states, d_z, d_commands)
        matrix = weights.for_inputs(size).matrix
        d_inputs = (flatten(d_z[0]) @ matrix.T).reshape(inputs.shape)
        return d_weights, d_inputs, *d_start, None, None, None

    def unstep(
        self, weights: Weights, known: Any, after: Small, memory: PyTree
    ) -> tuple[tuple[Small, PyTree], Any]:
        """One step backwards, from cotangents after it to cotangents before it."""
        pulls, commands, d_hidden, d_reading, (old, counts) = known
        _, pull, _ = jax.vjp(
            lambda commands, memory: self.change(commands, memory, counts),
            *(commands, old),
            has_aux=True,
        )
        d_commands, d_memory = pull((memory, after.reading + d_reading))
        hidden = d_hidden + d_commands @ weights.command.matrix
        states, reading, d_z = uncontrol(weights, pulls, after.controller, hidden)
        return (Small(states, reading), d_memory), (d_z, d_commands)


def choose(these: Bool[Array, " batch"], yes: PyTree, no: PyTree) -> PyTree:
    """`yes` for these sequences, else `no`; no time goes into it where there are none of these."""
    return jax.lax.cond(jnp.any(these), lambda: select(these, yes, no), lambda: no)
