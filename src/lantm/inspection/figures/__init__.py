"""Figures and animations of saved runs."""

from lantm.inspection.figures.animation import animate
from lantm.inspection.figures.episode import Episode, observe
from lantm.inspection.figures.gallery import FIGURES, draw, memory

__all__ = ["FIGURES", "Episode", "animate", "draw", "memory", "observe"]
