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
    LearnedPace,
    Paced,
    Reach,
    UnitBall,
    Velocity,
)
from lantm.spaces.catalogue import CATALOGUE, SPACES, find_space
from lantm.spaces.chart import Chart, coordinates, straight_distances
from lantm.spaces.heisenberg import Heisenberg
from lantm.spaces.hyperbolic import Hyperbolic
from lantm.spaces.hypersphere import HyperSphere
from lantm.spaces.plane import Plane
from lantm.spaces.product import Product
from lantm.spaces.quaternions import Quaternions, Sphere2, Sphere3
from lantm.spaces.rigid import Rigid2, Rigid3
from lantm.spaces.sphere import Rotation, Sphere, normalise
from lantm.spaces.torus import Torus

__all__ = [
    "CATALOGUE",
    "SPACES",
    "Action",
    "Chart",
    "EmbeddedKeySpace",
    "Free",
    "Heisenberg",
    "HyperSphere",
    "Hyperbolic",
    "Key",
    "KeySpace",
    "LearnedPace",
    "Paced",
    "Plane",
    "Product",
    "Quaternions",
    "Reach",
    "Rigid2",
    "Rigid3",
    "Rotation",
    "Sphere",
    "Sphere2",
    "Sphere3",
    "Torus",
    "UnitBall",
    "Velocity",
    "coordinates",
    "find_space",
    "normalise",
    "straight_distances",
]
