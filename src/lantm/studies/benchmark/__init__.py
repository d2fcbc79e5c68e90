"""`lantm bench`: this library, its plain-scan reference and eager PyTorch, side by side."""

from lantm.studies.benchmark.cases import Case, floating_point_operations
from lantm.studies.benchmark.compare import Measurement, compare, first_step_seconds
from lantm.studies.benchmark.report import (
    draw,
    load_rows,
    markdown,
    ratios,
    remarks,
    save_rows,
    table,
)
from lantm.studies.benchmark.spaces import SpaceCost, compare_spaces, space_table

__all__ = [
    "Case",
    "Measurement",
    "SpaceCost",
    "compare",
    "compare_spaces",
    "draw",
    "first_step_seconds",
    "floating_point_operations",
    "load_rows",
    "markdown",
    "ratios",
    "remarks",
    "save_rows",
    "space_table",
    "table",
]
