"""One update: what a run carries from batch to batch, and how a batch changes it."""

import dataclasses
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Integer, PRNGKeyArray, PyTree

from lantm.initialise import redraw_uniform
from lantm.machines.models import build_machine
from lantm.machines.seq2seq import Machine, SequenceModel, answer_loss, score
from lantm.machines.straight import straighten
from lantm.parts.controllers.lstm import set_forget_bias
from lantm.tasks import TASKS
from lantm.training.config import TrainConfig
from lantm.training.optimiser import OPTIMISERS
from lantm.training.starts import Start
from lantm.training.steering import Steering, slice_normals, steer

NOISE, CONTROLLER_NOISE, STARTS = 0x6E6F6973, 0x636F6E74, 0x73746172
"""The purposes of streams of random numbers, as numbers that no split has."""
SLOW = 2.5
"""Both forget biases of slow cells: of what they hold, 0.7 % goes in a step."""


class TrainingState(NamedTuple):
    """All that a run needs to go on as if it had never stopped."""

    parameters: PyTree
    average: PyTree
    """The weights that are evaluated."""
    optimiser: PyTree
    batch: Int[Array, ""]
    """Updates made; also the position in the data."""
    tally: Float[Array, "4"]
    """Sums of loss, fine and coarse accuracy, and batches, since the last logged row."""
    best: Float[Array, "2"]
    """Coarse and fine accuracy of the best checkpoint so far."""
    steering: Steering | None = None
    """What is adjusted by how well it goes, if anything is."""
    start: Start | None = None
    """Which of several starts this is, if there are several."""


def start_key(config: TrainConfig, start: int) -> PRNGKeyArray | None:
    """The key of a start; the first has none of its own, but the seed's."""
    if start == 0:
        return None
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), STARTS), start)


@eqx.filter_jit
def initial_machine(config: TrainConfig, key: PRNGKeyArray | None = None) -> SequenceModel:
    """The machine before the first update; compiled as a whole, so that the cache knows it."""
    key = jax.random.key(config.seed) if key is None else key
    build_key, draw_key = jax.random.split(key)
    machine = build_machine(config.model, TASKS[config.task].vocabulary, key=build_key)
    forget_bias = config.forget_bias
    if config.init == "uniform":
        machine = redraw_uniform(machine, draw_key)
        forget_bias = 1.0 if forget_bias is None else forget_bias
    if config.init == "straight" and isinstance(machine, Machine):
        cell = straighten(machine.cell, draw_key)
        machine = eqx.tree_at(lambda machine: machine.cell, machine, cell)
    if forget_bias is not None:
        machine = set_forget_bias(machine, forget_bias)
    if config.slow_cells:
        machine = set_forget_bias(machine, SLOW, config.slow_cells)
    return strongly_typed(machine)


def strongly_typed(tree: PyTree) -> Any:
    """Arrays as they are after an update, where some were made of plain numbers: else the second
    update would have to be compiled again.
    """
    arrays, rest = eqx.partition(tree, eqx.is_array)
    strong = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), arrays)
    return eqx.combine(strong, rest)


def make_optimiser(config: TrainConfig) -> optax.GradientTransformation:
    options: dict[str, Any] = {"clip": config.clip}
    if config.optimiser == "adam":
        options |= {"beta2": config.beta2, "steady": config.steady}
    return OPTIMISERS[config.optimiser](learning_rate(config), **options)


