"""S^n under the rotations of R^(n + 1), for any n: a group element is an orthogonal matrix."""

from collections.abc import Iterable
from functools import partial, reduce
from math import factorial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lantm.errors import require_positive
from lantm.spaces.base import EmbeddedKeySpace, Key, Paced, dot
from lantm.spaces.smooth import ARCSINE, NARROW, smooth
from lantm.spaces.sphere import normalise

Matrix = Float[Array, "size size"]
Turn = Float[Array, " planes"]
"""How fast each plane of two axes turns into the other."""


class HyperSphere(EmbeddedKeySpace, Paced):
    """S^n in R^(n + 1) with the group SO(n + 1).

    A turn of one plane has a velocity as long as its angle. S^2 and S^3 have quaternions, which are
    quicker: `Sphere2`, `Sphere3`.
    """

    dimension: int = eqx.field(static=True)
    """n"""
    compact: ClassVar[bool] = True

    def __init__(self, dimension: int = 4, *, bounded: bool = True):
        require_positive(dimension=dimension)
        self.dimension, self.bounded = dimension, bounded

    @property
    def key_size(self) -> int:
        return self.dimension + 1

    @property
    def algebra_size(self) -> int:
        return self.key_size * self.dimension // 2

    def project(self, raw: Key) -> Key:
        return normalise(raw)

    def exp(self, velocity: Turn) -> Matrix:
        return exponential(velocity, self.key_size)

    def log(self, action: Matrix) -> Turn:
        return logarithm(action)

    def act(self, action: Matrix, key: Key) -> Key:
        return jnp.sum(action * key[None], axis=1)

    def inverse(self, action: Matrix) -> Matrix:
        return action.T

    def compose(self, second: Matrix, first: Matrix) -> Matrix:
        return multiply(second, first)


@jax.custom_jvp
def multiply(left: Matrix, right: Matrix) -> Matrix:
    """As a sum of outer products, which XLA makes one loop of. Of a batch of matrices it would
    make every single product by a call of a library, however small they are.
    """
    return total(left[:, k, None] * right[None, k] for k in range(len(left)))


@multiply.defjvp
def _multiply(
    factors: tuple[Matrix, Matrix], changes: tuple[Matrix, Matrix]
) -> tuple[Matrix, Matrix]:
    """In such a form that, on the way back, it is a sum of outer products again."""
    (left, right), (d_left, d_right) = factors, changes
    places = range(len(left))
    by_right = jnp.stack([jnp.sum(d_left * right[None, :, k], axis=1) for k in places], axis=1)
    by_left = jnp.stack([jnp.sum(left[k, :, None] * d_right, axis=0) for k in places])
    return multiply(left, right), by_right + by_left


def total(parts: Iterable[Array]) -> Array:
    """Without a zero at the beginning."""
    return reduce(jnp.add, parts)


def skew(turn: Turn, size: int) -> Matrix:
    """The matrix of the Lie algebra: skew-symmetric."""
    above = jnp.zeros((size, size), turn.dtype).at[np.triu_indices(size, 1)].set(turn)
    return above.T - above


def turn_of(matrix: Matrix) -> Turn:
    """The other way round; what of the matrix is not skew-symmetric is lost."""
    return (matrix.T - matrix)[np.triu_indices(len(matrix), 1)] / 2


HALVINGS = 5
LONGEST = 2.0**HALVINGS
"""Radians; a longer velocity counts as this."""
BLOCKS = {"float32": 4, "float64": 7}
"""Of three terms of the series each, for a velocity of at most 1."""


