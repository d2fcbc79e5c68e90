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

from lantm.interrupts import deferred_signals
from lantm.machines.models import build_machine
from lantm.machines.seq2seq import Machine
from lantm.processes import computing_threads, prefer_one_thread, require_memory
from lantm.tasks import TASKS
from lantm.tasks.streams import (
    GrowingStream,
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
from lantm.training.updates import TrainingState, initial_machine, learning_rate, update

LOG_EVERY = 100
KEPT_CHECKPOINTS = 2
COPIES = 4
"""Numbers for each parameter: itself, its average, its gradient and its moment."""
SIZES = ("hidden_size", "embedding_size", "memory_width", "key_size", "layers")
"""The settings of a model that decide how much memory it needs."""
MANY_THREADS = "computing with {} threads: the last digits may differ from those of one thread"


class Progress(NamedTuple):
    """What there is to tell after an update."""

    batch: int
    loss: float
    row: dict[str, Any] | None
    """The row just added to the metrics, if there is one."""


class NonFiniteError(ArithmeticError):
    """The loss or a parameter is not a finite number any more."""


def train(
    config: TrainConfig,
    root: str | Path = "runs",
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_notice: Callable[[str], None] = print,
) -> Run:
    """The run of a config below `root`, trained to the end; see `finish`."""
    prefer_one_thread()
    require_trainable(config)
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
        trainer.run_to_end(on_progress)
    except NonFiniteError as error:
        run.write_json("result.json", {"status": "failed", "error": str(error)})
        raise
    seconds = round(trainer.seconds, 1)
    scores = [score.to_dict() for score in evaluate(run, examples=run.config.test_examples)]
    for row in scores:
        del row["by_length"]
    many = {"threads": threads} if threads > 1 else {}
    return {"status": "finished", "seconds": seconds, **many, "test": scores}


class Trainer:
    """A run in progress."""

    def __init__(self, run: Run, on_notice: Callable[[str], None] = print):
        self.run, self.config = run, run.config
        self.task = TASKS[self.config.task]
        self.stream = open_stream(self.config)
        machine = initial_machine(self.config)
        parameters, self.rest = eqx.partition(machine, eqx.is_array)
        optimiser = OPTIMISERS[self.config.optimiser]
        self.optimiser = optimiser(learning_rate(self.config), clip=self.config.clip)
        self.update = jax.jit(partial(update, self.config, self.optimiser, self.rest))
        self.edges = [buckets(length, 2) for length in self.stream.longest()]
        self.validation = evaluation_batches(
            self.task, "validation", 2, self.config.validation_examples
        )
        fresh = TrainingState(
            parameters,
            jax.tree.map(jnp.array, parameters),
            self.optimiser.init(parameters),
            jnp.array(0, jnp.int32),
            jnp.zeros(4),
            jnp.array([-1.0, -1.0]),
        )
        self.begun = time.monotonic()
        self.state = self.restore(fresh, on_notice)

    @property
    def seconds(self) -> float:
        """Of training so far, those before the last checkpoint included."""
        return time.monotonic() - self.begun

    def run_to_end(self, on_progress: Callable[[Progress], None]) -> None:
        """Update, log, validate and save until all batches are done; a signal saves first."""
        done = int(self.state.batch)
        if done == self.config.batches:
            return
        loss = self.step(done)  # compiles; a signal that ends it loses nothing
        with deferred_signals() as check_signals:
            try:
                while True:
                    done += 1
                    row = self.log(done) if self.is_logged(done) else None
                    if self.is_validated(done):
                        self.save()
                    on_progress(Progress(done, loss, row))
                    check_signals()
                    if done == self.config.batches:
                        return
                    loss = self.step(done)
            except KeyboardInterrupt:
                self.save()
                raise

    def step(self, index: int) -> float:
        """One update with the batch of that number."""
        batch = self.stream[index]
        lengths = [part.shape[1] for part in batch]
        padded = pad([batch], *map(bucket, lengths, self.edges))
        self.state, loss = self.update(
            self.state, padded.inputs, padded.input_lengths, padded.answers, padded.answer_lengths
        )
        if not np.isfinite(loss):
            raise NonFiniteError(f"the loss became {loss} at batch {index + 1}")
        return float(loss)

    def is_validated(self, done: int) -> bool:
        config = self.config
        due = done % config.validate_every == 0 and done >= config.validate_from
        return due or done == config.batches

    def is_logged(self, done: int) -> bool:
        return done % LOG_EVERY == 0 or self.is_validated(done)

    def log(self, done: int) -> dict[str, Any]:
        """A row for the metrics, with a validation where one is due."""
        *sums, batches = self.state.tally.tolist()
        loss, fine, coarse = (total / batches for total in sums)
        row: dict[str, Any] = {"batch": done, "loss": loss, "fine": fine, "coarse": coarse}
        self.state = self.state._replace(tally=jnp.zeros(4))
        if self.is_validated(done):
            found = self.validate(done)
            row |= {"validation_fine": found.fine, "validation_coarse": found.coarse}
        with (self.run.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

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
        folder = self.run.path / "checkpoints"
        said = {"config": self.run.digest, "seconds": f"{self.seconds:.1f}"}
        save_tree(folder / f"{done:06d}.safetensors", self.state, said)
        for old in sorted(folder.glob("*.safetensors"), key=by_number)[:-KEPT_CHECKPOINTS]:
            old.unlink()

    def restore(self, fresh: TrainingState, on_notice: Callable[[str], None]) -> TrainingState:
        """The newest checkpoint that is whole and of this config, with the metrics up to it."""
        for leftover in self.run.path.rglob("*.safetensors?*"):  # of a process that was killed
            leftover.unlink()
        folder = self.run.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        if not any(folder.iterdir()):
            self.require_no_progress()
        state = fresh
        for path in sorted(folder.glob("*.safetensors"), key=by_number, reverse=True):
            try:
                state = load_tree(path, fresh, {"config": self.run.digest})
                self.begun -= float(read_metadata(path).get("seconds", 0))
                break
            except ValueError as error:
                on_notice(f"stepping over a checkpoint: {error}")
                path.rename(path.with_suffix(".bad"))
        self.restore_metrics(int(state.batch), on_notice)
        return state

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

    def restore_metrics(self, batch: int, on_notice: Callable[[str], None]) -> None:
        """Keep the rows up to a batch; those after it will come again."""
        file, lines = self.run.path / "metrics.jsonl", self.run.metrics_lines()
        bad = sum(parse_row(line) is None for line in lines[:-1])  # a crash may cut off the last
        if bad:
            on_notice(f"{file}: leaving out what is damaged, lines of {len(lines)}: {bad}")
        rows = [row for row in self.run.metrics() if row["batch"] <= batch]
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
    updates = round(config.growth * config.batches)
    return GrowingStream(stream, updates, config.seed) if updates else stream


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
