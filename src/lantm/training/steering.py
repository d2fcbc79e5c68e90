"""What training adjusts by how well it goes: the sizes, the noise, the rate, and when it ends."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lantm.training.config import TrainConfig

MEAN_DECAY = 0.98
GOOD, FAIR = 0.9, 0.8
"""Means of the training accuracy at which something is adjusted."""
FIRST_SHARE = 0.1
EAGER = {GOOD: 500, 0.3: 1500, 0.0: 6000}
"""How many batches all of the growth takes while the mean is above each of these. Small sizes can
be answered without a memory: who waits until they are, learns that."""
PATIENT = {GOOD: 500, 0.6: 1500, 0.0: 20_000}
"""The same where answers alone grow."""
NOISE_STEP = 0.001
SHAKEN = 0.1
"""The least noise under which a machine is taken to be solved."""
FULL_RATE_LOSS, RATE_OF_WRONG, LEAST_RATE, LATE_RATE = 0.3, 0.3, 0.1, 0.3
CALM = 0.3
"""The least that the noise may grow to."""
FORGOTTEN = 0.1
"""How far below a good validation one has to be for its weights to be gone back to."""
TABLE_SIZE = 4_000_000


class Steering(NamedTuple):
    """What is adjusted from batch to batch."""

    mean: Float[Array, ""]
    """Of the batches' coarse accuracy, the last ones counting most."""
    share: Float[Array, ""]
    """Of the samples, smallest sizes first, that batches are drawn from."""
    noise: Float[Array, ""]
    """The largest standard deviation of the noise on the controller: the first problem of a batch
    has none, since a machine that was always shaken can fail without; the last has this."""
    ceiling: Float[Array, ""]
    """How large the noise may become."""
    rate: Float[Array, ""]
    """What is left of the learning rate, as a part of it."""
    most: Float[Array, ""]
    """What the rate may be at most: less, once the training sizes were learned."""
    loss: Float[Array, ""]
    """The mean loss of the last batches."""
    solved: Bool[Array, ""]
    """Whether the last validation found the task solved."""


def is_steered(config: TrainConfig) -> bool:
    """Whether anything of a run depends on how well it goes."""
    by_performance = "performance" in (config.growth_by, config.rate_by)
    return by_performance or config.noise > 0 or config.solved is not None or config.go_back


def first_steering(config: TrainConfig) -> Steering:
    """Before the first batch."""
    zero, one = jnp.zeros(()), jnp.ones(())
    share = jnp.array(FIRST_SHARE) if config.growth_by == "performance" else one
    ceiling = jnp.array(config.noise, float)
    return Steering(zero, share, zero, ceiling, one, one, one, jnp.array(False))


# ---- from batch to batch


def steer(
    config: TrainConfig,
    steering: Steering,
    batch: Int[Array, ""],
    coarse: Float[Array, ""],
    loss: Float[Array, ""],
    start: Int[Array, ""] | int = 0,
) -> Steering:
    """After the batch of that number, counted from 1, of which that share was answered right."""
    mean = MEAN_DECAY * steering.mean + (1 - MEAN_DECAY) * coarse
    counted = jnp.minimum(loss, 2 * FULL_RATE_LOSS)  # one bad batch does not count for many
    usual = MEAN_DECAY * steering.loss + (1 - MEAN_DECAY) * counted
    grown = is_grown(config, steering, batch)
    most = jnp.where(grown & (mean > GOOD), LATE_RATE, steering.most)
    new = steering._replace(mean=mean, loss=usual, most=most)
    if config.growth_by == "performance":
        eager, patient = (grow(steering.share, mean, pace) for pace in (EAGER, PATIENT))
        share = jnp.where(config.grows_answers_only(start), patient, eager)
        new = new._replace(share=share)
    if config.noise:
        new = new._replace(noise=jnp.where(grown, shake(steering, mean), 0.0))
    if config.rate_by == "performance":
        rate = usual / FULL_RATE_LOSS + RATE_OF_WRONG * (1 - mean)
        new = new._replace(rate=jnp.clip(rate, LEAST_RATE, most))
    return new


def is_grown(
    config: TrainConfig, steering: Steering, batch: Int[Array, ""] | int
) -> Bool[Array, ""]:
    """Whether that batch was of any size."""
    return (steering.share >= 1) & (batch > config.growth_batches)


def grow(
    share: Float[Array, ""], mean: Float[Array, ""], pace: dict[float, int]
) -> Float[Array, ""]:
    """Faster, the better the present problems are learned."""
    above = [mean > least for least in pace]
    above[-1] = jnp.array(True)
    steps = [jnp.array((1 - FIRST_SHARE) / batches) for batches in pace.values()]
    return jnp.minimum(share + jnp.select(above, steps), 1.0)


def shake(steering: Steering, mean: Float[Array, ""]) -> Float[Array, ""]:
    """As much noise as the machine can bear."""
    step = jnp.where(mean > GOOD, NOISE_STEP, jnp.where(mean < FAIR, -NOISE_STEP, 0.0))
    return jnp.clip(steering.noise + step, 0.0, steering.ceiling)


# ---- now and then


def is_solved(config: TrainConfig, steering: Steering, batch: int, coarse: float) -> bool:
    """Whether a validation with that outcome is the end of training."""
    if config.solved is None or coarse < config.solved:
        return False
    shaken = steering.noise >= jnp.minimum(SHAKEN, steering.ceiling)
    return bool(is_grown(config, steering, batch) & shaken)


def is_forgotten(best: float, now: float) -> bool:
    """Whether a validation shows that what was learned of longer problems is going. Before they
    are, validations go up and down.
    """
    return best > GOOD and now < best - FORGOTTEN


def shaken_less(steering: Steering) -> Steering:
    """With half the noise, which will grow only to half of what it was, or to `CALM`, and with the
    mean and the loss of a machine that is right: what they were led away from it.
    """
    least = jnp.maximum(steering.noise / 2, CALM)
    ceiling = jnp.minimum(steering.ceiling, least)
    right, none = jnp.ones(()), jnp.zeros(())
    return steering._replace(noise=steering.noise / 2, ceiling=ceiling, mean=right, loss=none)


# ---- noise on the controller


def normal_table() -> Float[Array, " table"]:
    """Standard normals, always the same: to draw new ones takes longer than a training step."""
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.standard_normal(TABLE_SIZE, dtype=np.float32), float)


def slice_normals(
    table: Float[Array, " table"], shape: tuple[int, ...], key: PRNGKeyArray
) -> Float[Array, "..."]:
    """So many of the table, from a place drawn at random on. Where more than half of it is asked
    for, it is repeated.
    """
    count = math.prod(shape)
    if 2 * count > table.size:
        table = jnp.tile(table, 1 + -(-count // table.size))
    place = jax.random.randint(key, (), 0, table.size - count + 1)
    return jax.lax.dynamic_slice(table, (place,), (count,)).reshape(shape)
