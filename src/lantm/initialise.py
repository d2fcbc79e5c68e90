"""How parameters start."""

import jax
from jaxtyping import Array, Float, PRNGKeyArray


def uniform(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    """Uniform in [-1, 1]: how the authors' program starts every learnable initial state."""
    return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)
