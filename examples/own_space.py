"""A key space of your own: the plane under turns about its middle, and a machine that lives on it.

    python examples/own_space.py

Nothing else has to know about it: the machines, the training and the laws in the tests take it from
the registry.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

import lantm


class Turntable(lantm.EmbeddedKeySpace):
    """R^2 with the group SO(2), so that heads keep their distance to 0; an element is its angle."""

    key_size: ClassVar[int] = 2
    algebra_size: ClassVar[int] = 1

    def project(self, raw):
        return raw

    def exp(self, velocity):
        return velocity[0]

    def log(self, action):
        return jnp.stack([jnp.arctan2(jnp.sin(action), jnp.cos(action))])

    def act(self, action, key):
        cos, sin = jnp.cos(action), jnp.sin(action)
        return jnp.stack([cos * key[0] - sin * key[1], sin * key[0] + cos * key[1]])

    def inverse(self, action):
        return -action

    def compose(self, second, first):
        return second + first


lantm.SPACES["turntable"] = Turntable()


def main() -> None:
    config = lantm.ModelConfig("lantm", space="turntable")
    machine = lantm.build_machine(config, lantm.Vocabulary(10), key=jax.random.key(0))
    tokens = jnp.array([[10, 3, 1, 4, 1, 5]])
    trace = machine.trace(tokens, steps=6)
    x, y = trace.encode.write.key[0, :, 0].T
    print("symbols:", machine.vocabulary.show(tokens[0].tolist()))
    print("written at (degrees):", jnp.degrees(jnp.arctan2(y, x)).round())


if __name__ == "__main__":
    main()
