"""A run on disk: config, metrics, weights and result in one directory named after the config."""

import dataclasses
import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
from filelock import FileLock, Timeout

from lantm.errors import require_fields, require_one_of
from lantm.machines.models import build_machine
from lantm.machines.seq2seq import SequenceModel
from lantm.processes import prefer_one_thread
from lantm.spaces import find_space
from lantm.tasks import TASKS, Batch, Task
from lantm.tasks.streams import evaluation_batches, usual_examples
from lantm.tasks.textfile import read_batches
from lantm.training.checkpoints import load_tree, write_atomically
from lantm.training.config import TrainConfig
from lantm.training.evaluation import Evaluation, evaluate_batches

CHECKPOINTS = ("best", "last")
METRICS_FILE = "metrics.jsonl"
ZOO = "zoo:"
DAMAGES = (json.JSONDecodeError, UnicodeDecodeError)
STATUSES: dict[str, dict[str, Any]] = {
    "finished": {"seconds": float | int | None, "test": list},
    "failed": {},
}
"""How a run can have ended, with the types of what its result then says."""
SCORE = {"checkpoint": str, "source": int | str, "fine": float | int, "coarse": float | int}
"""The types of what a test score has."""


class BusyError(ValueError):
    """Another process trains that run."""


@dataclass(frozen=True)
class Run:
    """A training run, finished or not, or a ready-trained machine."""

    path: Path
    config: TrainConfig
    digest: str
    """Of the config when the run began; every file of weights carries it."""

    @classmethod
    def create(cls, config: TrainConfig, root: str | Path) -> "Run":
        """The run of a config below `root`, with its directory."""
        run = cls(Path(root) / config.name, config, config.digest)
        (run.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        (run.path / "weights").mkdir(exist_ok=True)
        if not (run.path / "config.json").exists():
            versions = {"lantm": version("lantm"), "jax": jax.__version__, "git": git_hash()}
            content = {"digest": run.digest, "versions": versions, "config": config.to_dict()}
            run.write_json("config.json", content)
        return run

    @classmethod
    def open(cls, name: str | Path) -> "Run":
        """The run in a directory, or a ready-trained machine: `zoo:copy`."""
        path = zoo_path(str(name)) if str(name).startswith(ZOO) else Path(name)
        file = path / "config.json"
        if not file.is_file():
            raise ValueError(f"run must be a run directory or zoo:TASK, got {name}")
        try:
            content = json.loads(file.read_bytes())
            digest, settings = content["digest"], content["config"]
            require_registered(file, settings)
            config = TrainConfig.from_dict(settings)
        except (*DAMAGES, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file} is damaged: {error!r}") from None
        if not config.is_of(digest, settings):
            raise ValueError(f"{file} was changed: its settings do not have the digest {digest}")
        return cls(path, config, digest)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other process trains the run in this block; a BusyError if one does already.

        The system gives the run free when a process ends, however it ends.
        """
        try:
            lock = FileLock(self.path / "lock").acquire(blocking=False)
        except Timeout:
            raise BusyError(f"another process is training {self.path}") from None
        with lock:
            yield

    @property
    def task(self) -> Task:
        return TASKS[self.config.task]

    @property
    def result(self) -> dict[str, Any] | None:
        """What `result.json` says, once the run has ended."""
        path = self.path / "result.json"
        if not path.exists():
            return None
        try:
            result = json.loads(path.read_bytes())
            require_result(result)
            return result
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    @property
    def is_finished(self) -> bool:
        """Trained to the end and tested; one that failed may be tried again."""
        return self.result is not None and self.result["status"] == "finished"

    def metrics(self) -> Iterator[dict[str, Any]]:
        """One row for every logged batch; of several starts, those of the one that went on."""
        rows = list(self.rows())
        start = rows[-1].get("start") if rows else None
        yield from (row for row in rows if row.get("start") == start)

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows of the metrics, of every start; lines that are none are left out."""
        for line in self.metrics_lines():
            row = parse_row(line)
            if row is not None:
                yield row

    def metrics_lines(self) -> list[str]:
        """Of the run; of all its starts, as long as none was chosen."""
        if (self.path / METRICS_FILE).exists():
            return metrics_lines(self.path)
        return [line for folder in self.start_folders() for line in metrics_lines(folder)]

    def start_folders(self) -> list[Path]:
        """Of the starts, if there are several, by number."""
        return sorted((self.path / "starts").glob("*"), key=lambda folder: int(folder.name))

    def machine(self, checkpoint: str = "best", *, slots: int | None = None) -> SequenceModel:
        """The trained machine: best by validation, last, or the number of a kept batch, as 500.

        Where a model's memory has a fixed number of slots, it can be given another one.
        """
        weights = self.weights_path(checkpoint)
        if not weights.exists():
            kept = sorted(p.stem for p in (self.path / "weights").glob("*.safetensors"))
            require_one_of("checkpoint", checkpoint, kept or ["none so far"])
        model, vocabulary = self.config.model, self.task.vocabulary
        if slots is not None:
            model = dataclasses.replace(model, slots=slots)
        shapes = eqx.filter_eval_shape(build_machine, model, vocabulary, key=jax.random.key(0))
        return load_tree(weights, shapes, {"config": self.digest})

    def weights_path(self, checkpoint: str) -> Path:
        name = f"{int(checkpoint):06d}" if checkpoint.isdecimal() else checkpoint
        return self.path / "weights" / f"{name}.safetensors"

    @property
    def kept(self) -> list[str]:
        """The checkpoints of training that were kept, by number."""
        names = (path.stem for path in (self.path / "weights").glob("*.safetensors"))
        return sorted((name for name in names if name.isdigit()), key=int)

    @property
    def saved(self) -> int | None:
        """The batch of the newest checkpoint to resume from, if there is one."""
        for folder in (self.path / "checkpoints", *reversed(self.start_folders())):
            numbers = [int(f.stem) for f in folder.glob("*.safetensors") if f.stem.isdigit()]
            if numbers:
                return max(numbers)
        return None

    def write_json(self, name: str, value: Any) -> None:
        write_atomically(self.path / name, (json.dumps(value, indent=2) + "\n").encode())


def require_registered(file: Path, settings: dict[str, Any]) -> None:
    """The task and the key space of a run are there; users' own ones come with a file."""
    space = settings["model"]["space"]
    try:
        require_one_of("task", settings["task"], TASKS)
        if space is not None:
            find_space(space)
    except ValueError as error:
        raise ValueError(f"{file}: {error}; one of your own needs --file FILE.py") from None


def require_result(result: Any) -> None:
    """It says how a run ended, with scores that can be."""
    require_fields("a result", result, {"status": str})
    require_one_of("status", result["status"], STATUSES)
    require_fields("a result", result, STATUSES[result["status"]])
    for score in result.get("test", []):
        require_fields("a test score", score, SCORE)
        for name in ("fine", "coarse"):
            if not 0 <= score[name] <= 1:
                raise ValueError(f"{name} of a test score cannot be {score[name]!r}")


def metrics_lines(folder: Path) -> list[str]:
    """Of the file in a folder, if there is one."""
    path = folder / METRICS_FILE
    return path.read_text("utf-8", errors="replace").splitlines() if path.exists() else []


def parse_row(line: str) -> dict[str, Any] | None:
    """A row of the metrics; nothing where the line is damaged."""
    try:
        row = json.loads(line)
        require_fields("a row", row, {"batch": int})
        return row
    except ValueError:
        return None


class Score(NamedTuple):
    """The evaluation of one checkpoint on one set of problems."""

    checkpoint: str
    source: int | str
    """A multiple of the training size, or a file."""
    evaluation: Evaluation

    def to_dict(self) -> dict[str, Any]:
        where = {"checkpoint": self.checkpoint, "source": self.source}
        return where | self.evaluation.to_dict()


def evaluate(
    run: Run | str | Path,
    multiples: int | Iterable[int] = (1, 2),
    data: str | Path | Iterable[str | Path] = (),
    *,
    checkpoints: str | int | Iterable[str | int] | None = None,
    examples: int | None = None,
    slots: int | None = None,
) -> list[Score]:
    """Accuracies on the test sets of the given multiples, and on files of the authors' format.

    Without a choice: of the best and the last checkpoint, or what there is of the two; 3,200
    problems of a multiple, and fewer where they are longer than twice those of training.
    """
    prefer_one_thread()
    run = run if isinstance(run, Run) else Run.open(run)

    def number_of(multiple: int) -> int:
        return usual_examples(run.task, multiple) if examples is None else examples

    sets: list[tuple[int | str, list[Batch]]] = [
        (multiple, evaluation_batches(run.task, "test", multiple, number_of(multiple)))
        for multiple in as_list(multiples)
    ]
    sets += [(str(path), read_batches(path, run.task)) for path in as_list(data)]
    if checkpoints is None:
        checkpoints = [name for name in CHECKPOINTS if run.weights_path(name).exists()] or ["best"]
    scores = []
    for name in map(str, as_list(checkpoints)):
        machine = run.machine(name, slots=slots)
        scores += [Score(name, source, evaluate_batches(machine, part)) for source, part in sets]
    return scores


def as_list(values: Any) -> list[Any]:
    """One value alone, a name above all, is a list of one."""
    return [values] if isinstance(values, str | Path | int) else list(values)


ZOO_FOLDER = Path(__file__).parents[1] / "zoo"


def zoo_names() -> list[str]:
    """The ready-trained machines that come with the package."""
    return sorted(ZOO + path.parent.name for path in ZOO_FOLDER.glob("*/config.json"))


def zoo_path(name: str) -> Path:
    """The directory of a ready-trained machine."""
    require_one_of("run", name, zoo_names())
    return ZOO_FOLDER / name.removeprefix(ZOO)


def git_hash() -> str | None:
    """The commit of the code, where it runs from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
