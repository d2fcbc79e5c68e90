"""Training: from a config to a run with a trained machine."""

import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from lantm.initialise import redraw_uniform
from lantm.interrupts import deferred_signals
from lantm.machines.cell import Cell
from lantm.machines.models import build_machine
from lantm.machines.seq2seq import Machine, answer_loss, score
from lantm.machines.straight import straighten
from lantm.parts.controllers.lstm import set_forget_bias
from lantm.processes import computing_threads, prefer_one_thread, require_memory
from lantm.tasks import TASKS
from lantm.tasks.streams import (
    GrowingStream,
    SmallestFirst,
    Stream,
    bucket,
    buckets,
    evaluation_batches,
    pad,
    require_room,
    training_stream,
)
from lantm.tasks.textfile import FileStream
from lantm.training.checkpoints import (
    load_tree,
    named_arrays,
    read_metadata,
    save_tree,
    write_atomically,
)
from lantm.training.config import TrainConfig
from lantm.training.evaluation import Evaluation, evaluate_batches
from lantm.training.optimiser import OPTIMISERS
from lantm.training.runs import Run, evaluate, parse_row
from lantm.training.starts import FAILED, LOOK_EXAMPLES, Start, best_start, is_accepted, looks
from lantm.training.steering import (
    Steering,
    first_steering,
    gone_back,
    is_grown,
    is_lost,
    is_solved,
    is_steered,
    is_worth_keeping,
    keep,
    normal_table,
    slice_normals,
    steer,
)

LOG_EVERY = 100
KEPT_CHECKPOINTS = 2
LOGGED_STEERING = ("mean", "share", "noise", "rate")
COPIES = 4
"""Numbers for each parameter: itself, its average, its gradient and its moment."""
SIZES = ("hidden_size", "embedding_size", "memory_width", "key_size", "layers")
"""The settings of a model that decide how much memory it needs."""
MANY_THREADS = "computing with {} threads: the last digits may differ from those of one thread"
NOISE, CONTROLLER_NOISE, STARTS = 0x6E6F6973, 0x636F6E74, 0x73746172
"""The purposes of streams of random numbers, as numbers that no split has."""


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


class Progress(NamedTuple):
    """What there is to tell after an update."""

    batch: int
    loss: float
    row: dict[str, Any] | None
    """The row just added to the metrics, if there is one."""
    start: int | None = None
    """The number of the start, if there are several."""


class NonFiniteError(ArithmeticError):
    """The loss or a parameter is not a finite number any more."""


def train(
    config: TrainConfig,
    root: str | Path = "runs",
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_notice: Callable[[str], None] = print,
) -> Run:
    """The run of a config below `root`, trained to the end."""
    return finish(Run.create(config, root), on_progress=on_progress, on_notice=on_notice)


def finish(
    run: Run,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_notice: Callable[[str], None] = print,
) -> Run:
    """Train to the end, from the last checkpoint if there is one, and test the outcome.

    A finished run is returned as it is; one that another process trains is refused. It computes
    with one thread, as the program does. Where jax was in use before, or NPROC asks for more
    threads, the last digits can differ; the result then says how many threads there were.
    """
    if not run.is_finished:
        prefer_one_thread()
        with run.held():
            run.write_json("result.json", train_and_test(run, on_progress, on_notice))
    return run


def train_and_test(
    run: Run, on_progress: Callable[[Progress], None], on_notice: Callable[[str], None]
) -> dict[str, Any]:
    """The result of a run; an error of numbers is recorded before it is raised."""
    trainer = Trainer(run, on_notice)
    threads = computing_threads() or 1
    if threads > 1:
        on_notice(MANY_THREADS.format(threads))
    try:
        trainer.choose_start(on_progress)
        trainer.run_to(run.config.batches, on_progress)
    except NonFiniteError as error:
        run.write_json("result.json", {"status": "failed", "error": str(error)})
        raise
    seconds = round(trainer.seconds, 1)
    scores = [score.to_dict() for score in evaluate(run, examples=run.config.test_examples)]
    for row in scores:
        del row["by_length"]
    many = {"threads": threads} if threads > 1 else {}
    return {"status": "finished", "seconds": seconds, **many, **trainer.ending, "test": scores}


