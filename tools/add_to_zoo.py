"""Put the best machine of a finished run into the package.

    python tools/add_to_zoo.py RUN [NAME]

The name is the task's unless given. Replaces the machine of that name.
"""

import json
import shutil
import sys
from pathlib import Path

from lantm.training.runs import ZOO_FOLDER, Run


def main(path: str, name: str | None = None) -> None:
    run = Run.open(path)
    result = run.result
    if result is None or result["status"] != "finished":
        raise SystemExit(f"{path} is not a finished run")
    target = ZOO_FOLDER / (name or run.config.task)
    shutil.rmtree(target, ignore_errors=True)
    (target / "weights").mkdir(parents=True)
    shutil.copy(Path(path) / "config.json", target)
    shutil.copy(run.weights_path("best"), target / "weights")
    result["test"] = [row for row in result["test"] if row["checkpoint"] == "best"]
    (target / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{target.name}: {run.config.command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
