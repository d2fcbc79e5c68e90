"""The paper's optimiser: RMSProp on clipped gradients."""

import optax


def rmsprop(
    learning_rate: optax.ScalarOrSchedule, *, decay: float = 0.99, clip: float = 32.0
) -> optax.GradientTransformation:
    """g / (sqrt(m) + 1e-8) with m starting at zero, after clipping to a global norm."""
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.scale_by_rms(decay=decay, eps=1e-8, eps_in_sqrt=False, initial_scale=0.0),
        optax.scale_by_learning_rate(learning_rate),
    )
