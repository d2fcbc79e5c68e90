"""One clear sentence for each argument that cannot be right."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import jax.core
import numpy as np


def require_positive(**sizes: int) -> None:
    """Every size has to be a whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")


def require_one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """The value has to be one of the allowed names; the nearest one is suggested."""
    names = list(allowed)
    if value not in names:
        near = difflib.get_close_matches(str(value), names, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(names)}; got {value!r}{hint}")


def require_shape(name: str, shape: tuple[int, ...], *expected: int | str) -> None:
    """The shape has to be `expected`, where a word stands for any size."""
    fits = len(shape) == len(expected) and all(
        isinstance(want, str) or size == want for size, want in zip(shape, expected, strict=True)
    )
    if not fits:
        wanted = ", ".join(map(str, expected))
        raise ValueError(f"{name} must have shape ({wanted}), got {tuple(shape)}")


def require_lengths(lengths: jax.Array | None, time: int) -> None:
    """Whole numbers, each from 0 to the number of time steps, which is unknown inside `jax.jit`."""
    if lengths is None:
        return
    kind = getattr(lengths, "dtype", None)
    if kind is None or not np.issubdtype(kind, np.integer):
        got = type(lengths).__name__ if kind is None else f"one of {kind}"
        raise ValueError(f"lengths must be an array of whole numbers, got {got}")
    if isinstance(lengths, jax.core.Tracer):
        return
    found = np.asarray(lengths)
    if np.any((found < 0) | (found > time)):
        raise ValueError(f"lengths must be between 0 and {time}, the time steps; got {found}")


def require_fields(name: str, found: Any, kinds: Mapping[str, Any]) -> None:
    """It is an object, as JSON has them, with these fields of these types."""
    if not isinstance(found, dict):
        raise ValueError(f"{name} must be an object, got {found!r}")
    for field, kind in kinds.items():
        if field not in found:
            raise ValueError(f"{name} must have a {field}")
        if not isinstance(found[field], kind):
            raise ValueError(f"{field} of {name} cannot be {found[field]!r}")
