"""Saved results to tables and heat maps, beside the numbers of the paper. Nothing is trained."""

from lantm.studies.report.curves import draw_curves
from lantm.studies.report.entries import Result, best, of_grid, paper, parse
from lantm.studies.report.heatmap import draw_differences
from lantm.studies.report.page import update_page
from lantm.studies.report.render import FORMATS
from lantm.studies.report.table import Table
from lantm.studies.report.tables import TABLES

__all__ = [
    "FORMATS",
    "TABLES",
    "Result",
    "Table",
    "best",
    "draw_curves",
    "draw_differences",
    "of_grid",
    "paper",
    "parse",
    "update_page",
]
