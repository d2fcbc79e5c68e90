"""What training adjusts by how well it goes: the sizes, the noise, the rate, and when it ends."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from lantm.training.config import TrainConfig

MEAN_DECAY = 0.98
GOOD, FAIR, POOR = 0.9, 0.8, 0.3
"""Means of the training accuracy at which something is adjusted."""
FIRST_SHARE = 0.1
GROWTH_BATCHES = {GOOD: 500, POOR: 1500, 0.0: 6000}
"""How many batches all of the growth takes while the mean is above each of these."""
NOISE_STEP = 0.001
SHAKEN = 0.3
"""The least noise under which a machine is taken to be solved."""
RATE_FALL, RATE_EVERY, LEAST_RATE = 0.97, 20, 0.1
WORTH_KEEPING, KEPT_WITHIN, LOST_BELOW = 0.5, 0.05, 0.6
"""Weights are kept while the mean is above the first and within the second of its peak; below
this part of the peak they are gone back to."""
FORGOTTEN = 0.1
"""How far below the best validation one has to be for its weights to be gone back to."""
TABLE_SIZE = 4_000_000


class Kept(NamedTuple):
    """What a run can go back to."""

    average: PyTree
    optimiser: PyTree
    noise: Float[Array, ""]


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
    solved: Bool[Array, ""]
    """Whether the last validation found the task solved."""
    peak: Float[Array, ""]
    """The highest mean at which weights were kept."""
    kept: Kept | None
    """The weights to go back to, if there is a going back."""


def is_steered(config: TrainConfig) -> bool:
    """Whether anything of a run depends on how well it goes."""
    by_performance = "performance" in (config.growth_by, config.rate_by)
    return by_performance or config.noise > 0 or config.solved is not None or config.go_back


def first_steering(config: TrainConfig, average: PyTree, optimiser: PyTree) -> Steering:
    """Before the first batch."""
    zero, one = jnp.zeros(()), jnp.ones(())
    share = jnp.array(FIRST_SHARE) if config.growth_by == "performance" else one
    kept = Kept(average, optimiser, zero) if config.go_back else None
    ceiling = jnp.array(config.noise, float)
    return Steering(zero, share, zero, ceiling, one, jnp.array(False), zero, kept)


# ---- from batch to batch


def steer(
    config: TrainConfig, steering: Steering, batch: Int[Array, ""], coarse: Float[Array, ""]
) -> Steering:
    """After the batch of that number, counted from 1, of which that share was answered right."""
    mean = MEAN_DECAY * steering.mean + (1 - MEAN_DECAY) * coarse
    grown = is_grown(config, steering, batch)
    new = steering._replace(mean=mean)
    if config.growth_by == "performance":
        new = new._replace(share=grow(steering.share, mean))
    if config.noise:
        new = new._replace(noise=jnp.where(grown, shake(steering, mean), 0.0))
    if config.rate_by == "performance":
        due = grown & (mean > GOOD) & (batch % RATE_EVERY == 0)
        slower = jnp.maximum(RATE_FALL * steering.rate, LEAST_RATE)
        new = new._replace(rate=jnp.where(due, slower, steering.rate))
    return new


def is_grown(
    config: TrainConfig, steering: Steering, batch: Int[Array, ""] | int
) -> Bool[Array, ""]:
    """Whether that batch was of any size."""
    return (steering.share >= 1) & (batch > config.growth_batches)


def grow(share: Float[Array, ""], mean: Float[Array, ""]) -> Float[Array, ""]:
    """Faster, the better the present sizes are learned."""
    above = [mean > least for least in GROWTH_BATCHES]
    above[-1] = jnp.array(True)
    steps = [jnp.array((1 - FIRST_SHARE) / batches) for batches in GROWTH_BATCHES.values()]
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


def is_worth_keeping(steering: Steering) -> bool:
    mean = float(steering.mean)
    return mean > WORTH_KEEPING and mean >= float(steering.peak) - KEPT_WITHIN


def is_lost(steering: Steering) -> bool:
    """What had been learned; nothing is lost before something was kept."""
    return float(steering.mean) < LOST_BELOW * float(steering.peak)


def is_forgotten(steering: Steering, best: float, now: float) -> bool:
    """Whether a validation shows that what was learned of longer problems is going."""
    return steering.kept is not None and now < best - FORGOTTEN


def keep(steering: Steering, average: PyTree, optimiser: PyTree) -> Steering:
    """These weights are what to go back to."""
    peak = jnp.maximum(steering.peak, steering.mean)
    return steering._replace(peak=peak, kept=Kept(average, optimiser, steering.noise))


def gone_back(steering: Steering, noise: Float[Array, ""]) -> Steering:
    """With half the rate, half the noise that there was, and the mean as it was."""
    rate = jnp.maximum(steering.rate / 2, LEAST_RATE)
    return steering._replace(mean=steering.peak, rate=rate, noise=noise / 2)


def shaken_less(steering: Steering) -> Steering:
    """Gone back, with noise that will grow only to half of what it was, or to `SHAKEN`."""
    least = jnp.maximum(steering.noise / 2, SHAKEN)
    back = gone_back(steering, steering.noise)
    return back._replace(ceiling=jnp.minimum(steering.ceiling, least))


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
