"""Manifolds of keys with a Lie group acting on them.

A new one is a file beside these and a line in `SPACES`; the laws, the models and the command line
take it from there.
"""

from lantm.spaces.base import (
    Action,
    EmbeddedKeySpace,
    Free,
    Key,
    KeySpace,
    Reach,
    UnitBall,
    Velocity,
)
from lantm.spaces.chart import Chart, coordinates
from lantm.spaces.plane import Plane
from lantm.spaces.sphere import Rotation, Sphere, normalise

SPACES: dict[str, KeySpace] = {
    "plane": Plane(),
    "free_plane": Plane(bounded=False),
    "sphere": Sphere(),
    "bounded_sphere": Sphere(bounded=True),
}
"""Every key space by name."""

__all__ = [
    "SPACES",
    "Action",
    "Chart",
    "EmbeddedKeySpace",
    "Free",
    "Key",
    "KeySpace",
    "Plane",
    "Reach",
    "Rotation",
    "Sphere",
    "UnitBall",
    "Velocity",
    "coordinates",
    "normalise",
]
