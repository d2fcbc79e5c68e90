"""A run in progress: updates, validations, starts, and when it ends."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from filelock import FileLock

from lantm.interrupts import deferred_signals
from lantm.machines.seq2seq import SequenceModel
from lantm.tasks import TASKS
from lantm.tasks.streams import evaluation_batches
from lantm.training.checkpoints import (
    save_tree,
    write_atomically,
)
from lantm.training.evaluation import Evaluation, evaluate_batches
from lantm.training.feed import Feed
from lantm.training.journal import Journal, remove_leftovers
from lantm.training.optimiser import without_momentum
from lantm.training.runs import METRICS_FILE, Run, metrics_lines
from lantm.training.search import Helpers, search
from lantm.training.starts import (
    LOOK_EXAMPLES,
    OUTCOME_FILE,
    Look,
    Outcome,
    best_start,
    is_over,
    looks,
    read_outcome,
    tried,
    unseen,
    write_outcome,
)
from lantm.training.steering import (
    first_steering,
    is_forgotten,
    is_solved,
    is_steered,
    normal_table,
    shaken_less,
)
from lantm.training.updates import (
    TrainingState,
    compiled_update,
    initial_machine,
    make_optimiser,
    program_of,
    start_key,
)

LOG_EVERY = 100
LOGGED_STEERING = ("mean", "share", "noise", "rate")


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


class Trainer:
    """A run in progress."""

    def __init__(self, run: Run, on_notice: Callable[[str], None] = print, *, beside: bool = False):
        """Beside another process, which has the run, there are only starts to train."""
        self.run, self.config, self.on_notice = run, run.config, on_notice
        self.task = TASKS[self.config.task]
        self.feed = Feed(self.config)
        self.optimiser = make_optimiser(self.config)
        machine = initial_machine(self.config, start_key(self.config, 0))
        self.rest = eqx.filter(machine, eqx.is_array, inverse=True)
        self.update = compiled_update(program_of(self.config), self.rest)
        self.normals = normal_table() if self.config.noise else None
        self.validation = evaluation_batches(
            self.task, "validation", 2, self.config.validation_examples
        )
        self.begun = time.monotonic()
        if not beside:
            self.open_run()

    def open_run(self) -> None:
        """The state of the run, as far as it was trained."""
        self.keep_run()
        remove_leftovers(self.run.path / "weights")
        if not any(self.journal.folder.iterdir()):
            self.require_no_progress()
        self.restore(self.fresh())
        if self.config.starts == 1 or int(self.state.batch):
            self.cut_metrics()

    def keep_run(self) -> None:
        """What is trained from now on is the run."""
        path = self.run.path
        self.journal = Journal(path / "checkpoints", path, self.run.digest, self.on_notice)

    def restore(self, fresh: TrainingState) -> None:
        """The state and the seconds of the last checkpoint, if there is one."""
        self.state, seconds = self.journal.restore(fresh)
        self.begun = min(self.begun, time.monotonic() - seconds)

    def cut_metrics(self) -> None:
        self.journal.cut(int(self.state.batch), self.numbered.get("start"))

    def fresh(self, start: int = 0) -> TrainingState:
        """Before the first update."""
        config = self.config
        machine = initial_machine(config, start_key(config, start))
        parameters = eqx.filter(machine, eqx.is_array)
        average = jax.tree.map(jnp.array, parameters)
        optimiser = self.optimiser.init(parameters)
        steering = first_steering(config) if is_steered(config) else None
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
    def ending(self) -> dict[str, Any]:
        """What there is to tell of a run that ended: why, and which start it is of which."""
        told: dict[str, Any] = {}
        if self.config.solved is not None:
            told["ended"] = f"after all {self.config.batches} batches"
        if self.is_solved:
            batch, least = int(self.state.batch), self.config.solved
            told["solved"] = batch
            told["ended"] = f"solved at batch {batch}: a validation of at least {least:.2%}"
        if self.config.starts > 1:
            counted = tried(self.outcomes()).values()
            told |= {**self.numbered, "starts": [outcome.to_dict() for outcome in counted]}
        return told

    @property
    def is_solved(self) -> bool:
        return self.state.steering is not None and bool(self.state.steering.solved)

    @property
    def numbered(self) -> dict[str, int]:
        """The number of the start, if there are several."""
        return {} if self.state.start is None else {"start": int(self.state.start.number)}

    # ---- starts

    def choose_start(self, on_progress: Callable[[Progress], None], jobs: int = 1) -> None:
        """Train starts, so many at once, and go on with the first that is good at twice the
        training sizes; if none is, with the best. Resumed, it finds each start where it was.
        """
        if self.config.starts == 1 or int(self.state.batch):
            return

        def train_here(number: int, tend: Callable[[], None]) -> None:
            def tell(progress: Progress) -> None:
                on_progress(progress)
                tend()

            self.train_start(number, tell)

        outcomes = search(
            self.config.starts,
            lambda number: read_outcome(self.start_folder(number) / OUTCOME_FILE),
            train_here,
            Helpers(self.run.path, min(jobs, self.config.starts) - 1, self.on_notice),
            lambda number, outcome: self.on_notice(f"start {number}: {outcome.describe()}"),
        )
        self.go_on_with_best(tried(outcomes))

    def go_on_with_best(self, outcomes: dict[int, Outcome]) -> None:
        """Of these starts; whatever there is of later ones goes."""
        for folder in self.run.start_folders()[len(outcomes) :]:
            rmtree(folder, ignore_errors=True)  # a process may still be about to end there
        if all(outcome.is_failed for outcome in outcomes.values()):
            raise NonFiniteError("no start stayed finite")
        chosen = best_start(outcomes)
        self.open_start(chosen)
        self.on_notice(f"going on with start {chosen}")
        self.keep_run()
        row = self.numbered | {"batch": int(self.state.batch)} | self.check(int(self.state.batch))
        lines = [line for number in outcomes for line in metrics_lines(self.start_folder(number))]
        text = "".join(line + "\n" for line in [*lines, json.dumps(row)])
        write_atomically(self.run.path / METRICS_FILE, text.encode())
        self.save()

    def train_start(
        self, number: int, on_progress: Callable[[Progress], None] = lambda progress: None
    ) -> None:
        """Until it is clear what comes of a start, which is then kept in its folder."""
        folder = self.start_folder(number)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "lock"):  # a process whose parent was killed may be about to end
            if read_outcome(folder / OUTCOME_FILE) is None:
                write_outcome(folder / OUTCOME_FILE, self.run_start(number, on_progress))

    def run_start(self, number: int, on_progress: Callable[[Progress], None]) -> Outcome:
        self.open_start(number)
        scores = Look()
        try:
            for batch in looks(self.config):
                self.run_to(batch, on_progress)
                scores = self.last_look
                found = scores.is_general and self.has_grown
                if found or is_over(self.config, batch, scores):
                    break
        except NonFiniteError as error:
            return Outcome(int(self.state.batch), *Look(), str(error))
        return Outcome(int(self.state.batch), *scores)

    def outcomes(self) -> dict[int, Outcome]:
        """Of the starts that have ended."""
        folders = {int(folder.name): folder for folder in self.run.start_folders()}
        found = {number: read_outcome(f / OUTCOME_FILE) for number, f in folders.items()}
        return {number: outcome for number, outcome in found.items() if outcome is not None}

    def start_folder(self, number: int) -> Path:
        return self.run.path / "starts" / str(number)

    def open_start(self, number: int) -> None:
        """The state of a start, as far as it was trained."""
        folder = self.start_folder(number)
        self.journal = Journal(folder, folder, self.run.digest, self.on_notice)
        self.restore(self.fresh(number))
        self.cut_metrics()

    @property
    def is_choosing(self) -> bool:
        """Whether it is still to be seen which start goes on."""
        return self.journal.metrics.parent != self.run.path

    @property
    def has_grown(self) -> bool:
        """Whether problems are of all sizes: a start can break down while they grow."""
        return self.state.steering is None or float(self.state.steering.share) >= 1

    @property
    def last_look(self) -> Look:
        if self.state.start is None:
            return Look()
        return Look(*self.state.start.scores.tolist())

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
        steering = self.state.steering
        share = 1.0 if steering is None else float(steering.share)
        padded = self.feed.batch(index, share, self.numbered.get("start", 0))
        self.state, loss = self.update(
            self.state,
            padded.inputs,
            padded.input_lengths,
            padded.answers,
            padded.answer_lengths,
            self.normals,
            np.uint32(self.config.seed),
        )
        if not np.isfinite(loss):
            raise NonFiniteError(f"the loss became {loss} at batch {index + 1}")
        return float(loss)

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
            row |= {name: float(getattr(self.state.steering, name)) for name in LOGGED_STEERING}
        if self.is_looked_at(done):
            row |= self.look()
        if self.is_validated(done):
            row |= self.check(done)
        self.journal.add(row)
        return row

    def look(self) -> dict[str, float]:
        """Score a start at the training sizes and, if it has learned these, at twice them."""
        self.require_finite()
        machine: SequenceModel = eqx.combine(self.state.average, self.rest)

        def score(multiple: int) -> Evaluation:
            problems = evaluation_batches(self.task, "validation", multiple, LOOK_EXAMPLES)
            return evaluate_batches(machine, problems)

        found = score(1)
        scores = Look(found.coarse, found.fine)
        if scores.is_learned:
            scores = scores._replace(far=score(2).coarse)
        if self.state.start is not None:
            start = self.state.start._replace(scores=jnp.array(scores))
            self.state = self.state._replace(start=start)
        return {f"look_{name}": value for name, value in scores._asdict().items() if value >= 0}

    def check(self, done: int) -> dict[str, Any]:
        """Validate, and see whether that is the end or a step back; what the metrics say of it."""
        found = self.validate(done)
        row = {"validation_fine": found.fine, "validation_coarse": found.coarse}
        return row | (self.note_solved(done, found) or self.recover(done, found))

    def note_solved(self, done: int, found: Evaluation) -> dict[str, bool]:
        """Whether that validation ends the run, kept for a resumption."""
        steering = self.state.steering
        if steering is None or not is_solved(self.config, steering, done, found.coarse):
            return {}
        self.state = self.state._replace(steering=steering._replace(solved=jnp.array(True)))
        return {"solved": True}

    def recover(self, done: int, found: Evaluation) -> dict[str, bool]:
        """Go back to the best weights, if that validation is much worse than theirs."""
        steering = self.state.steering
        best = float(self.state.best[0])
        if not self.config.go_back or steering is None or not is_forgotten(best, found.coarse):
            return {}
        machine = self.run.machine("best")
        said = {"config": self.run.digest, "batch": str(done)}
        save_tree(self.run.weights_path("last"), machine, said)
        weights = eqx.filter(machine, eqx.is_array)
        self.state = self.state._replace(
            parameters=weights,
            average=jax.tree.map(jnp.array, weights),
            optimiser=without_momentum(self.state.optimiser),
            steering=shaken_less(steering),
        )
        return {"gone_back": True}

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
        """A checkpoint to resume from."""
        self.require_finite()
        self.journal.save(self.state, self.seconds)

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
