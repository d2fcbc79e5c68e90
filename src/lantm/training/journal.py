"""What a run in progress keeps in files: states to go on from, and the rows of its metrics."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lantm.training.checkpoints import load_tree, read_metadata, save_tree, write_atomically
from lantm.training.runs import METRICS_FILE, metrics_lines, parse_row
from lantm.training.updates import TrainingState

KEPT_CHECKPOINTS = 2


class Journal:
    """The files of a run, or of one of its starts."""

    def __init__(
        self, checkpoints: Path, rows: Path, digest: str, on_notice: Callable[[str], None]
    ):
        """Folders for both, and the digest of the config that the states are of."""
        self.folder, self.metrics = checkpoints, rows / METRICS_FILE
        self.digest, self.on_notice = digest, on_notice
        checkpoints.mkdir(parents=True, exist_ok=True)
        remove_leftovers(checkpoints)

    def checkpoints(self) -> list[Path]:
        """The oldest first, also where numbers outgrow their six digits."""
        return sorted(
            self.folder.glob("*.safetensors"), key=lambda path: (len(path.stem), path.stem)
        )

    def save(self, state: TrainingState, seconds: float) -> None:
        """A checkpoint to resume from, after so many seconds of training; the oldest ones go."""
        said = {"config": self.digest, "seconds": f"{seconds:.1f}"}
        save_tree(self.folder / f"{int(state.batch):06d}.safetensors", state, said)
        for old in self.checkpoints()[:-KEPT_CHECKPOINTS]:
            old.unlink()

    def restore(self, fresh: TrainingState) -> tuple[TrainingState, float]:
        """The newest checkpoint that is whole and of this config, and the seconds before it."""
        for path in reversed(self.checkpoints()):
            try:
                state = load_tree(path, fresh, {"config": self.digest})
                return state, float(read_metadata(path).get("seconds", 0))
            except ValueError as error:
                self.on_notice(f"stepping over a checkpoint: {error}")
                path.rename(path.with_suffix(".bad"))
        return fresh, 0.0

    def add(self, row: dict[str, Any]) -> None:
        """A row to the metrics."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def cut(self, batch: int, start: int | None) -> None:
        """Keep the rows up to a batch, and those of other starts; later ones will come again."""
        lines = metrics_lines(self.metrics.parent)
        bad = sum(parse_row(line) is None for line in lines[:-1])  # a crash may cut off the last
        if bad:
            told = f"leaving out what is damaged, lines of {len(lines)}: {bad}"
            self.on_notice(f"{self.metrics}: {told}")
        known = [row for row in map(parse_row, lines) if row is not None]
        rows = [row for row in known if row["batch"] <= batch or row.get("start") != start]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        write_atomically(self.metrics, text.encode())


def remove_leftovers(folder: Path) -> None:
    """Of a process that was killed."""
    for leftover in folder.glob("*.safetensors?*"):
        leftover.unlink()
