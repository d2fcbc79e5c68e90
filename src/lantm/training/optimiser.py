"""The optimisers: the paper's RMSProp, and Adam; both on clipped gradients."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

TINY = 1e-30
"""For a gradient of norm zero."""

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
    learning_rate: optax.ScalarOrSchedule,
    *,
    beta2: float = 0.999,
    clip: float = 32.0,
    steady: float | None = None,
) -> optax.GradientTransformation:
    """Adam, but for `beta2` with its usual constants, after clipping to a global norm and, if
    `steady` is given, to that multiple of the usual norm.
    """
    clips = [optax.clip_by_global_norm(clip)]
    if steady is not None:
        clips.append(clip_by_usual_norm(steady))
    return optax.chain(*clips, optax.adam(learning_rate, b2=beta2))


def clip_by_usual_norm(factor: float, decay: float = 0.98) -> optax.GradientTransformation:
    """Clip to a multiple of the mean norm of the last gradients, as they were clipped. Adam divides
    by what gradients were of late: one that is much larger would be a long step.
    """

    def init(params: optax.Params) -> optax.OptState:
        return jnp.ones(())

    def update(
        updates: optax.Updates, state: optax.OptState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, optax.OptState]:
        usual = jnp.asarray(state)
        norm, most = optax.tree.norm(updates), factor * usual
        scale = jnp.minimum(1.0, most / jnp.maximum(norm, TINY))
        usual = decay * usual + (1 - decay) * jnp.minimum(norm, most)
        return jax.tree.map(lambda grad: scale * grad, updates), usual

    return optax.GradientTransformation(init, update)


def without_momentum(state: optax.OptState) -> optax.OptState:
    """An optimiser's state that does not carry on in the direction of the last steps."""

    def stopped(part: optax.OptState) -> optax.OptState:
        if isinstance(part, optax.ScaleByAdamState):
            return part._replace(mu=jax.tree.map(jnp.zeros_like, part.mu))
        return part

    return jax.tree.map(stopped, state, is_leaf=lambda x: isinstance(x, optax.ScaleByAdamState))


OPTIMISERS: dict[str, Optimiser] = {"rmsprop": rmsprop, "adam": adam}