@partial(jax.checkpoint, static_argnums=1)
def exponential(turn: Turn, size: int) -> Matrix:
    """The series of a velocity that was halved until it is short, squared as often.

    Made again on the way back: to keep its products takes longer.
    """
    square = dot(turn, turn)
    length = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    turn = turn * jnp.minimum(1.0, LONGEST / length)
    doublings = jnp.clip(jnp.ceil(jnp.log2(jax.lax.stop_gradient(length))), 0, HALVINGS)
    matrix, one = skew(turn * 2.0**-doublings, size), jnp.eye(size, dtype=turn.dtype)
    squared = multiply(matrix, matrix)
    cubed = multiply(squared, matrix)

    def block(first: int) -> Matrix:
        terms = enumerate((one, matrix, squared), start=first)
        return total(power / factorial(k) for k, power in terms)

    last, *others = range(3 * BLOCKS[turn.dtype.name] - 3, -1, -3)
    power = block(last)
    for first in others:
        power = block(first) + multiply(cubed, power)
    for k in range(HALVINGS):  # a choice between products would be slow on the way back
        power = multiply(power, jnp.where(k < doublings, power, one))
    return power


OBTUSE = -0.1234
"""The cosine below which a plane's turn is found in the second way; no usual angle has it."""


@jax.custom_jvp
def logarithm(action: Matrix) -> Turn:
    """The turn of every plane by its angle from 0 to pi; two planes that both make half a turn are
    any two.

    In the basis of eigenvectors of the symmetric part, which has the cosines, the skew one is made
    of blocks sin t J, one for all planes of the same angle. Where t is well below pi, t J is
    t / sin t times that. Beyond, J is what has the block's eigenvectors, and eigenvalues i and -i.
    Since the block vanishes at half a turn, a little of one J for each plane is added.
    """
    size = len(action)
    cosines, basis = jnp.linalg.eigh((action + action.T) / 2)
    block = basis.T @ ((action - action.T) / 2) @ basis
    pairs = cosines[: size // 2 * 2].reshape(-1, 2).mean(axis=1).repeat(2)
    obtuse = jnp.append(pairs, cosines[size // 2 * 2 :]) < OBTUSE

    cosine = (cosines[:, None] + cosines[None]) / 2
    both = obtuse[:, None] & obtuse[None], ~obtuse[:, None] & ~obtuse[None]
    near = jnp.where(both[1], block * stretch(jnp.where(both[1], cosine, 1.0)), 0.0)

    first = np.arange(0, size - 1, 2)
    sign = jnp.where(block[first, first + 1] < 0, -1.0, 1.0).astype(action.dtype)
    decided = block.at[first, first + 1].add(jnp.finfo(action.dtype).eps ** (2 / 3) * sign)
    decided, block = (
        jnp.where(both[0], jnp.triu(part) - jnp.triu(part).T, 0.0) for part in (decided, block)
    )
    kinds, vectors = jnp.linalg.eigh(1j * decided + 2 * jnp.diag(~obtuse))
    sines = jnp.abs(jnp.einsum("ik,ij,jk->k", vectors.conj(), block, vectors))
    angles = (jnp.pi - jnp.arcsin(jnp.minimum(sines, 1.0))) * -jnp.sign(kinds)
    angles = jnp.where(kinds > 1.5, 0.0, angles)
    far = jnp.real((vectors * (1j * angles)[None]) @ vectors.conj().T)
    return turn_of(basis @ (near + far) @ basis.T).astype(action.dtype)


def stretch(cosine: Array) -> Array:
    """t / sin t"""
    square = (1 - cosine) / 2
    half = smooth(square, ARCSINE, lambda s: jnp.arcsin(s) / s, near=NARROW)
    return half / jnp.sqrt(1 - square)


@logarithm.defjvp
def _logarithm(primals: tuple[Matrix], tangents: tuple[Any]) -> tuple[Turn, Turn]:
    """By the inverse of the derivative of `exponential`. Eigenvectors have none where angles are
    equal, as they always are in pairs; where there is no inverse either, the shortest solution.
    """
    (action,), (change,) = primals, tangents
    turn = logarithm(action)
    slope = jax.jacfwd(lambda turn: turn_of(action.T @ exponential(turn, len(action))))(turn)
    return turn, jnp.linalg.pinv(slope, rtol=1e-4) @ turn_of(action.T @ change)
