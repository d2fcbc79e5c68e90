"""Settings as text: the fields of a config, by name and type."""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any

UNSET = "none"
"""The text for no value, where a setting may have none."""


def reader(hint: Any) -> Callable[[str], Any]:
    """What makes a value of that type out of text; an error names the plain type."""
    kind = plain_type(hint)

    def read(text: str) -> Any:
        return None if text == UNSET and kind is not hint else kind(text)

    read.__name__ = kind.__name__
    return read


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
