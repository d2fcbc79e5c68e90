"""Arrays of all steps, time first: what both adjoints of the fast loop are made of."""

import math
from itertools import accumulate
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from lantm.parts.affine import Affine
from lantm.unrolling.scan import Lengths

Batched: TypeAlias = Float[Array, "batch _"]
Timed: TypeAlias = Float[Array, "time batch _"]


def for_all(affine: Affine, inputs: Timed) -> Timed:
    """One product for all steps."""
    flat = flatten(inputs) @ affine.matrix + affine.bias[None]
    return flat.reshape(*inputs.shape[:2], flat.shape[1])


def affine_gradient(inputs: Timed, outputs: Timed) -> Affine:
    """From the inputs and the outputs' cotangents of all steps, by one product."""
    with_ones = jnp.concatenate([inputs, jnp.ones_like(inputs[:, :, :1])], axis=2)
    both = flatten(with_ones).T @ flatten(outputs)
    return Affine(both[:-1], both[-1])


def trips(every: Timed, lengths: Lengths | None) -> int | Int[Array, ""]:
    """Steps to make: known only at run time where there are lengths."""
    time = every.shape[0]
    return time if lengths is None else jnp.minimum(jnp.max(lengths), time)


def flatten(every: Timed) -> Float[Array, "_ _"]:
    """All steps of all sequences below each other."""
    time, batch, size = every.shape
    return every.reshape(time * batch, size)


def pack(tree: PyTree, dtype: Any) -> Batched:
    """All numbers of a step in one array."""
    leaves = [leaf.astype(dtype) for leaf in jax.tree.leaves(tree)]
    flat = [leaf.reshape(leaf.shape[0], math.prod(leaf.shape[1:])) for leaf in leaves]
    return jnp.concatenate(flat, axis=-1)


def unpack(packed: Array, like: PyTree) -> Any:
    """The tree again, of leaves like those of a step, with the leading axes of `packed`."""
    leaves, structure = jax.tree.flatten(like)
    ends = accumulate(math.prod(leaf.shape[1:]) for leaf in leaves)
    pieces = jnp.split(packed, list(ends)[:-1], axis=-1)
    whole = (
        piece.reshape(*packed.shape[:-1], *leaf.shape[1:]).astype(leaf.dtype)
        for piece, leaf in zip(pieces, leaves, strict=True)
    )
    return jax.tree.unflatten(structure, whole)


def blank(every: Timed, like: PyTree) -> Timed:
    """Room for what is like this at every step, packed."""
    size = sum(math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(like))
    return jnp.zeros((*every.shape[:2], size), every.dtype)


def prepend(first: Array, rest: Array) -> Array:
    """What there was before each step: the first, then what there was after the others."""
    return jnp.concatenate([first[None], rest[:-1]])


def fill(tree: PyTree, steps: int | Int[Array, ""], instead: PyTree) -> PyTree:
    """Something in place of what steps that were not made left blank."""

    def filled(every: Array, other: Array) -> Array:
        made = jnp.arange(every.shape[0]) < steps
        return jnp.where(made.reshape(-1, *[1] * (every.ndim - 1)), every, other[None])

    return jax.tree.map(filled, tree, instead)


def at(tree: PyTree, t: Int[Array, ""] | int) -> Any:
    return jax.tree.map(lambda every: every[t], tree)


def zeros(tree: PyTree) -> PyTree:
    return jax.tree.map(jnp.zeros_like, tree)


def add(tree: PyTree, other: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, tree, other)