def learning_rate(config: TrainConfig) -> optax.Schedule:
    """Constant, then 1 % less every 20 batches; or along a cosine to 0. Where it goes by
    performance, constant: the steering says what is left of it.
    """
    if config.rate_by == "performance":
        return optax.constant_schedule(config.lr)
    if config.decay_delay is None:
        return optax.cosine_decay_schedule(config.lr, config.batches)
    delay = 10 * config.decay_delay

    def schedule(batch: Any) -> Any:
        return config.lr * 0.99 ** (jnp.maximum(batch - delay, 0) // 20)

    return schedule


NOT_OF_UPDATES = (
    *("task", "regime", "data", "seed", "init", "forget_bias", "slow_cells", "sizes_per_batch"),
    *("validate_every", "validate_from", "validation_examples", "test_examples", "test_far"),
    *("keep_all", "go_back", "solved", "starts", "start_batches"),
)
"""The settings that no update looks at: of problems, of first weights, of scores."""


@cache
def program_of(config: TrainConfig) -> TrainConfig:
    """The config of all runs whose updates are one program; where their machines or their batches
    have other shapes, it is compiled for each.
    """
    usual = {field.name: field.default for field in dataclasses.fields(config)}
    return dataclasses.replace(config, **{name: usual[name] for name in NOT_OF_UPDATES})


@lru_cache(maxsize=8)
def compiled_update(program: TrainConfig, rest: SequenceModel) -> Callable[..., Any]:
    """`update`, for a machine but for its arrays; to trace one takes seconds, so runs share it."""
    return jax.jit(partial(update, program, make_optimiser(program), rest))


def update(
    config: TrainConfig,
    optimiser: optax.GradientTransformation,
    rest: SequenceModel,
    state: TrainingState,
    inputs: Int[Array, "batch time"],
    input_lengths: Int[Array, " batch"],
    answers: Int[Array, "batch steps"],
    answer_lengths: Int[Array, " batch"],
    normals: Float[Array, " table"] | None,
    seed: Integer[Array, ""] | int,
) -> tuple[TrainingState, Float[Array, ""]]:
    """The state after one batch, and its loss. `normals` are what noise is made of; the seed is
    given, since a program with that of the config would have to be compiled for every seed.
    """
    noise, steering = None, state.steering
    if normals is not None and steering is not None:
        machine: SequenceModel = eqx.combine(state.parameters, rest)
        shape = inputs.shape[1] + answers.shape[1], len(inputs), machine.noise_size
        key = noise_key(seed, state.batch, CONTROLLER_NOISE)
        spread = steering.noise * jnp.linspace(0, 1, len(inputs))
        noise = spread[None, :, None] * slice_normals(normals, shape, key)

    def loss_of(parameters: PyTree) -> tuple[Array, Array]:
        machine: SequenceModel = eqx.combine(parameters, rest)
        logits = machine(inputs, answers.shape[1], input_lengths, answer_lengths, noise)
        return answer_loss(logits, answers, answer_lengths), logits

    shaken = state.parameters
    if config.weight_noise:
        scale = config.weight_noise / config.batches * state.batch
        shaken = add_noise(shaken, scale, noise_key(seed, state.batch))
    (loss, logits), grads = jax.value_and_grad(loss_of, has_aux=True)(shaken)
    updates, optimiser_state = optimiser.update(grads, state.optimiser)
    if steering is not None and config.rate_by == "performance":
        updates = jax.tree.map(partial(jnp.multiply, steering.rate), updates)
    parameters = optax.apply_updates(state.parameters, updates)
    average = optax.incremental_update(parameters, state.average, 1 - config.averaging)
    scores = score(logits, answers, answer_lengths)
    tally = state.tally + jnp.stack([loss, scores.fine, scores.coarse, jnp.ones_like(loss)])
    batch = state.batch + 1
    if steering is not None:
        start = 0 if state.start is None else state.start.number
        steering = steer(config, steering, batch, jnp.asarray(scores.coarse), loss, start)
    new = TrainingState(
        parameters, average, optimiser_state, batch, tally, state.best, steering, state.start
    )
    return new, loss


def noise_key(
    seed: Integer[Array, ""] | int, batch: Int[Array, ""] | int, purpose: int = NOISE
) -> PRNGKeyArray:
    """A key of its own for every batch and purpose. Those of the initial parameters come from two
    splits of the seed's key, which are what folding in 0 and 1 would give.
    """
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), batch)


def add_noise(parameters: PyTree, scale: Float[Array, ""], key: PRNGKeyArray) -> PyTree:
    """Gaussian noise of that standard deviation on every number."""
    flat, restore = ravel_pytree(parameters)
    return restore(flat + scale * jax.random.normal(key, flat.shape))
