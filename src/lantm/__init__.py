"""Neural memories whose heads move by Lie group actions.

The public names stand in `__init__.pyi`. Each is imported when it is first used, so that a program
can choose the settings of jax before jax is there.
"""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """The module of every public name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOMES = _read_homes()
__all__ = [*sorted(_HOMES)]  # noqa: PLE0604 # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """A public name, or a folder of the package."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
