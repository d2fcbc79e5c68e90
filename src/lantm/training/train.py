"""Training: from a config to a run with a trained and tested machine."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from lantm.errors import require_positive
from lantm.machines.models import build_machine
from lantm.processes import computing_threads, prefer_one_thread, require_memory
from lantm.tasks import TASKS
from lantm.tasks.streams import far_multiples, require_room, usual_examples
from lantm.training.checkpoints import named_arrays
from lantm.training.config import TrainConfig
from lantm.training.feed import open_stream
from lantm.training.runs import Run, Score, evaluate
from lantm.training.trainer import NonFiniteError, Progress, Trainer

COPIES = 4
"""Numbers for each parameter: itself, its average, its gradient and its moment."""
SIZES = ("hidden_size", "embedding_size", "memory_width", "key_size", "layers", "blocks")
"""The settings of a model that decide how much memory it needs."""
MANY_THREADS = "computing with {} threads: the last digits may differ from those of one thread"


def train(
    config: TrainConfig,
    root: str | Path = "runs",
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_notice: Callable[[str], None] = print,
    jobs: int = 1,
) -> Run:
    """The run of a config below `root`, trained to the end; see `finish`."""
    prefer_one_thread()
    require_trainable(config)
    run = Run.create(config, root)
    return finish(run, on_progress=on_progress, on_notice=on_notice, jobs=jobs)


def finish(
    run: Run,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_notice: Callable[[str], None] = print,
    jobs: int = 1,
) -> Run:
    """Train to the end, from the last checkpoint if there is one, and test the outcome.

    A finished run is returned as it is; one that another process trains is refused. It computes
    with one thread, as the program does. Where jax was in use before, or NPROC asks for more
    threads, the last digits can differ; the result then says how many threads there were.

    Of several starts as many as `jobs` are trained at once, in processes that are started for
    it; what comes of the run is the same. They know the files that `load_file` has loaded, and
    nothing else that was added to the registries.
    """
    require_positive(jobs=jobs)
    if not run.is_finished:
        prefer_one_thread()
        with run.held():
            run.write_json("result.json", train_and_test(run, on_progress, on_notice, jobs))
    return run


def train_and_test(
    run: Run,
    on_progress: Callable[[Progress], None],
    on_notice: Callable[[str], None],
    jobs: int = 1,
) -> dict[str, Any]:
    """The result of a run; an error of numbers is recorded before it is raised."""
    trainer = Trainer(run, on_notice)
    threads = computing_threads() or 1
    if threads > 1:
        on_notice(MANY_THREADS.format(threads))
    if threads > 1 or jax.default_backend() != "cpu":
        jobs = 1  # others would compute with one thread, or would want the same device
    try:
        trainer.choose_start(on_progress, jobs)
        trainer.run_to(run.config.batches, on_progress)
    except NonFiniteError as error:
        run.write_json("result.json", {"status": "failed", "error": str(error)})
        raise
    seconds = round(trainer.seconds, 1)
    scores = [score.to_dict() for score in final_scores(run)]
    for row in scores:
        del row["by_length"]
    many = {"threads": threads} if threads > 1 else {}
    return {"status": "finished", "seconds": seconds, **many, **trainer.ending, "test": scores}


def final_scores(run: Run) -> list[Score]:
    """The scores at the end, also far beyond the training size if that is asked for."""
    most = run.config.test_examples
    scores = evaluate(run, examples=most)
    for multiple in far_multiples(run.task) if run.config.test_far else ():
        scores += evaluate(run, multiple, examples=usual_examples(run.task, multiple, most))
    return scores


def require_trainable(config: TrainConfig) -> None:
    """The data can be read, and the machine and its problems fit into memory."""
    open_stream(config)
    task = TASKS[config.task]
    require_room(task, 2, max(config.validation_examples, config.test_examples))
    key = jax.eval_shape(lambda: jax.random.key(0))
    machine = eqx.filter_eval_shape(build_machine, config.model, task.vocabulary, key=key)
    numbers = sum(math.prod(leaf.shape) for leaf in named_arrays(machine).values())
    sizes = [name for name in SIZES if getattr(config.model, name, None)]
    largest = max(sizes, key=lambda name: getattr(config.model, name))
    what = f"{largest} {getattr(config.model, largest)}"
    require_memory(what, COPIES * numbers * jnp.zeros(0).dtype.itemsize)
