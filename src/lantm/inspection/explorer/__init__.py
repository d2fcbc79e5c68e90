"""A page for a web browser in which to step through what machines do with their memory.

One file with everything in it: it needs no server and no network.
"""

import base64
import gzip
import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from plotly.offline import get_plotlyjs

from lantm.errors import require_positive
from lantm.inspection.diagnostics import Diagnostics, Motion, diagnose, one_head
from lantm.inspection.picture import READ, WRITE, HeadKind, head_looks, trace_machine
from lantm.machines.seq2seq import MachineTrace, SequenceModel
from lantm.parts import HeadTrace, Trace
from lantm.tasks import Batch, Task
from lantm.training.runs import CHECKPOINTS, ZOO, ZOO_FOLDER, Run


def write_explorer(
    runs: Iterable[Run | str | Path],
    path: str | Path,
    *,
    examples: int = 3,
    multiple: int = 1,
    seed: int = 1,
    checkpoints: int = 20,
) -> Path:
    """Write the page about some runs, side by side, on problems of a multiple of the training size.

    Of the checkpoints a run has kept, up to `checkpoints` are shown, and the best one.
    """
    require_positive(examples=examples, multiple=multiple, checkpoints=checkpoints)
    if seed < 0:
        raise ValueError(f"seed must be a whole number from 0, got {seed}")
    opened = [run if isinstance(run, Run) else Run.open(run) for run in runs]
    models = []
    for run in opened:
        size = run.task.sizes(multiple)[-1]
        problems = run.task.sample(np.random.default_rng(seed), size, examples)
        models.append(describe_run(run, problems, checkpoints))
    page = {"colours": {"write": WRITE, "read": READ}, "models": models}
    path = Path(path)
    path.write_text(render(page), encoding="utf-8")
    return path


def render(page: dict[str, Any]) -> str:
    """The HTML. What runs, tasks and symbols are called is in it as base64 only."""
    return Template(asset("page.html")).substitute(
        style=asset("page.css"),
        panel=asset("panel.js"),
        script=asset("page.js"),
        plotly=pack(get_plotlyjs()),
        page=pack(json.dumps(page, separators=(",", ":"), allow_nan=False)),
    )


def asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")


def pack(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


# What the page is told. ---------------------------------------------------------------------------


def describe_run(run: Run, problems: Batch, checkpoints: int) -> dict[str, Any]:
    """A run's machines, one for each checkpoint, on the same problems."""
    names = checkpoint_names(run, checkpoints)
    machines = [run.machine(name) for name in names]
    model, space = run.config.model.model, run.config.model.space
    return {
        "name": ZOO + run.path.name if run.path.parent == ZOO_FOLDER else run.path.name,
        "task": run.task.name,
        "model": f"{model} in {space}" if space else model,
        "initial": machines[0].initial_memories,
        "examples": [
            {"input": symbols(run.task, problem), "answer": symbols(run.task, answer)}
            for problem, answer in zip(*problems, strict=True)
        ],
        "checkpoints": names,
        "traces": [describe_machine(machine, run.task, problems) for machine in machines],
    }


def checkpoint_names(run: Run, most: int) -> list[str]:
    """Kept batches, evenly chosen where there are many, and the best or last weights."""
    kept = run.kept
    if len(kept) > most:
        kept = [kept[i] for i in np.linspace(0, len(kept) - 1, most).round().astype(int)]
    final = [name for name in CHECKPOINTS if run.weights_path(name).exists()][:1]
    return kept + final or ["best"]


def describe_machine(machine: SequenceModel, task: Task, problems: Batch) -> list[dict[str, Any]]:
    """What a machine did on each problem."""
    traces = trace_machine(machine, jnp.asarray(problems.inputs), problems.answers.shape[1])
    described = []
    for i in range(len(problems.inputs)):
        trace = jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i], float), traces)
        answer = symbols(task, np.argmax(trace.logits, axis=-1))
        described.append({"answer": answer} | describe_trace(trace, machine))
    return described


