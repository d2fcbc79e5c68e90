"""Results as data: one line of JSON for every run that has ended.

A row has the keys

- `digest`: of the config, and the last part of the run directory's name
- `grid`: the sweep that trained it, or null
- `config`: all settings by name (task, model, regime, seed, lr, ...)
- `command`: trains it again
- `status`: `finished`, or `failed` with an `error`
- `seconds`: of training
- `test`: a list of `{checkpoint, source, examples, fine, coarse}`, on a set that selected nothing
- `threads`: only where there were several, whose number changes the last digits
- `parameters`: numbers that were learned
- `trained`: batches; `learned`: the first at which 95 % of the last 100 batches' training problems,
  of all sizes, were right, or null; `validation`: the best `{fine, coarse}` at twice the training
  size. Only where the metrics of the run are there
- `lengths`: what `lantm eval --lengths --save` has kept, only where there is any
- `ended`, `solved`, `start`, `starts`: only where training may end before its last batch, or had
  several starts: why it ended, at which batch it was solved, which start went on, what each scored
- `versions`: of lantm, jax and the code's commit
"""

import dataclasses
import json
import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import equinox as eqx
import jax
from filelock import FileLock

from lantm.errors import require_fields, require_one_of
from lantm.machines.models import ModelConfig, build_machine
from lantm.tasks import TASKS
from lantm.tasks.streams import REGIMES
from lantm.training.checkpoints import named_arrays, write_atomically
from lantm.training.lengths import parse_lengths, saved_lengths
from lantm.training.runs import Run, require_result

Row: TypeAlias = dict[str, Any]
ROW = {
    "digest": str,
    "grid": str | None,
    "config": dict,
    "command": str,
    "status": str,
    "seconds": float | int | None,
    "test": list,
    "versions": dict,
}
OPTIONAL = ("error", "threads", "ended", "solved", "start", "starts")
CONFIG = {"task": str, "model": str, "regime": str, "seed": int, "batches": int}
"""The types of what every row has, and of what its config has at least."""

LEARNED = 0.95
"""The share of right answers from which the training sizes are learned."""
GRID_FILE = "grid.json"
"""In a run directory: the grid that its sweep trained."""


def result_row(run: Run) -> Row:
    """The row of a run that has ended."""
    result = run.result or {}
    said = json.loads((run.path / "config.json").read_bytes())
    grid = run.path / GRID_FILE
    row = {
        "digest": run.digest,
        "grid": json.loads(grid.read_bytes()) if grid.exists() else None,
        "config": run.config.flat(),
        "command": run.config.command,
        "status": result["status"],
        "seconds": result.get("seconds"),
        "test": result.get("test", []),
        "versions": said["versions"],
        "parameters": count_parameters(run.config.model, run.config.task),
    }
    row |= {name: result[name] for name in OPTIONAL if name in result}
    lengths = [dataclasses.asdict(score) for score in saved_lengths(run)]
    return row | course(run) | ({"lengths": lengths} if lengths else {})


@cache
def count_parameters(model: ModelConfig, task: str) -> int:
    """Numbers that training changes."""
    shapes = eqx.filter_eval_shape(
        build_machine, model, TASKS[task].vocabulary, key=jax.random.key(0)
    )
    return sum(math.prod(leaf.shape) for leaf in named_arrays(shapes).values())


def course(run: Run) -> Row:
    """How the training of a run went, as far as its metrics say."""
    rows = list(run.metrics())
    if not rows:
        return {}
    grown = run.config.growth_batches
    learned = (
        row["batch"]
        for row in rows
        if row.get("coarse", 0) >= LEARNED and row["batch"] >= grown and row.get("share", 1) >= 1
    )
    found = [(row["validation_coarse"], row["validation_fine"]) for row in rows if is_valid(row)]
    coarse, fine = max(found, default=(0.0, 0.0))
    validation = {"fine": fine, "coarse": coarse}
    return {
        "trained": rows[-1]["batch"],
        "learned": next(learned, None),
        "validation": validation,
    }


def is_valid(row: Row) -> bool:
    """Whether a row of the metrics has a validation."""
    return "validation_coarse" in row and "validation_fine" in row


def collect(folder: str | Path) -> list[Row]:
    """The rows of all runs in a folder that have ended."""
    found = sorted(path.parent for path in Path(folder).glob("*/result.json"))
    return merge(result_row(Run.open(path)) for path in found)


def merge(rows: Iterable[Row]) -> list[Row]:
    """One row a digest, the last one of each, in an order that does not depend on time."""
    unique = {row["digest"]: row for row in rows}
    return sorted(unique.values(), key=order)


def order(row: Row) -> tuple[Any, ...]:
    config = row["config"]
    return *(config[name] for name in ("task", "model", "regime", "seed")), row["digest"]


def read_results(path: str | Path, *, missing_ok: bool = False) -> list[Row]:
    """The rows of a file; a ValueError names the line that is none."""
    if missing_ok and not Path(path).exists():
        return []
    rows = []
    for number, line in enumerate(Path(path).read_bytes().splitlines(), start=1):
        try:
            rows.append(checked_row(json.loads(line)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is no result: {error}") from None
    return rows


def checked_row(row: Any) -> Row:
    """What a line of a file says, if it is a row."""
    require_fields("a row", row, ROW)
    require_fields("config", row["config"], CONFIG)
    require_one_of("regime", row["config"]["regime"], REGIMES)
    require_result(row)
    try:
        parse_lengths(row.get("lengths", []))
    except TypeError as error:
        raise ValueError(f"lengths of a row cannot be: {error}") from None
    return row


def add_results(path: str | Path, rows: Iterable[Row]) -> list[Row]:
    """Merge rows into a file, made if need be; returns all. Several processes may do so at once."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(path.name + ".lock")):
        merged = merge([*read_results(path, missing_ok=True), *rows])
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in merged)
        write_atomically(path, text.encode())
    return merged
