"""A sweep: trains every config once, whatever happens to processes on the way."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from lantm.interrupts import deferred_signals
from lantm.studies.results import GRID_FILE, Row, add_results, read_results, result_row
from lantm.studies.sweep.engines import Engine
from lantm.studies.sweep.worker import record_failure
from lantm.training.config import TrainConfig
from lantm.training.runs import BusyError, Run
from lantm.training.updates import program_of

ATTEMPTS = 3
POLL_SECONDS = 0.2


class Sweep:
    """The runs of a grid below one folder: ended, running and waiting.

    A run that has ended in the folder or is among the results is not trained again.
    """

    def __init__(
        self,
        configs: Iterable[TrainConfig],
        root: str | Path,
        *,
        grid: str | None = None,
        results: str | Path | None = None,
        retry: bool = False,
    ):
        self.root, self.grid = Path(root), grid
        self.results = Path(results or self.root / "results.jsonl")
        self.waiting: deque[Run] = deque()
        self.running: dict[Path, Run] = {}
        self.rows: list[Row] = []
        self.deaths: Counter[Path] = Counter()
        self.compiled: list[TrainConfig] = []
        """The programs that idle workers have; the last of these workers is asked next."""
        known = {row["digest"]: row for row in read_results(self.results, missing_ok=True)}
        for config in configs:
            run = Run(self.root / config.name, config, config.digest)
            row = known.get(run.digest) if run.result is None else result_row(run)
            if row is None or (row["status"] == "failed" and retry):
                self.waiting.append(run)
            else:
                self.rows.append(row)

    def train(
        self,
        engine: Engine,
        *,
        on_row: Callable[[Row], None] = lambda row: None,
        on_poll: Callable[[], None] = lambda: None,
    ) -> list[Row]:
        """Train what is waiting; `on_row` hears of each run that ends. Ctrl-C saves first."""
        add_results(self.results, self.rows)
        for run in self.waiting:  # what failed is tried again; another sweep may have finished some
            if (run.result or {}).get("status") == "failed":
                (run.path / "result.json").unlink()
        with deferred_signals() as check_signals:
            try:
                while self.waiting or self.running:
                    for row in self.advance(engine):
                        on_row(row)
                    on_poll()
                    check_signals()
                    time.sleep(POLL_SECONDS)
            finally:
                engine.stop()
        return self.rows

    def advance(self, engine: Engine) -> list[Row]:
        """Start what there is room for; the rows of what has ended, kept among the results."""
        before = len(self.rows)
        self.fill(engine)
        for folder, problem in engine.ended():
            self.settle(self.running.pop(folder), problem)
        new = self.rows[before:]
        if new:
            add_results(self.results, new)
        return new

    def fill(self, engine: Engine) -> None:
        """Start what waits, as far as there is room; another sweep's runs go on waiting."""
        taken: list[Run] = []
        while self.waiting and len(self.running) < engine.slots:
            run = min(self.waiting, key=self.turn)
            self.waiting.remove(run)
            if run.result is not None:
                self.rows.append(result_row(run))
            elif is_free(Run.create(run.config, self.root)):
                if not (run.path / GRID_FILE).exists():
                    run.write_json(GRID_FILE, self.grid)
                self.running[run.path] = run
                engine.start(run.path)
                del self.compiled[-1:]
            else:
                taken.append(run)
        self.waiting += taken

    def turn(self, run: Run) -> int:
        """What can go on with the compiled programs of the next worker comes first, then what
        shares none with those that are running.
        """
        program = program_of(run.config)
        if [program] == self.compiled[-1:]:
            return 0
        return 1 + any(program == program_of(other.config) for other in self.running.values())

    def settle(self, run: Run, problem: str | None) -> None:
        """A run ended: with a result, or it waits for its next attempt."""
        self.compiled.append(program_of(run.config))
        if problem is not None:
            self.deaths[run.path] += 1
            if run.result is None and self.deaths[run.path] == ATTEMPTS:
                record_failure(run, f"its process died {ATTEMPTS} times: {problem}")
        if run.result is None:
            self.waiting.append(run)
        else:
            self.rows.append(result_row(run))

    def count(self, status: str) -> int:
        return sum(row["status"] == status for row in self.rows)


def is_free(run: Run) -> bool:
    """No process is training it. The worker makes sure of that once more."""
    try:
        with run.held():
            return True
    except BusyError:
        return False


class Rates:
    """Seconds a batch takes, from runs that have finished: the most similar ones there are.

    The median of them, since the seconds of a run that was paused include the pause.
    """

    def __init__(self, rows: Iterable[Row]):
        known: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for row in rows:
            if row["status"] == "finished" and row["seconds"] is not None:
                config = row["config"]
                for likeness in similar(config["task"], config["model"]):
                    known[likeness].append(row["seconds"] / config["batches"])
        self.seconds = {likeness: median(values) for likeness, values in known.items()}

    def expect(self, config: TrainConfig, done: int = 0) -> float | None:
        """Seconds until a run is finished; None as long as no run was."""
        for likeness in similar(config.task, config.model.model):
            if likeness in self.seconds:
                return self.seconds[likeness] * (config.batches - done)
        return None

    def unmeasured(self, sweep: Sweep) -> list[str]:
        """Models that are waiting and of which no run has finished: others stand in for them."""
        models = dict.fromkeys(run.config.model.model for run in sweep.waiting)
        return [model for model in models if (None, model) not in self.seconds]

    def left(self, sweep: Sweep, slots: int = 1) -> float | None:
        """Seconds until all runs of a sweep are finished, with so many at a time."""
        parts = [self.expect(run.config) for run in sweep.waiting]
        parts += [self.expect(run.config, last_row(run)["batch"]) for run in sweep.running.values()]
        known = [part for part in parts if part is not None]
        return sum(known) / slots if len(known) == len(parts) and slots else None


def similar(task: str, model: str) -> list[tuple[str | None, str | None]]:
    """Kinds of runs to compare with, the nearest one first."""
    return [(task, model), (None, model), (task, None), (None, None)]


def last_row(run: Run) -> dict[str, Any]:
    """What the metrics of a run say last."""
    return {"batch": 0} | dict(*list(run.metrics())[-1:])
