"""Saved results to tables and heat maps, beside the numbers of the paper. Nothing is trained."""

from lantm.studies.entries import Result, best, of_grid, of_kind, paper, parse
from lantm.studies.report.curves import draw_curves
from lantm.studies.report.heatmap import draw_differences, draw_successes
from lantm.studies.report.page import (
    PICTURES,
    SUMMARY,
    TABLES,
    picture_digest,
    save_picture,
    source_of,
    update_page,
    update_pages,
)
from lantm.studies.report.render import FORMATS
from lantm.studies.report.summary import summary
from lantm.studies.report.table import Table

__all__ = [
    "FORMATS",
    "PICTURES",
    "SUMMARY",
    "TABLES",
    "Result",
    "Table",
    "best",
    "draw_curves",
    "draw_differences",
    "draw_successes",
    "of_grid",
    "of_kind",
    "paper",
    "parse",
    "picture_digest",
    "save_picture",
    "source_of",
    "summary",
    "update_page",
    "update_pages",
]
