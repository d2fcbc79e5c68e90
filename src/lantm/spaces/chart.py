"""Keys in as few dimensions as a picture has."""

from typing import NamedTuple

import numpy as np

MOST = 3
"""Dimensions that can be drawn."""


class Chart(NamedTuple):
    """Keys as points of a picture."""

    points: np.ndarray
    """[keys, 2 or 3]"""
    view: str
    """What the points lie in: `plane`, `space`, `sphere` or `components`."""
    label: str
    """What an axis is called, with `{}` for its number."""


def coordinates(keys: np.ndarray) -> Chart:
    """Keys as they are, where they have few enough numbers, or by their principal components."""
    size = keys.shape[1]
    if size > MOST:
        return Chart(principal_components(keys, 2), "components", "principal component {}")
    flat = np.pad(keys, ((0, 0), (0, max(0, 2 - size))))
    return Chart(flat, "space" if size == MOST else "plane", "coordinate {}")


def principal_components(points: np.ndarray, size: int) -> np.ndarray:
    """[points, size]: along the directions in which they differ most."""
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:size].T
