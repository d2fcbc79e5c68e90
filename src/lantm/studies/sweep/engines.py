"""Engines: where the runs of a sweep are trained, one core and one thread each."""

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lantm.errors import require_one_of, require_positive
from lantm.interrupts import SIGNALS, exit_code
from lantm.processes import SINGLE, available_cores, one_core, own_gpu
from lantm.studies.sweep.worker import LOG_FILE, work

CACHE = ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")
"""How the settings begin that say where and which compiled programs are kept."""


@runtime_checkable
class Engine(Protocol):
    """Trains runs side by side. What comes of a run stands in its directory."""

    @property
    def slots(self) -> int:
        """How many runs may be in progress at once."""
        ...

    def start(self, folder: Path) -> None:
        """Begin or go on with the run in a directory."""
        ...

    def ended(self) -> list[tuple[Path, str | None]]:
        """The runs that are not in progress any more, with a reason where the process died."""
        ...

    def stop(self) -> None:
        """Ask all runs to save and to end, and wait until they have."""
        ...


class Worker(NamedTuple):
    """A process that trains one run after the other."""

    slot: int
    process: "subprocess.Popen[str]"
    answers: "SimpleQueue[str]"
    """The runs that are over."""


class Local:
    """A process for each core of this machine; graphics processors are shared out in turn."""

    def __init__(self, workers: int | None = None, file: str | None = None):
        self.slots = workers or available_cores()
        self.file = file
        self.busy: dict[Path, Worker] = {}
        self.idle: list[Worker] = []

    def start(self, folder: Path) -> None:
        self.idle = [worker for worker in self.idle if worker.process.poll() is None]
        (folder / LOG_FILE).write_bytes(b"")
        worker = self.idle.pop() if self.idle else self.launch(folder)
        self.busy[folder] = worker
        with suppress(BrokenPipeError):  # it has died, as will be seen
            tell(worker.process, f"{folder}\n")

    def launch(self, folder: Path) -> Worker:
        """A new process; what it says before its first run stands in that folder."""
        taken = {worker.slot for worker in self.busy.values()}
        slot = min(set(range(self.slots)) - taken)
        words = [sys.executable, "-m", "lantm.studies.sweep.worker"]
        with one_core(slot), (folder / LOG_FILE).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - no shell, our own program
                words if self.file is None else [*words, self.file],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **SINGLE, **own_gpu(slot)},
                process_group=0,  # Ctrl-C in a terminal reaches only the sweep
            )
        return Worker(slot, process, lines(process))

    def ended(self) -> list[tuple[Path, str | None]]:
        over: list[tuple[Path, str | None]] = []
        for folder, worker in list(self.busy.items()):
            code = worker.process.poll()
            if f"{folder}\n" in said(worker):
                self.idle.append(worker)
                over.append((folder, None))
            elif code is not None:
                close(worker.process)
                over.append((folder, cause_of_death(folder, code)))
        for folder, _ in over:
            del self.busy[folder]
        return over

    def stop(self) -> None:
        workers = [*self.busy.values(), *self.idle]
        for worker in workers:
            close(worker.process)
        for worker in workers:
            worker.process.wait()


def tell(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.write(text)
    process.stdin.flush()


def said(worker: Worker) -> list[str]:
    """The answers that have come since."""
    return [worker.answers.get() for _ in range(worker.answers.qsize())]


def lines(process: "subprocess.Popen[str]") -> "SimpleQueue[str]":
    """Those that a process writes, as they come."""
    queue: SimpleQueue[str] = SimpleQueue()
    output = process.stdout
    assert output is not None  # noqa: S101 - it is a pipe

    def read() -> None:
        with output:
            for line in output:
                queue.put(line)

    threading.Thread(target=read, daemon=True).start()
    return queue


def close(process: "subprocess.Popen[str]") -> None:
    """The worker ends when its standard input does."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError):
        process.stdin.close()


def cause_of_death(folder: Path, code: int) -> str | None:
    """Why a process ended that should not have."""
    if code in (0, *map(exit_code, SIGNALS)):
        return None
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    lines = (folder / LOG_FILE).read_text(errors="replace").splitlines()
    return f"{lines[-1]} (see {LOG_FILE})" if lines else f"exit code {code}"


class Ray:
    """A task for each run on the cores of a Ray cluster that shares the folder of the runs."""

    def __init__(
        self, workers: int | None = None, file: str | None = None, address: str | None = None
    ):
        try:
            import ray  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise ValueError("the engine ray needs Ray: pip install 'lantm[ray]'") from None
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ValueError(f"cannot use the Ray cluster {address}: {error}") from None
        self.ray, self.limit, self.file = ray, workers, file
        cache = {name: text for name, text in os.environ.items() if name.startswith(CACHE)}
        # A run whose worker died is started again by the sweep, whichever engine it has.
        self.task: Any = ray.remote(
            num_cpus=1, max_retries=0, runtime_env={"env_vars": {**SINGLE, **cache}}
        )(work)
        self.folders: dict[Any, Path] = {}

    @property
    def slots(self) -> int:
        cores = int(self.ray.cluster_resources().get("CPU", 0))
        return min(self.limit or cores, cores)

    def start(self, folder: Path) -> None:
        file = None if self.file is None else str(Path(self.file).resolve())
        self.folders[self.task.remote(str(folder.resolve()), file)] = folder

    def ended(self) -> list[tuple[Path, str | None]]:
        tasks = list(self.folders)
        over, _ = self.ray.wait(tasks, num_returns=len(tasks), timeout=0) if tasks else ([], [])
        return [(self.folders.pop(task), self.cause_of_death(task)) for task in over]

    def cause_of_death(self, task: Any) -> str | None:
        """Why a task ended that should not have."""
        try:
            self.ray.get(task)
        except self.ray.exceptions.RayError as error:
            return f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"
        return None

    def stop(self) -> None:
        tasks = list(self.folders)
        for task in tasks:
            self.ray.cancel(task)
        if tasks:
            self.ray.wait(tasks, num_returns=len(tasks))
        self.ray.shutdown()


def require_engine(name: str, workers: int | None = None, address: str | None = None) -> None:
    """There is such an engine, and it can have these settings."""
    require_one_of("engine", name, ["local", "ray"])
    if workers is not None:
        require_positive(workers=workers)
    if address is not None and name != "ray":
        raise ValueError(f"--address is only for the engine ray, got {address} for {name}")


def make_engine(
    name: str, workers: int | None = None, file: str | None = None, address: str | None = None
) -> Engine:
    """An engine by name."""
    require_engine(name, workers, address)
    return Ray(workers, file, address) if name == "ray" else Local(workers, file)
