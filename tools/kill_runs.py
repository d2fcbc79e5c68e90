"""Kill a run at random moments and compare what comes of it with a run left alone.

    python tools/kill_runs.py [KILLS [SEED]]

For releases: `tests/test_training.py` kills at five chosen moments, this at twenty random ones.
Exits with 1 if the run that was killed is not, bit for bit, the other.
"""

import multiprocessing
import random
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import lantm
from lantm.processes import choose_environment
from lantm.training.checkpoints import read_arrays
from lantm.training.trainer import Progress

BATCHES_BETWEEN = 6
UNCOMPARED = ("seconds",)
"""Differ from run to run."""


def train(config: lantm.TrainConfig, root: Path, telling: Connection) -> None:
    """Tell every batch, then wait a little: there is time to be killed."""

    def tell(progress: Progress) -> None:
        telling.send(progress.batch)
        time.sleep(0.003)

    lantm.train(config, root, on_progress=tell)


def start(config: lantm.TrainConfig, root: Path) -> tuple[multiprocessing.Process, Connection]:
    """A process that trains, and the pipe that tells its batches."""
    told, telling = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=train, args=(config, root, telling))
    process.start()
    telling.close()
    return process, told


def kill_often(config: lantm.TrainConfig, root: Path, kills: int, rng: random.Random) -> None:
    for kill in range(kills):
        process, told = start(config, root)
        until = BATCHES_BETWEEN * kill + rng.uniform(1, BATCHES_BETWEEN)
        while (batch := told.recv()) < until:
            pass
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            raise SystemExit(f"kill_runs: a run ended by itself with {process.exitcode}")
        print(f"killed after batch {batch}", flush=True)


def contents(run: lantm.Run) -> dict[str, object]:
    """Of every file of a run, what may not depend on what happened on the way."""
    found: dict[str, object] = {}
    for path in sorted(run.path.rglob("*")):
        name = str(path.relative_to(run.path))
        found[name] = path.read_bytes() if path.is_file() else None
        if path.suffix == ".safetensors":
            arrays, said = read_arrays(path)
            tensors = {key: (str(a.dtype), a.shape, a.tobytes()) for key, a in arrays.items()}
            found[name] = tensors, without_times(said)
        elif name == "result.json":
            found[name] = without_times(run.result or {})
    return found


def without_times(values: dict) -> dict:
    return {name: value for name, value in values.items() if name not in UNCOMPARED}


def main(kills: int = 20, seed: int = 1) -> int:
    multiprocessing.set_start_method("spawn")
    config = lantm.configure(
        "plain",
        task="copy",
        hidden_size=5,
        memory_width=3,
        embedding_size=4,
        batches=BATCHES_BETWEEN * (kills + 1),
        validate_every=7,
        validate_from=7,
        validation_examples=32,
        test_examples=32,
    )
    with tempfile.TemporaryDirectory() as folder:
        roots = Path(folder) / "killed", Path(folder) / "whole"
        kill_often(config, roots[0], kills, random.Random(seed))  # noqa: S311 - no secret
        for root in roots:
            process, _ = start(config, root)
            process.join()
        killed, whole = (contents(lantm.Run.open(root / config.name)) for root in roots)
    different = sorted(n for n in {*killed, *whole} if killed.get(n) != whole.get(n))
    print(f"differ: {', '.join(different)}" if different else f"the same after {kills} kills")
    return int(bool(different))


if __name__ == "__main__":
    choose_environment()
    sys.exit(main(*map(int, sys.argv[1:])))
