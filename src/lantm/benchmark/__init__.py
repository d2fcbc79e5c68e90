"""`lantm bench`: this library, its plain-scan reference and eager PyTorch, side by side."""

from lantm.benchmark.cases import Case, floating_point_operations
from lantm.benchmark.compare import Row, compare, first_step_seconds
from lantm.benchmark.report import draw, load_rows, markdown, ratios, remarks, save_rows, table

__all__ = [
    "Case",
    "Row",
    "compare",
    "draw",
    "first_step_seconds",
    "floating_point_operations",
    "load_rows",
    "markdown",
    "ratios",
    "remarks",
    "save_rows",
    "table",
]
