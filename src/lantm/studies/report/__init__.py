"""Saved results to tables and heat maps, beside the numbers of the paper. Nothing is trained."""

from lantm.studies.entries import Result, best, of_grid, of_kind, paper, parse
from lantm.studies.report.heatmap import draw_differences, draw_successes
from lantm.studies.report.page import (
    PICTURES,
    SUMMARY,
    TABLES,
    picture_digest,
    save_picture,
    update_folder,
    update_page,
)
from lantm.studies.report.render import FORMATS
from lantm.studies.report.summary import summary
from lantm.studies.report.tables import Table

__all__ = [
    "FORMATS",
    "PICTURES",
    "SUMMARY",
    "TABLES",
    "Result",
    "Table",
    "best",
    "draw_differences",
    "draw_successes",
    "of_grid",
    "of_kind",
    "paper",
    "parse",
    "picture_digest",
    "save_picture",
    "summary",
    "update_folder",
    "update_page",
]
