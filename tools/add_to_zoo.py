"""Put one of several finished runs of a task into the package.

    python tools/add_to_zoo.py RUN [RUN ...]

Chosen by validation: of the runs that are within a hundredth of the best one at twice the training
size the one that is best at ten times, or as far as the task has problems; no test score counts.
Replaces the machine of the task's name, and adds the test scores at 4 and 10 times the size, if the
run has none.
"""

import json
import shutil
import sys

from lantm.studies.results import course
from lantm.tasks.streams import evaluation_batches, far_multiples
from lantm.training.evaluation import evaluate_batches
from lantm.training.runs import ZOO_FOLDER, Run, evaluate

CLOSE = 0.01
EXAMPLES = 160


def main(*paths: str) -> None:
    runs = [Run.open(path) for path in paths]
    (task,) = {run.config.task for run in runs}
    twice = {run: course(run)["validation"]["coarse"] for run in runs if is_finished(run)}
    close = sorted(
        (run for run, share in twice.items() if share >= max(twice.values()) - CLOSE),
        key=lambda run: run.config.seed,
    )
    best = max(close, key=farthest)
    seeds = ", ".join(str(run.config.seed) for run in runs)
    chosen = f"by validation at twice the training size, then far beyond, among seeds {seeds}"
    add(best, task, chosen)


def is_finished(run: Run) -> bool:
    return (run.result or {}).get("status") == "finished"


def farthest(run: Run) -> tuple[float, float]:
    """Coarse and fine accuracy on the longest validation problems that a task has."""
    multiple = max(far_multiples(run.task), default=2)
    found = evaluate_batches(
        run.machine("best"), evaluation_batches(run.task, "validation", multiple, EXAMPLES)
    )
    print(f"{run.path.name}: {found.coarse:.2%} of the validation problems at {multiple}x")
    return found.coarse, found.fine


def add(run: Run, name: str, chosen: str) -> None:
    target = ZOO_FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    (target / "weights").mkdir(parents=True)
    shutil.copy(run.path / "config.json", target)
    shutil.copy(run.weights_path("best"), target / "weights")
    result = dict(run.result or {}) | {"chosen": chosen}
    result["test"] = [row for row in result["test"] if row["checkpoint"] == "best"]
    known = {row["source"] for row in result["test"]}
    left = [multiple for multiple in far_multiples(run.task) if multiple not in known]
    for score in evaluate(run, left, checkpoints="best") if left else []:
        row = score.to_dict()
        del row["by_length"]
        result["test"].append(row)
    (target / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{name}: {run.config.command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
