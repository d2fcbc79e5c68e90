"""Figures and animations of saved runs."""

from lantm.figures.animation import animate
from lantm.figures.episode import Episode, observe
from lantm.figures.gallery import FIGURES, draw, memory

__all__ = ["FIGURES", "Episode", "animate", "draw", "memory", "observe"]