class Trainer:
    """A run in progress."""

    def __init__(self, run: Run, on_notice: Callable[[str], None] = print):
        self.run, self.config, self.on_notice = run, run.config, on_notice
        self.task = TASKS[self.config.task]
        self.stream = open_stream(self.config)
        self.smallest_first = open_smallest_first(self.config, self.stream)
        self.optimiser = make_optimiser(self.config)
        self.rest = eqx.filter(initial_machine(self.config), eqx.is_array, inverse=True)
        self.update = jax.jit(partial(update, self.config, self.optimiser, self.rest))
        self.normals = normal_table() if self.config.noise else None
        self.edges = [buckets(length, 2) for length in self.stream.longest()]
        self.validation = evaluation_batches(
            self.task, "validation", 2, self.config.validation_examples
        )
        self.begun = time.monotonic()
        self.folder = run.path / "checkpoints"
        """Where checkpoints are: those of starts, before one is chosen, have their own."""
        for leftover in run.path.rglob("*.safetensors?*"):  # of a process that was killed
            leftover.unlink()
        self.folder.mkdir(exist_ok=True)
        if not any(self.folder.iterdir()):
            self.require_no_progress()
        self.state = self.restore(self.fresh())
        if self.config.starts == 1 or int(self.state.batch):
            self.restore_metrics()

    def fresh(self, start: int = 0) -> TrainingState:
        """Before the first update."""
        parameters = eqx.filter(
            initial_machine(self.config, start_key(self.config, start)), eqx.is_array
        )
        average = jax.tree.map(jnp.array, parameters)
        optimiser = self.optimiser.init(parameters)
        steering = first_steering(self.config, average, optimiser)
        return TrainingState(
            parameters,
            average,
            optimiser,
            jnp.array(0, jnp.int32),
            jnp.zeros(4),
            jnp.array([-1.0, -1.0]),
            steering if is_steered(self.config) else None,
            Start(jnp.array(start, jnp.int32), jnp.array(FAILED))
            if self.config.starts > 1
            else None,
        )

    @property
    def seconds(self) -> float:
        """Of training so far, those before the last checkpoint included."""
        return time.monotonic() - self.begun

    @property
    def ending(self) -> dict[str, int]:
        """What there is to tell of a run that ended: when it was solved, which start it is."""
        solved = {"solved": int(self.state.batch)} if self.is_solved else {}
        return solved | self.numbered

    @property
    def is_solved(self) -> bool:
        return self.state.steering is not None and bool(self.state.steering.solved)

    @property
    def numbered(self) -> dict[str, int]:
        """The number of the start, if there are several."""
        return {} if self.state.start is None else {"start": int(self.state.start.number)}

    # ---- starts

    def choose_start(self, on_progress: Callable[[Progress], None]) -> None:
        """Train the starts one after the other, and go on with the first that is accepted; if
        none is, with the best. Resumed, it finds each start where it was.
        """
        if self.config.starts == 1 or int(self.state.batch):
            return
        scores: dict[int, tuple[float, ...]] = {}
        for number in range(self.config.starts):
            scores[number] = self.train_start(number, on_progress)
            if is_accepted(scores[number]):
                break
        chosen = best_start(scores)
        if scores[chosen] == FAILED:
            raise NonFiniteError("no start stayed finite")
        self.open_start(chosen)
        self.folder = self.run.path / "checkpoints"
        self.save()

    def train_start(
        self, number: int, on_progress: Callable[[Progress], None]
    ) -> tuple[float, ...]:
        """The scores of a start, coarse and fine, when it was last looked at."""
        self.open_start(number)
        scores = FAILED
        try:
            for batch in looks(self.config):
                self.run_to(batch, on_progress)
                scores = self.last_look
                if is_accepted(scores):
                    break
        except NonFiniteError as error:
            self.on_notice(f"start {number}: {error}")
            return FAILED
        return scores

    def open_start(self, number: int) -> None:
        """The state of a start, as far as it was trained."""
        self.folder = self.run.path / "starts" / str(number)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.restore(self.fresh(number))
        self.restore_metrics()

    @property
    def is_choosing(self) -> bool:
        """Whether it is still to be seen which start goes on."""
        return self.folder.name != "checkpoints"

    @property
    def last_look(self) -> tuple[float, ...]:
        return FAILED if self.state.start is None else tuple(self.state.start.scores.tolist())

    # ---- updates

    def run_to(self, last: int, on_progress: Callable[[Progress], None]) -> None:
        """Update, log, validate and save up to that batch, or until the task is solved; a signal
        saves first.
        """
        done = int(self.state.batch)
        if done >= last or self.is_solved:
            return
        loss = self.step(done)  # compiles; a signal that ends it loses nothing
        with deferred_signals() as check_signals:
            try:
                while True:
                    done += 1
                    row = self.log(done) if self.is_logged(done) else None
                    if self.is_saved(done):
                        self.save()
                    on_progress(Progress(done, loss, row, **self.numbered))
                    check_signals()
                    if done == last or self.is_solved:
                        return
                    loss = self.step(done)
            except KeyboardInterrupt:
                self.save()
                raise

    def step(self, index: int) -> float:
        """One update with the batch of that number."""
        batch = self.stream[self.position(index)]
        lengths = [part.shape[1] for part in batch]
        padded = pad([batch], *map(bucket, lengths, self.edges))
        self.state, loss = self.update(
            self.state,
            padded.inputs,
            padded.input_lengths,
            padded.answers,
            padded.answer_lengths,
            self.normals,
        )
        if not np.isfinite(loss):
            raise NonFiniteError(f"the loss became {loss} at batch {index + 1}")
        return float(loss)

    def position(self, index: int) -> int:
        """Where the batch of that number is in the stream."""
        if self.smallest_first is None or self.state.steering is None:
            return index
        return self.smallest_first.position(index, float(self.state.steering.share))

    def is_validated(self, done: int) -> bool:
        config = self.config
        due = done % config.validate_every == 0 and done >= config.validate_from
        return (due or done == config.batches) and not self.is_choosing

    def is_looked_at(self, done: int) -> bool:
        return self.is_choosing and done in looks(self.config)

    def is_saved(self, done: int) -> bool:
        due = self.is_choosing and done % self.config.validate_every == 0
        return due or self.is_looked_at(done) or self.is_validated(done)

    def is_logged(self, done: int) -> bool:
        return done % LOG_EVERY == 0 or self.is_looked_at(done) or self.is_validated(done)

    def log(self, done: int) -> dict[str, Any]:
        """A row for the metrics, with a validation where one is due."""
        *sums, batches = self.state.tally.tolist()
        loss, fine, coarse = (total / batches for total in sums)
        row: dict[str, Any] = {"batch": done, "loss": loss, "fine": fine, "coarse": coarse}
        self.state = self.state._replace(tally=jnp.zeros(4))
        row = self.numbered | row
        if self.state.steering is not None:
            row |= self.steer_by_hand(self.state.steering, done)
        if self.is_looked_at(done):
            row |= self.look()
        if self.is_validated(done):
            found = self.validate(done)
            row |= {"validation_fine": found.fine, "validation_coarse": found.coarse}
            row |= self.note_solved(done, found)
        with (self.run.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def steer_by_hand(self, steering: Steering, done: int) -> dict[str, Any]:
        """Keep the weights, or go back to those kept; what the metrics say of the steering."""
        row: dict[str, Any] = {name: float(getattr(steering, name)) for name in LOGGED_STEERING}
        if steering.kept is None or not bool(is_grown(self.config, steering, done)):
            return row
        if is_worth_keeping(steering):
            kept = keep(steering, self.state.average, self.state.optimiser)
            self.state = self.state._replace(steering=kept)
        elif is_lost(steering):
            self.state = self.state._replace(
                parameters=steering.kept.average,
                average=steering.kept.average,
                optimiser=steering.kept.optimiser,
                steering=gone_back(steering, steering.kept),
            )
            row["gone_back"] = True
        return row

    def look(self) -> dict[str, float]:
        """Score a start at the training sizes."""
        self.require_finite()
        machine: Machine = eqx.combine(self.state.average, self.rest)
        problems = evaluation_batches(self.task, "validation", 1, LOOK_EXAMPLES)
        found = evaluate_batches(machine, problems)
        if self.state.start is not None:
            scores = jnp.array([found.coarse, found.fine])
            self.state = self.state._replace(start=self.state.start._replace(scores=scores))
        return {"look_fine": found.fine, "look_coarse": found.coarse}

    def note_solved(self, done: int, found: Evaluation) -> dict[str, bool]:
        """Whether that validation ends the run, kept for a resumption."""
        steering = self.state.steering
        if steering is None or not is_solved(self.config, steering, done, found.coarse):
            return {}
        self.state = self.state._replace(steering=steering._replace(solved=jnp.array(True)))
        return {"solved": True}

    def validate(self, done: int) -> Evaluation:
        """Score the weights at twice the training size; keep them if none were better."""
        self.require_finite()
        machine: Machine = eqx.combine(self.state.average, self.rest)
        found = evaluate_batches(machine, self.validation)
        now = jnp.array([found.coarse, found.fine])  # to be compared in the precision of the best
        said = {"config": self.run.digest, "batch": str(done)}
        if now.tolist() >= self.state.best.tolist():
            self.state = self.state._replace(best=now)
            save_tree(self.run.weights_path("best"), machine, said)
        save_tree(self.run.weights_path("last"), machine, said)
        if self.config.keep_all:
            save_tree(self.run.weights_path(f"{done:06d}"), machine, said)
        return found

    def require_finite(self) -> None:
        """Nothing is kept of a machine that is not made of numbers any more."""
        if not all(bool(jnp.all(jnp.isfinite(p))) for p in jax.tree.leaves(self.state.parameters)):
            done = int(self.state.batch)
            raise NonFiniteError(f"a parameter was not finite any more after batch {done}")

    def save(self) -> None:
        """A checkpoint to resume from; the oldest ones go."""
        self.require_finite()
        done = int(self.state.batch)
        said = {"config": self.run.digest, "seconds": f"{self.seconds:.1f}"}
        save_tree(self.folder / f"{done:06d}.safetensors", self.state, said)
        for old in sorted(self.folder.glob("*.safetensors"), key=by_number)[:-KEPT_CHECKPOINTS]:
            old.unlink()

    def restore(self, fresh: TrainingState) -> TrainingState:
        """The newest checkpoint of the folder that is whole and of this config."""
        for path in sorted(self.folder.glob("*.safetensors"), key=by_number, reverse=True):
            try:
                state = load_tree(path, fresh, {"config": self.run.digest})
                seconds = float(read_metadata(path).get("seconds", 0))
                self.begun = min(self.begun, time.monotonic() - seconds)
                return state
            except ValueError as error:
                self.on_notice(f"stepping over a checkpoint: {error}")
                path.rename(path.with_suffix(".bad"))
        return fresh

    def require_no_progress(self) -> None:
        """There are no checkpoints. The metrics may not show that there were: to begin again
        would cut them. A process that was killed leaves no row after that of a validation.
        """
        rows = list(self.run.metrics())
        if any("validation_coarse" in row for row in rows[:-1]):
            raise ValueError(
                f"{self.run.path} has no checkpoint to go on from, though its metrics go to batch "
                f"{rows[-1]['batch']}; to train it anew, remove them or choose another folder"
            )

    def restore_metrics(self) -> None:
        """Keep the rows up to the state, and those of other starts; later ones will come again."""
        file, lines = self.run.path / "metrics.jsonl", self.run.metrics_lines()
        bad = sum(parse_row(line) is None for line in lines[:-1])  # a crash may cut off the last
        if bad:
            self.on_notice(f"{file}: leaving out what is damaged, lines of {len(lines)}: {bad}")
        batch, own = int(self.state.batch), self.numbered.get("start")
        rows = [r for r in self.run.rows() if r["batch"] <= batch or r.get("start") != own]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        write_atomically(file, text.encode())


def by_number(path: Path) -> tuple[int, str]:
    """The order of checkpoints, also where numbers outgrow their six digits."""
    return len(path.stem), path.stem


def open_stream(config: TrainConfig) -> Stream:
    """The data of a run."""
    task = TASKS[config.task]
    stream: Stream
    if config.data is not None:
        stream = FileStream(config.data, task)
    else:
        stream = training_stream(task, config.regime, config.seed)
    updates = config.growth_batches
    return GrowingStream(stream, updates, config.seed) if updates else stream


def open_smallest_first(config: TrainConfig, stream: Stream) -> SmallestFirst | None:
    """What draws batches while sizes grow, if they do so by performance."""
    return SmallestFirst(stream, config.seed) if config.growth_by == "performance" else None


def make_optimiser(config: TrainConfig) -> optax.GradientTransformation:
    options = {"clip": config.clip}
    if config.optimiser == "adam":
        options["beta2"] = config.beta2
    return OPTIMISERS[config.optimiser](learning_rate(config), **options)


def require_trainable(config: TrainConfig) -> None:
    """The data can be read, and the machine and its problems fit into memory."""
    open_stream(config)
    task = TASKS[config.task]
    require_room(task, 2, max(config.validation_examples, config.test_examples))
    key = jax.eval_shape(lambda: jax.random.key(0))
    machine = eqx.filter_eval_shape(build_machine, config.model, task.vocabulary, key=key)
    numbers = sum(math.prod(leaf.shape) for leaf in named_arrays(machine).values())
    sizes = [name for name in SIZES if getattr(config.model, name, None)]
    largest = max(sizes, key=lambda name: getattr(config.model, name))
    what = f"{largest} {getattr(config.model, largest)}"
    require_memory(what, COPIES * numbers * jnp.zeros(0).dtype.itemsize)


def start_key(config: TrainConfig, start: int) -> PRNGKeyArray | None:
    """The key of a start; the first has none of its own, but the seed's."""
    if start == 0:
        return None
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), STARTS), start)


