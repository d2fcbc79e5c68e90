"""Times implementations against each other, turn by turn on one core."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lantm.processes import SINGLE, cores, one_core
from lantm.studies.benchmark.cases import Case, floating_point_operations


@dataclass(frozen=True)
class Measurement:
    """One implementation on one case."""

    model: str
    task: str
    length: int
    """Encoder steps; see `Case`."""
    implementation: str
    milliseconds: list[float]
    """The median training step of each repetition."""
    cpu_milliseconds: list[float]
    """Of the processor, for the same steps on average."""
    peak_megabytes: float
    """How far resident memory rises above its level between steps."""
    data_milliseconds: float
    """To draw and pad a batch."""
    bound_milliseconds: float
    """The step's matrix products at the rate of a large one on this core."""


class WorkerError(RuntimeError):
    """A worker ended; its last line says why."""


class Worker:
    """A process with one implementation of one case, on one core."""

    def __init__(self, implementation: str, torch_file: str, case: Case, core: int = 0):
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed on exit
        arguments = [implementation, torch_file, case.model, case.task, str(case.size)]
        with one_core(core):
            self.process = subprocess.Popen(  # noqa: S603 - no shell, our own program
                [sys.executable, "-m", "lantm.studies.benchmark.measure", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                text=True,
                env={**os.environ, **SINGLE},
            )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def ask(self, steps: int) -> None:
        """For a `Sample` of that many steps."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # it ended, and the empty answer will say so
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, float]:
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        answer = self.process.stdout.readline()
        if not answer:
            self.errors.seek(0)
            *_, last = ["", *self.errors.read().strip().splitlines()]
            raise WorkerError(last or f"ended with {self.process.wait()}")
        return json.loads(answer)

    def measure(self, steps: int) -> dict[str, float]:
        self.ask(steps)
        return self.answer()

    def move(self, core: int = 0) -> None:
        """To another core, with all threads."""
        if hasattr(os, "sched_setaffinity"):
            for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {cores()[core]})


def compare(
    case: Case,
    implementations: Sequence[str],
    *,
    repetitions: int = 5,
    seconds: float = 0.5,
    torch_file: str = "",
    on_notice: Callable[[str], None] = print,
) -> list[Measurement]:
    """Rows of all implementations, measured in turns: A B C A B C ...

    A repetition takes about so many seconds, and at least one step.
    """
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(name, torch_file, case, core))
            for core, name in enumerate(implementations)
        }
        steps = get_ready(workers, seconds, on_notice)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in steps}
        for _ in range(repetitions):
            for name in steps:
                found[name].append(workers[name].measure(steps[name]))
    rate = max((sample["gigaflops"] for samples in found.values() for sample in samples), default=1)
    bound = floating_point_operations(case) / rate / 1e6
    return [make_row(case, name, samples, bound) for name, samples in found.items()]


def get_ready(
    workers: dict[str, Worker], seconds: float, on_notice: Callable[[str], None]
) -> dict[str, int]:
    """Let all compile, side by side; then to one core with them. The steps of a repetition."""
    for worker in workers.values():
        worker.ask(1)
    steps: dict[str, int] = {}
    for name, worker in workers.items():
        try:
            steps[name] = max(1, round(1e3 * seconds / worker.answer()["milliseconds"]))
            worker.move()
        except WorkerError as error:
            on_notice(f"{name} is left out: {error}")
    return steps


def make_row(case: Case, name: str, samples: list[dict[str, Any]], bound: float) -> Measurement:
    def column(field: str) -> list[float]:
        return [round(sample[field], 3) for sample in samples]

    return Measurement(
        case.model,
        case.task,
        case.length,
        name,
        column("milliseconds"),
        column("cpu_milliseconds"),
        max(column("peak_megabytes")),
        min(column("data_milliseconds")),
        round(bound, 3),
    )


def first_step_seconds() -> float:
    """From the start of a process that trains to its first finished step, on one core.

    The first of two starts may have to compile; the second finds the programs in the cache.
    """
    command = [
        sys.executable,
        "-c",
        "from lantm.studies.benchmark.measure import first_step; first_step()",
    ]
    seconds = 0.0
    with one_core():
        for _ in range(2):
            start = time.perf_counter()
            with subprocess.Popen(  # noqa: S603 - no shell, our own program
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as process:
                assert process.stdout is not None  # noqa: S101 - it is a pipe
                process.stdout.readline()
                seconds = time.perf_counter() - start
    return seconds
