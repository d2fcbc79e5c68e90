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
from lantm.machines.seq2seq import SequenceModel
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
from lantm.training.runs import Run, evaluate, parse_row
from lantm.training.starts import (
    FAILED,
    LOOK_EXAMPLES,
    best_start,
    is_accepted,
    looks,
    unseen,
)
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
)
from lantm.training.updates import (
    TrainingState,
    initial_machine,
    make_optimiser,
    start_key,
    update,
)

LOG_EVERY = 100
KEPT_CHECKPOINTS = 2
LOGGED_STEERING = ("mean", "share", "noise", "rate")
COPIES = 4
"""Numbers for each parameter: itself, its average, its gradient and its moment."""
SIZES = ("hidden_size", "embedding_size", "memory_width", "key_size", "layers", "blocks")
"""The settings of a model that decide how much memory it needs."""
MANY_THREADS = "computing with {} threads: the last digits may differ from those of one thread"


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
        machine = initial_machine(self.config, start_key(self.config, 0))
        self.rest = eqx.filter(machine, eqx.is_array, inverse=True)
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
        config = self.config
        machine = initial_machine(config, start_key(config, start))
        parameters = eqx.filter(machine, eqx.is_array)
        average = jax.tree.map(jnp.array, parameters)
        optimiser = self.optimiser.init(parameters)
        steering = first_steering(config, average, optimiser) if is_steered(config) else None
        return TrainingState(
            parameters,
            average,
            optimiser,
            jnp.array(0, jnp.int32),
            jnp.zeros(4),
            jnp.array([-1.0, -1.0]),
            steering,
            unseen(start) if config.starts > 1 else None,
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
            row |= self.review(self.state.steering, done)
        if self.is_looked_at(done):
            row |= self.look()
        if self.is_validated(done):
            found = self.validate(done)
            row |= {"validation_fine": found.fine, "validation_coarse": found.coarse}
            row |= self.note_solved(done, found)
        with (self.run.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def review(self, steering: Steering, done: int) -> dict[str, Any]:
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
        machine: SequenceModel = eqx.combine(self.state.average, self.rest)
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
        machine: SequenceModel = eqx.combine(self.state.average, self.rest)
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