@eqx.filter_jit
def initial_machine(config: TrainConfig, key: PRNGKeyArray | None = None) -> Machine:
    """The machine before the first update; compiled as a whole, so that the cache knows it."""
    key = jax.random.key(config.seed) if key is None else key
    build_key, draw_key = jax.random.split(key)
    machine = build_machine(config.model, TASKS[config.task].vocabulary, key=build_key)
    forget_bias = config.forget_bias
    if config.init == "uniform":
        machine = redraw_uniform(machine, draw_key)
        forget_bias = 1.0 if forget_bias is None else forget_bias
    if config.init == "straight":
        cell = straighten(machine.cell, draw_key)
        machine = eqx.tree_at(lambda machine: machine.cell, machine, cell)
    return machine if forget_bias is None else set_forget_bias(machine, forget_bias)


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


def update(
    config: TrainConfig,
    optimiser: optax.GradientTransformation,
    rest: Machine,
    state: TrainingState,
    inputs: Int[Array, "batch time"],
    input_lengths: Int[Array, " batch"],
    answers: Int[Array, "batch steps"],
    answer_lengths: Int[Array, " batch"],
    normals: Float[Array, " table"] | None = None,
) -> tuple[TrainingState, Float[Array, ""]]:
    """The state after one batch, and its loss. `normals` are what noise is made of."""
    noise, steering = None, state.steering
    if normals is not None and steering is not None:
        cell: Cell = eqx.combine(state.parameters, rest).cell
        shape = inputs.shape[1] + answers.shape[1], len(inputs), cell.noise_size
        key = noise_key(config.seed, state.batch, CONTROLLER_NOISE)
        noise = steering.noise * slice_normals(normals, shape, key)

    def loss_of(parameters: PyTree) -> tuple[Array, Array]:
        machine: Machine = eqx.combine(parameters, rest)
        logits = machine(inputs, answers.shape[1], input_lengths, answer_lengths, noise)
        return answer_loss(logits, answers, answer_lengths), logits

    shaken = state.parameters
    if config.weight_noise:
        scale = config.weight_noise / config.batches * state.batch
        shaken = add_noise(shaken, scale, noise_key(config.seed, state.batch))
    (loss, logits), grads = jax.value_and_grad(loss_of, has_aux=True)(shaken)
    updates, optimiser_state = optimiser.update(grads, state.optimiser)
    if steering is not None and config.rate_by == "performance":
        updates = optax.tree_utils.tree_scalar_mul(steering.rate, updates)
    parameters = optax.apply_updates(state.parameters, updates)
    average = optax.incremental_update(parameters, state.average, 1 - config.averaging)
    scores = score(logits, answers, answer_lengths)
    tally = state.tally + jnp.stack([loss, scores.fine, scores.coarse, jnp.ones_like(loss)])
    batch = state.batch + 1
    if steering is not None:
        steering = steer(config, steering, batch, jnp.asarray(scores.coarse))
    new = TrainingState(
        parameters, average, optimiser_state, batch, tally, state.best, steering, state.start
    )
    return new, loss


def noise_key(seed: int, batch: Int[Array, ""] | int, purpose: int = NOISE) -> PRNGKeyArray:
    """A key of its own for every batch and purpose. Those of the initial parameters come from two
    splits of the seed's key, which are what folding in 0 and 1 would give.
    """
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), batch)


def add_noise(parameters: PyTree, scale: Float[Array, ""], key: PRNGKeyArray) -> PyTree:
    """Gaussian noise of that standard deviation on every number."""
    flat, restore = ravel_pytree(parameters)
    return restore(flat + scale * jax.random.normal(key, flat.shape))
