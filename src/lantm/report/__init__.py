"""Saved results to tables and heat maps, beside the numbers of the paper. Nothing is trained."""

from lantm.report.heatmap import draw_differences
from lantm.report.page import update
from lantm.report.render import FORMATS
from lantm.report.results import Result, best, of_grid, paper, parse
from lantm.report.tables import TABLES, Table

__all__ = [
    "FORMATS",
    "TABLES",
    "Result",
    "Table",
    "best",
    "draw_differences",
    "of_grid",
    "paper",
    "parse",
    "update",
]