def describe_trace(trace: MachineTrace, machine: SequenceModel) -> dict[str, Any]:
    """Memories, heads and read weights on one problem. Where memories have no keys, only the
    weights of their slots; where there are none of these either, the hidden state.
    """
    whole = jax.tree.map(lambda *phases: np.concatenate(phases), trace.encode, trace.decode)
    diagnostics, initial = diagnose(trace, machine.distances), machine.initial_memory
    if diagnostics is None or initial is None:
        return {"hidden": rounded(whole.hidden, 2), "slots": describe_slots(whole)}
    inputs, (steps, readers, _) = len(trace.encode.hidden), whole.read.key.shape
    strengths = np.concatenate([initial.strengths[0], *whole.strength[:inputs]])
    keys = [initial.keys[0], *whole.write.key[:inputs], *whole.read.key.swapaxes(0, 1)]
    chart = machine.chart(np.concatenate(keys))
    memories, written = len(strengths), whole.strength.shape[1]
    counts = np.minimum(memories + written * (np.arange(steps) - inputs), memories)
    places = chart.points[memories:].reshape(readers, steps, -1)
    writes, reads = describe_heads("write", whole.write), describe_heads("read", whole.read)
    for i, head in enumerate(reads):
        head["places"] = rounded(places[i], 4)
        head["weights"] = [rounded(whole.weights[t, i, :n], 3) for t, n in enumerate(counts)]
    names = writes[diagnostics.writer]["name"], reads[diagnostics.reader]["name"]
    return {
        "view": chart.view,
        "axes": chart.axes,
        "memories": rounded(chart.points[:memories], 4),
        "strengths": rounded(strengths, 3),
        "writes": writes,
        "reads": reads,
        "busiest": diagnostics.reader,
        "output_gate": rounded(whole.output_gate, 3),
        "diagnostics": describe_diagnostics(diagnostics, *names),
    }


def describe_slots(whole: Trace) -> list[dict[str, Any]] | None:
    """The weights of each read head; None where there is none."""
    if whole.weights is None:
        return None
    looks = head_looks("read", whole.weights.shape[1])
    return [
        {"name": look.name, "weights": rounded(whole.weights[:, i], 3)}
        for i, look in enumerate(looks)
    ]


def describe_heads(kind: HeadKind, heads: HeadTrace) -> list[dict[str, Any]]:
    """How each is shown, and what it did."""
    return [
        look._asdict() | describe_head(one_head(heads, i))
        for i, look in enumerate(head_looks(kind, heads.key.shape[1]))
    ]


def describe_head(head: HeadTrace) -> dict[str, Any]:
    return {
        "gate": rounded(head.gate, 3),
        "action": rounded(head.velocity, 3),
        "action_gate": rounded(head.action_gate, 3),
    }


def describe_diagnostics(found: Diagnostics, writer: str, reader: str) -> list[list[str]]:
    """What it is, the value, and what the value means; with the names of the heads."""
    return [
        ["memory", found.structure, "by the numbers that follow"],
        *describe_motion(writer, found.write),
        *describe_motion(reader, found.read),
        ["heading", f"{found.heading:+.2f}", "1: reads go the way of the writes; -1: against it"],
        ["collisions", f"{found.collisions:.0%}", "memories that lie on another one"],
        ["sharpness", f"{found.sharpness:.2f}", "largest read weight of an answer's step"],
    ]


def describe_motion(head: str, found: Motion) -> list[list[str]]:
    length = f"{found.length:.3f} ± {found.spread:.0%}"
    gate = "-" if found.random_access is None else f"{found.random_access:.1%}"
    return [
        [f"{head} step", length, "average length and relative spread"],
        [f"{head} direction", f"{found.direction:.2f}", "1: always the same way; 0: every way"],
        [f"{head} random access", gate, "average weight of the gate"],
    ]


def symbols(task: Task, tokens: np.ndarray) -> list[str]:
    return [task.vocabulary.show([token]) for token in tokens.tolist()]


def rounded(values: Any, digits: int) -> Any:
    """As nested lists, short in JSON; None stays None."""
    return None if values is None else np.round(np.asarray(values, float), digits).tolist()
