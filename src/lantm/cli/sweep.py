"""lantm sweep"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lantm.cli.common import Add, accuracies, make_console, say, show_table
from lantm.interrupts import Stopped
from lantm.machines.models import MODELS
from lantm.processes import available_cores
from lantm.studies.entries import EMPTY, Place, Result, parse
from lantm.studies.results import Row, add_results, collect, merge, read_results, result_row
from lantm.studies.sweep.engines import Engine, make_engine, require_engine
from lantm.studies.sweep.grids import GRIDS, LIE_MODELS, find_grid, parse_settings
from lantm.studies.sweep.schedule import Rates, Sweep, last_row
from lantm.training.config import TrainConfig
from lantm.training.evaluation import percent
from lantm.training.runs import Run, zoo_names
from lantm.training.train import require_trainable

SHARES = ("coarse", "validation_coarse")


def add(command: Add) -> None:
    sweep = command("sweep", run_sweep, "train all runs of a grid, on all cores or on a cluster")
    sweep.add_argument("grid", nargs="?", help=f"{', '.join(GRIDS)}, or a file: FILE.toml")
    sweep.add_argument("--tasks", nargs="+", help="only these [those of the grid]")
    sweep.add_argument("--models", nargs="+", help="likewise")
    sweep.add_argument("--regime", nargs="+", metavar="REGIME", help="likewise: small, large")
    sweep.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="likewise [1 2 3]")
    sweep.add_argument(
        "--action-interpolation",
        action=argparse.BooleanOptionalAction,
        help="for every run; by default of Lie-access models only",
    )
    sweep.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="a setting for every run"
    )
    sweep.add_argument("--name", help="what results call the grid [its own name]")
    sweep.add_argument("--out", metavar="DIR", default="runs", help="where runs are kept [runs]")
    sweep.add_argument("--results", metavar="FILE", help="results as JSON [DIR/results.jsonl]")
    sweep.add_argument("--dry-run", action="store_true", help="only say what there is to do")
    sweep.add_argument("--retry", action="store_true", help="train failed runs again")
    sweep.add_argument(
        "--collect", action="store_true", help="only gather the results of all runs in DIR"
    )
    sweep.add_argument("--engine", default="local", help="local or ray [local]")
    sweep.add_argument("--address", help="of a Ray cluster [a new one on this machine]")
    sweep.add_argument("--workers", type=int, help="runs at a time [one for each core]")


def run_sweep(found: argparse.Namespace) -> int:
    console = make_console()
    results = Path(found.results or Path(found.out) / "results.jsonl")
    if found.collect:
        if not Path(found.out).is_dir():
            raise ValueError(f"--collect needs a folder of runs, got {found.out}")
        rows = add_results(results, collect(found.out))
        say(console, f"{len(rows)} results in {results}")
        return 0
    if found.grid is None:
        raise ValueError(f"grid must be given: {', '.join(GRIDS)}, or a file: FILE.toml")
    require_engine(found.engine, found.workers, found.address)
    sweep = Sweep(
        choose(found, read_results(results, missing_ok=True)),
        found.out,
        grid=found.name or Path(found.grid).stem,
        results=results,
        retry=found.retry,
    )
    total = len(sweep.waiting) + len(sweep.rows)
    say(console, f"{total} runs of the grid {sweep.grid}; {standing(sweep)}")
    show_found(console, sweep)
    if found.dry_run:
        say(console, expectation(sweep, found.workers or available_cores()))
        return 0
    engine = make_engine(found.engine, found.workers, found.file, found.address)
    say(console, expectation(sweep, engine.slots))
    try:
        with overview(sweep, engine, console) as (on_row, on_poll):
            sweep.train(engine, on_row=on_row, on_poll=on_poll)
    except Stopped as stopped:
        say(console, f"stopped and saved ({standing(sweep)}); the same command goes on")
        return stopped.exit_code
    show_found(console, sweep)
    say(console, f"{standing(sweep)}; for tables: lantm report {results}")
    return 0


def choose(found: argparse.Namespace, rows: list[Row]) -> list[TrainConfig]:
    """The configs that the options ask for; `rows` are the results so far."""
    overrides = parse_settings(found.set)
    asked: dict[str, Any] = {
        "tasks": found.tasks,
        "models": found.models,
        "regimes": found.regime,
        "seeds": found.seeds,
    }
    if found.action_interpolation is not None:
        overrides["action_interpolation"] = found.action_interpolation
    if found.action_interpolation and found.grid in GRIDS:
        asked["models"] = found.models or LIE_MODELS
    given = {name: values for name, values in asked.items() if values is not None}
    configs = find_grid(found.grid)._replace(**given).configs(overrides, rows)
    for config in {(c.data and c.task, c.data, c.model): c for c in configs}.values():
        require_trainable(config)  # what cannot be is refused before there is a run
    return configs


# ---- what there is to tell


def known_rates(sweep: Sweep) -> Rates:
    """From the results so far, else from the ready-trained machines."""
    rates = Rates(merge([*read_results(sweep.results, missing_ok=True), *sweep.rows]))
    return rates if rates.seconds else Rates(result_row(Run.open(name)) for name in zoo_names())


def expectation(sweep: Sweep, slots: int) -> str:
    """How long the rest will take."""
    if not sweep.waiting:
        return "nothing is left to train"
    rates = known_rates(sweep)
    alone, unknown = duration(rates.left(sweep)), ", ".join(rates.unmeasured(sweep))
    doubt = f"; {unknown} taken for another model, having never been timed" if unknown else ""
    left = duration(rates.left(sweep, slots))
    return f"{left} left with {slots} at a time ({alone} of one core{doubt})"


def standing(sweep: Sweep) -> str:
    """How far it is.

    >>> standing(Sweep([TrainConfig()], "runs"))
    '0 finished, 0 failed, 0 running, 1 waiting'
    """
    ended = ", ".join(f"{sweep.count(status)} {status}" for status in ("finished", "failed"))
    return f"{ended}, {len(sweep.running)} running, {len(sweep.waiting)} waiting"


def duration(seconds: float | None) -> str:
    """Roughly, in words.

    >>> duration(59.0), duration(7300.0), duration(None)
    ('about 1 min', 'about 2 h 2 min', 'for an unknown time')
    """
    if seconds is None:
        return "for an unknown time"
    hours, minutes = divmod(max(round(seconds / 60), 1), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {minutes} min"


def outcome(row: Row) -> str:
    """How a run ended: its accuracy at twice the training size, or its error."""
    if row["status"] == "failed":
        return f"failed: {row['error']}"
    twice = next(part for part in row["test"] if part["source"] == 2)
    fine, coarse = map(percent, accuracies(twice))
    return f"2x fine {fine} coarse {coarse}, {row['seconds']:.0f} s"


def label(row: Row) -> str:
    config = row["config"]
    mixed = " interpolated" if config.get("action_interpolation") else ""
    return f"{config['task']} {config['model']} {config['regime']}{mixed} seed {config['seed']}"


def show_found(console: Console, sweep: Sweep) -> None:
    if sweep.rows:
        show_table(console, found_so_far(sweep))


def found_so_far(sweep: Sweep) -> Table:
    """The best accuracy of every task and model, and how many runs solved it."""
    results = parse(sweep.rows)
    models = [name for name in MODELS if any(r.cell.model == name for r in results)]
    table = Table("found so far", *models, caption="percent right at 2x (coarse), runs with 90 %")
    for task, regime, mixed in sorted({result.cell.row for result in results}):
        cells = [
            [result for result in results if result.cell == Place(task, model, regime, mixed)]
            for model in models
        ]
        label = f"{task} {regime}{' interpolated' if mixed else ''}"
        table.add_row(label, *(finding(runs) if runs else EMPTY for runs in cells))
    return table


def finding(runs: list[Result]) -> str:
    """The best of some runs in whole percents, rounded down, and how many succeeded."""
    scores = [result.twice.coarse for result in runs if result.twice]
    best = f"{math.floor(100 * max(scores))}" if scores else "failed"
    return f"{best}  {sum(result.solved for result in runs)}/{len(runs)}"


@contextmanager
def overview(
    sweep: Sweep, engine: Engine, console: Console
) -> Iterator[tuple[Callable[[Row], None], Callable[[], None]]]:
    """A live picture on a terminal; everywhere a line for each run that ends."""
    rates = known_rates(sweep)

    def on_row(row: Row) -> None:
        nonlocal rates
        rates = known_rates(sweep)
        left = duration(rates.left(sweep, engine.slots))
        told = f"{standing(sweep)}, {left} left"
        say(console, f"{label(row)} {row['digest']}: {outcome(row)} ({told})")

    if not console.is_terminal:
        yield on_row, lambda: None
        return
    with Live(console=console, auto_refresh=False) as live:
        shown = [0.0]

        def on_poll() -> None:
            if time.monotonic() > shown[0] + 1:
                live.update(picture(sweep, engine, rates), refresh=True)
                shown[0] = time.monotonic()

        yield on_row, on_poll


def picture(sweep: Sweep, engine: Engine, rates: Rates) -> Group:
    """The runs in progress, and how far everything is."""
    table = Table("running", "batch", "loss", "right", "2x")
    for run in sweep.running.values():
        row = last_row(run)
        shares = (f"{row[name]:.0%}" if name in row else "-" for name in SHARES)
        loss = f"{row['loss']:.4f}" if "loss" in row else "-"
        table.add_row(run.path.name, f"{row['batch']}/{run.config.batches}", loss, *shares)
    left = duration(rates.left(sweep, engine.slots))
    found = [found_so_far(sweep)] if sweep.rows else []
    return Group(*found, table, Text(f"{standing(sweep)}, {left} left"))
