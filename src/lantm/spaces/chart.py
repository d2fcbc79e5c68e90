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
    """What the points lie in: `plane`, `space` or `components`; `sphere`, `circle` or `disc` of
    radius 1; or `torus`, a square of angles with opposite sides that are one."""
    axes: tuple[str, ...]
    """What each axis is called."""

    @property
    def wraps(self) -> bool:
        """Whether opposite sides are one."""
        return self.view == "torus"


def straight_distances(keys: np.ndarray) -> np.ndarray:
    """[keys, keys]: each from each, as numbers differ."""
    return np.linalg.norm(keys[:, None] - keys[None], axis=-1)


def coordinates(keys: np.ndarray, label: str = "coordinate {}") -> Chart:
    """Keys as they are, where they have few enough numbers, or by their principal components."""
    size = keys.shape[1]
    if size > MOST:
        return Chart(principal_components(keys, 2), "components", numbered(COMPONENT, 2))
    flat = np.pad(keys, ((0, 0), (0, max(0, 2 - size))))
    names = numbered(label, size) + ("",) * (2 - size)
    return Chart(flat, "space" if size == MOST else "plane", names)


COMPONENT = "principal component {}"


def numbered(label: str, size: int) -> tuple[str, ...]:
    """`coordinate 1`, `coordinate 2`, ..."""
    return tuple(label.format(i + 1) for i in range(size))


def principal_components(points: np.ndarray, size: int) -> np.ndarray:
    """[points, size]: along the directions in which they differ most."""
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:size].T


def stereographic(keys: np.ndarray) -> Chart:
    """S^3 in R^3, seen from the point opposite to the middle of the keys, which becomes 0."""
    middle = keys.mean(axis=0)
    length = np.linalg.norm(middle)
    middle = middle / length if length > 1e-6 else np.eye(4)[0]
    across = np.linalg.svd(middle[None])[2][1:]
    depth = np.maximum(1 + keys @ middle, 1e-3)
    return Chart(keys @ across.T / depth[:, None], "space", numbered("stereographic {}", 3))
