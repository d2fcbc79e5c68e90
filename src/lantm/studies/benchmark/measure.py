"""One implementation on one case, in a process of its own that measures on request.

It is started by `compare`, with all threads on one core. Every line it is sent is a number of
training steps; it makes them and answers with a `Sample` in a line of JSON.
"""

import ctypes
import gc
import json
import resource
import runpy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from lantm.machines.cell import unroll
from lantm.machines.seq2seq import Machine, Tokens, answer_loss
from lantm.studies.benchmark.cases import Case
from lantm.tasks.streams import pad
from lantm.training.config import configure
from lantm.training.optimiser import rmsprop
from lantm.training.train import train
from lantm.training.trainer import Progress
from lantm.unrolling.scan import unroll_scan

RATE, CLIP = 0.01, 1.0

Step: TypeAlias = Callable[[], float]
"""Makes one training step, waits for it and returns its loss."""


class Sample(NamedTuple):
    """What one request found."""

    milliseconds: float
    """The median training step."""
    cpu_milliseconds: float
    """Of the processor for a training step, on average."""
    peak_megabytes: float
    """How far resident memory rose above its level between steps, so far."""
    data_milliseconds: float
    """To draw and pad a batch."""
    gigaflops: float
    """What a large matrix product reaches on this core, in 10^9 operations a second."""


def scan_or_own(unroll: Callable[..., Any], case: Case, torch_file: str) -> Step:
    """The library's training step, or the same with the plain scan in its place."""
    parameters, rest = eqx.partition(case.machine(), eqx.is_array)
    optimiser = rmsprop(RATE, clip=CLIP)

    def loss_of(parameters: PyTree, inputs: Tokens, answers: Tokens) -> Float[Array, ""]:
        machine: Machine = eqx.combine(parameters, rest)
        state = machine.init_state(*inputs.shape)
        state, _ = unroll(machine.cell, state, machine.embed(inputs))
        placeholders = machine.placeholders(state, answers.shape[1])
        _, logits = unroll(machine.cell, state, placeholders, write=False)
        return answer_loss(logits, answers)

    @jax.jit
    def update(parameters: PyTree, moments: PyTree, *batch: Tokens) -> tuple[PyTree, PyTree, Array]:
        loss, grads = jax.value_and_grad(loss_of)(parameters, *batch)
        updates, moments = optimiser.update(grads, moments)
        return optax.apply_updates(parameters, updates), moments, loss

    batch = [jnp.asarray(part) for part in case.batch()]
    state = parameters, optimiser.init(parameters)

    def step() -> float:
        nonlocal state
        *state, loss = update(*state, *batch)
        return float(loss)

    return step


def torch_step(case: Case, torch_file: str) -> Step:
    """The training step of the PyTorch yardstick."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - an optional extra

    inputs, answers = (torch.from_numpy(part).long() for part in case.batch())
    make_step = runpy.run_path(torch_file)["make_step"]
    size = case.problem.vocabulary.size
    return make_step(case.model, size, inputs, answers, rate=RATE, clip=CLIP)


IMPLEMENTATIONS: dict[str, Callable[[Case, str], Step]] = {
    "lantm": partial(scan_or_own, unroll),
    "scan": partial(scan_or_own, unroll_scan),
    "torch": torch_step,
}
"""The library, its reference, and the yardstick; by the names that results have."""


def serve(implementation: str, torch_file: str, case: Case) -> None:
    """Answer requests until there are none."""
    step = IMPLEMENTATIONS[implementation](case, torch_file)
    step()  # compiles, loads libraries
    level = settle_memory()
    step()
    peak = (peak_bytes() - level) / 1e6
    for line in sys.stdin:
        wall, cpu = zip(*(timed(step) for _ in range(int(line))), strict=True)
        data, _ = zip(*(timed(partial(draw_batch, case, i)) for i in range(5)), strict=True)
        found = statistics.median(wall), statistics.mean(cpu), peak, statistics.median(data)
        print(json.dumps(Sample(*found, product_rate())._asdict()), flush=True)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds on the wall and on the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def draw_batch(case: Case, seed: int) -> None:
    """What a training step needs of data, as the trainer gets it."""
    batch = case.batch(seed)
    pad([batch], *(part.shape[1] for part in batch))


def product_rate(size: int = 512) -> float:
    """10^9 operations a second, at best, of a product of square matrices."""
    matrix = np.ones((size, size), np.float32)
    return 2 * size**3 / 1e6 / min(timed(lambda: matrix @ matrix)[0] for _ in range(5))


def settle_memory() -> int:
    """Give back what is free, forget earlier peaks; the bytes that are resident now."""
    gc.collect()
    if sys.platform != "linux":
        return peak_bytes()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that was resident at once; on Linux since `settle_memory`."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def first_step() -> None:
    """Begin to train as `lantm train copy` does; say when the first step is finished, and stop."""

    def stop(progress: Progress) -> None:
        print(progress.batch, flush=True)
        raise SystemExit

    with tempfile.TemporaryDirectory() as folder:
        train(configure(task="copy"), folder, on_progress=stop)


if __name__ == "__main__":
    implementation, torch_file, model, task, size = sys.argv[1:]
    serve(implementation, torch_file, Case(model, task, int(size)))
