"""The optimisers: the paper's RMSProp, and Adam; both on clipped gradients."""

from collections.abc import Callable

import optax

Optimiser = Callable[..., optax.GradientTransformation]
"""Made from a learning rate or schedule, and `clip`: the largest norm of a gradient."""


def rmsprop(
    learning_rate: optax.ScalarOrSchedule, *, decay: float = 0.99, clip: float = 32.0
) -> optax.GradientTransformation:
    """g / (sqrt(m) + 1e-8) with m starting at zero, after clipping to a global norm."""
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.scale_by_rms(decay=decay, eps=1e-8, eps_in_sqrt=False, initial_scale=0.0),
        optax.scale_by_learning_rate(learning_rate),
    )


def adam(
    learning_rate: optax.ScalarOrSchedule, *, beta2: float = 0.999, clip: float = 32.0
) -> optax.GradientTransformation:
    """Adam, but for `beta2` with its usual constants, after clipping to a global norm."""
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(learning_rate, b2=beta2))


OPTIMISERS: dict[str, Optimiser] = {"rmsprop": rmsprop, "adam": adam}
