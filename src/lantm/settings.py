"""The fields of a config: by name, of one type each, given as values or as text."""

import ast
import dataclasses
import inspect
import math
import os
import textwrap
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

UNSET = "none"
"""The text for no value, where a setting may have none."""

ACCEPTED: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str, os.PathLike),
}
"""What is taken for a value of a type; True and False are no numbers."""


def reader(hint: Any) -> Callable[[str], Any]:
    """What makes a value of that type out of text; an error names the plain type."""
    kind = plain_type(hint)

    def read(text: str) -> Any:
        return None if text == UNSET and kind is not hint else kind(text)

    read.__name__ = kind.__name__
    return read


def canonical(name: str, value: Any, hint: Any) -> Any:
    """The value of a setting as plain Python has it: equal settings are written alike.

    >>> canonical("clip", np.float32(2), float), canonical("layers", np.int64(3), int)
    (2.0, 3)
    """
    kind = plain_type(hint)
    if value is None and kind is not hint:
        return None
    is_bool = isinstance(value, ACCEPTED[bool])
    if not isinstance(value, ACCEPTED[kind]) or is_bool != (kind is bool):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")
    plain = kind(value)
    if kind is float and not math.isfinite(plain):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return plain + 0.0 if kind is float else plain  # -0.0 becomes 0.0


def canonical_fields(config: Any) -> dict[str, Any]:
    """The values of a dataclass's plain fields, as plain Python has them."""
    hints = type_hints(type(config))
    plain = [name for name, hint in hints.items() if not dataclasses.is_dataclass(hint)]
    return {name: canonical(name, getattr(config, name), hints[name]) for name in plain}


@cache
def type_hints(config: type) -> dict[str, Any]:
    """The type of every field."""
    return typing.get_type_hints(config)


def plain_type(hint: Any) -> type:
    """`int` for int and for int | None."""
    if isinstance(hint, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not types.NoneType)
    return hint


def field_docs(config: type) -> dict[str, str]:
    """The docstring under each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    docs = {}
    for field, doc in zip(body.body, body.body[1:], strict=False):  # pyright: ignore
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
            docs[field.target.id] = " ".join(doc.value.value.split())  # pyright: ignore
    return docs
