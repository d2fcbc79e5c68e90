"""Manifolds of keys with a Lie group acting on them.

A new one is a file beside these and a line in `SPACES`; the laws, the models and the command line
take it from there.
"""

from collections.abc import Callable

from jaxtyping import PRNGKeyArray

from lantm.spaces.base import Action, EmbeddedKeySpace, Key, KeySpace
from lantm.spaces.plane import Plane
from lantm.spaces.sphere import Rotation, Sphere, normalise

SpaceFactory = Callable[[PRNGKeyArray], KeySpace]
"""Makes the key space of one head; the random key is for what the space may have to learn."""

SPACES: dict[str, SpaceFactory] = {
    "plane": lambda key: Plane(),
    "free_plane": lambda key: Plane(bounded=False),
    "sphere": lambda key: Sphere(),
    "bounded_sphere": Sphere.bounded,
}
"""Every key space by name."""

__all__ = [
    "SPACES",
    "Action",
    "EmbeddedKeySpace",
    "Key",
    "KeySpace",
    "Plane",
    "Rotation",
    "SpaceFactory",
    "Sphere",
    "normalise",
]
