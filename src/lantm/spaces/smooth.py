"""Functions of an angle that are smooth in its square.

Their formulas divide 0 by 0 at angle 0, and lose digits beside it; there the series take over. The
square may be negative: an imaginary angle, for which the circular functions are hyperbolic ones.
"""

from collections.abc import Callable, Sequence
from math import comb, factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

Numbers = Float[Array, "*shape"]

TERMS = 8
NEAR = 0.5
"""The square below which the series of entire functions are taken: exact in double precision."""
NARROW = 0.01
"""Likewise of series that end at 1."""


def smooth(
    square: Numbers,
    series: Sequence[float],
    formula: Callable[[Numbers], Numbers],
    imaginary: Callable[[Numbers], Numbers] | None = None,
    near: float = NEAR,
) -> Numbers:
    """The series of a square near 0, elsewhere the formula of the angle.

    The branch that is not taken gets a number that it has a derivative at.
    """
    is_near = jnp.abs(square) < near
    small, angle = jnp.where(is_near, square, 0.0), jnp.sqrt(jnp.where(is_near, 1.0, abs(square)))
    far = formula(angle)
    if imaginary is not None:
        far = jnp.where(square < 0, imaginary(angle), far)
    total = jnp.full_like(square, series[-1])
    for coefficient in series[-2::-1]:
        total = total * small + coefficient
    return jnp.where(is_near, total, far)


def alternating(first: int) -> list[float]:
    """1 / first! - x / (first + 2)! + ..."""
    return [(-1) ** k / factorial(2 * k + first) for k in range(TERMS)]


def positive(first: int) -> list[float]:
    return [abs(coefficient) for coefficient in alternating(first)]


ARCSINE = [factorial(2 * k) / (4**k * factorial(k) ** 2 * (2 * k + 1)) for k in range(TERMS)]
ARCSINE_SQUARE = [4**k / (2 * k**2 * comb(2 * k, k)) for k in range(1, TERMS)]
BERNOULLI = (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510)
COTANGENT = [b / factorial(2 * k + 2) for k, b in enumerate(BERNOULLI)]


def cosine(square: Numbers) -> Numbers:
    """cos t"""
    return smooth(square, alternating(0), jnp.cos)


def sine(square: Numbers) -> Numbers:
    """sin t / t"""
    return smooth(square, alternating(1), lambda t: jnp.sin(t) / t)


def versine(square: Numbers) -> Numbers:
    """(1 - cos t) / t^2"""
    return smooth(square, alternating(2), lambda t: (1 - jnp.cos(t)) / t**2)


def excess(square: Numbers) -> Numbers:
    """(t - sin t) / t^3"""
    return smooth(square, alternating(3), lambda t: (1 - jnp.sin(t) / t) / t**2)


def cotangent(square: Numbers) -> Numbers:
    """(1 - (t / 2) cot(t / 2)) / t^2, for angles of at most pi."""

    def formula(t: Numbers) -> Numbers:
        return (1 - t / 2 * jnp.cos(t / 2) / jnp.sin(t / 2)) / t**2

    return smooth(square, COTANGENT, formula)
