"""Every key space by name, and what their names are made of."""

import dataclasses
import re
from collections.abc import Callable

from lantm.errors import require_one_of
from lantm.spaces.base import KeySpace, Paced
from lantm.spaces.heisenberg import Heisenberg
from lantm.spaces.hyperbolic import Hyperbolic
from lantm.spaces.hypersphere import HyperSphere
from lantm.spaces.plane import Plane
from lantm.spaces.product import Product
from lantm.spaces.quaternions import Quaternions, Sphere2, Sphere3
from lantm.spaces.rigid import Rigid2, Rigid3
from lantm.spaces.sphere import Sphere
from lantm.spaces.torus import Torus

SPACES: dict[str, KeySpace] = {
    "plane": Plane(),
    "free_plane": Plane(bounded=False),
    "sphere": Sphere(),
    "bounded_sphere": Sphere(bounded=True),
    "line": Plane(1),
    "space3": Plane(3),
    "circle": Torus(1),
    "torus": Torus(2),
    "sphere2": Sphere2(),
    "sphere3": Sphere3(),
    "quaternions": Quaternions(),
    "rigid": Rigid2(),
    "rigid3": Rigid3(),
    "hyperbolic": Hyperbolic(),
    "heisenberg": Heisenberg(),
}
"""Every key space by name. `find_space` knows more names, which are made of these."""
CATALOGUE = tuple(SPACES)
"""The names of our own, without the spaces that users add."""

FAMILIES: dict[str, Callable[[int], KeySpace]] = {
    "space": Plane,
    "torus": Torus,
    "sphere": HyperSphere,
}
"""What makes a space of any dimension, by what stands before the number in its name."""


def find_space(name: str) -> KeySpace:
    """The space of a name: one of `SPACES`, or made of them.

    `space4`, `torus3` and `sphere5` have that many dimensions, `free_NAME` has steps of any length,
    and `NAME*NAME` is the product.

    >>> find_space("line*free_circle")
    Product(first=Plane(key_size=1), second=Torus(bounded=False, circles=1))
    """
    space, *others = map(find_factor, name.split("*"))
    for other in others:
        space = Product(space, other)
    return space


def find_factor(name: str) -> KeySpace:
    if name not in SPACES:
        member = re.fullmatch(r"([a-z]+)(\d+)", name)
        if member and member[1] in FAMILIES:
            return FAMILIES[member[1]](int(member[2]))
        if name.startswith("free_"):
            space = find_factor(name.removeprefix("free_"))
            if isinstance(space, Paced):
                return dataclasses.replace(space, bounded=False)
    require_one_of("space", name, SPACES)
    return SPACES[name]
