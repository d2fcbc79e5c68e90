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
- `ended`, `solved`, `start`, `starts`: only where training may end before its last batch, or had
  several starts: why it ended, at which batch it was solved, which start went on, what each scored
- `versions`: of lantm, jax and the code's commit
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from lantm.errors import require_fields, require_one_of
from lantm.tasks.streams import REGIMES
from lantm.training.checkpoints import write_atomically
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
    }
    return row | {name: result[name] for name in OPTIONAL if name in result}


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
