"""Check the library against evaluations of the authors' own program.

    python tests/oracle.py FIXTURE.json.gz ...

One line per fixture with its largest relative error, in double precision, over predictions, keys,
weights, readings, losses, scores, gradients and three RMSProp updates. Exits with 1 if any is above
the bound.

Everything is computed by the library's public parts from the fixture's parameters: `assemble` puts
them into a machine. `trace` runs it by the reference, which tells what every step did; `update`
by the fast unroll, with its gradients. What nobody would want of the program lives here alone: see
`with_program_constants` and `initial_state`.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

import lantm
from lantm.machines.memory_cell import MemoryState
from lantm.memory import InitialMemory
from lantm.parts import Gate, RandomAccess, TapeKeys, Trace
from lantm.spaces.sphere import normalise
from lantm.training.checkpoints import named_arrays
from lantm.unrolling.scan import State

BOUND = 1e-8
EPSILON = 1e-10
"""The program's guard in normalisations."""
ENDS = (("read", "[1]"), ("write", ""))
"""The heads, and how the program numbers them."""

Params = dict[str, Array]
Biases = dict[str, Any]
"""The program's fixed preferences by its names for them: floats, or arrays."""


@dataclass(frozen=True)
class Layout:
    """What a fixture is but for its numbers: one compiled program serves all of one layout."""

    text: str

    @cached_property
    def data(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def opt(self) -> dict[str, Any]:
        return self.data["opt"]

    @property
    def encoder_steps(self) -> int:
        return self.data["encoder_steps"]

    @property
    def is_lie(self) -> bool:
        return self.opt["model"] in ("lantm", "slantm")

    @property
    def is_sphere(self) -> bool:
        return self.opt["model"] == "slantm"

    @property
    def mixes_actions(self) -> bool:
        """On the sphere also without interpolation, where it normalises every action once more."""
        return self.opt["act_interp"] or self.is_sphere

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return lantm.rmsprop(**self.data["rmsprop"])

    def rows(self, layer: str, *names: str) -> np.ndarray:
        """The rows of the named slices of a layer (`controller_output` or `init_state`)."""
        slices = {
            re.sub(r"^(memory\.)?\d+\.", "", s["name"]): s for s in self.data["splits"][layer]
        }
        pieces = [slices[name] for name in names]
        return np.concatenate([p["offset0"] + np.arange(p["size"]) for p in pieces])


@dataclass(frozen=True)
class Fixture:
    """One evaluation of the program, as described beside the fixtures."""

    path: Path
    data: dict[str, Any]

    @classmethod
    def read(cls, path: str | Path) -> "Fixture":
        with gzip.open(path) as file:
            return cls(Path(path), json.load(file))

    @cached_property
    def layout(self) -> Layout:
        theirs = self.data["rmsprop_traj"]
        parts = {
            "opt": {n: value for n, value in self.data["opt"].items() if "bias" not in n},
            "splits": self.data["splits"],
            "encoder_steps": sum(not step["answerphase"] for step in self.data["steps"]),
            "rmsprop": {
                "learning_rate": theirs["learningRate"],
                "decay": theirs["alpha"],
                "clip": float(theirs["max_grad_norm"]),
            },
        }
        return Layout(json.dumps(parts, sort_keys=True))

    @property
    def biases(self) -> Biases:
        return {n: float(value) for n, value in self.data["opt"].items() if "bias" in n}

    @property
    def params(self) -> Params:
        return {name: jnp.asarray(p["values"], float) for name, p in self.data["params"].items()}

    @property
    def tokens(self) -> Array:
        """[batch, time], counted from 0."""
        return jnp.asarray(np.asarray(self.data["tokens"]).T - 1)

    def steps(self, name: str) -> np.ndarray:
        """What every step says of `name`: [batch, time, ...]."""
        return np.swapaxes([step[name] for step in self.data["steps"]], 0, 1)

    def written(self, name: str) -> np.ndarray:
        return np.swapaxes([step["written"][name] for step in self.data["steps"]], 0, 1)


# ---- the program's parameters in a machine of ours


def model_config(layout: Layout, biases: Biases) -> lantm.ModelConfig:
    opt = layout.opt
    sizes = {
        "hidden_size": opt["rnn_size"],
        "layers": opt["num_lstm_layers"],
        "embedding_size": opt["embedding_size"],
        "memory_width": opt["mem_width"],
    }
    if opt["model"] == "lstm":
        return lantm.ModelConfig("lstm", **sizes)
    if opt["model"] == "ram":
        name = "ram_tape" if opt["tape"] else "ram"
        sharpen = opt["wt_sharpening"]
        return lantm.ModelConfig(name, **sizes, key_size=opt["key_dim"], sharpen=sharpen)
    space = "bounded_sphere" if opt["bound_act"] else "sphere"
    if not layout.is_sphere:
        space = f"plane{opt['key_dim']} bounded {opt['bound_act']}"
        lantm.SPACES[space] = lantm.Plane(opt["key_dim"], bounded=opt["bound_act"])
    return lantm.ModelConfig(
        opt["model"] + {"InvNormalize": "", "SoftMax": "_s"}[opt["weight_method"]],
        **sizes,
        space=space,
        action_interpolation=layout.mixes_actions,
        read_gate_bias=biases["bias_gate_read"],
        write_gate_bias=biases["bias_gate_write"],
        read_action_gate_bias=biases["bias_gate_act_read"],
        write_action_gate_bias=biases["bias_gate_act_write"],
    )


def interface_rows(layout: Layout) -> np.ndarray:
    """The program's controller outputs in the order of our interface."""
    opt = layout.opt
    names = ["pred"]
    if opt["model"] == "ram":
        names += ["write_vec", "write_strength_t", "key_read[1]", "key_write"]
        names += ["gate_link[1]"] * opt["tape"] + ["sharpen_coef"] * opt["wt_sharpening"]
    if layout.is_lie:
        names += ["write_vec", "write_strength_t", "read_val2pred_coef[1]"]
        for end, one in ENDS:
            key = f"key_pre{end}_t{one}"
            turn = [f"rot_axis_pre{end}{one}", f"rot_ang_pre{end}{one}"]
            action = turn if layout.is_sphere else [f"act_{end}{one}"]
            names += [key, f"gate_{end}{one}", *action]
            names += [f"gate_act_{end}{one}"] * layout.mixes_actions
        names += ["temperature[1]"] * (opt["weight_method"] == "SoftMax")
    return layout.rows("controller_output", *names)


class GivenGate(Gate):
    """A gate whose bias is an argument of a compiled program instead of a constant in it."""

    bias: Any = eqx.field(default=0.0)


class DoubledGate(GivenGate):
    """The program's gate of the read action: a second sigmoid on top of the first."""

    def __call__(self, raw: Array) -> Array:
        return jax.nn.sigmoid(jax.nn.sigmoid(raw) + self.bias)


class OpenGate(Gate):
    """The program's gate of both actions where interpolation is off: always the new one."""

    def __call__(self, raw: Array) -> Array:
        return jnp.ones_like(raw)


def assemble(layout: Layout, params: Params, biases: Biases) -> lantm.Machine:
    """The fixture's machine, differentiable in the program's parameters."""
    vocabulary = lantm.Vocabulary(layout.opt["vocab_size"] - 3)
    machine = lantm.build_machine(model_config(layout, biases), vocabulary, key=jax.random.key(0))
    machine = with_program_constants(layout, machine, biases)
    ours = named_arrays(machine)
    theirs = our_parameters(layout, params, biases)
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    assert all(ours[name].shape == theirs[name].shape for name in ours)
    arrays, rest = eqx.partition(machine, eqx.is_array)
    leaves = [theirs[name] for name in ours]
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), leaves), rest)


def assemble_given(layout: Layout, params: Params, biases: Biases) -> lantm.Machine:
    """The same machine, its biases not built in but given: they may be arrays."""
    built_in = dict.fromkeys(biases, 0.0)
    bound = "angle_bound_bias"  # which is none of the machine's, but added to a parameter
    machine = assemble(layout, params, built_in | {bound: biases[bound]})
    if layout.opt["model"] != "lstm":
        machine = eqx.tree_at(
            lambda m: m.cell.initial_memory.strengths,
            machine,
            replace_fn=lambda strengths: strengths + biases["bias_init_mem_strength"],
        )
    if layout.is_lie:
        gates = GivenGate(biases["bias_gate_read"]), GivenGate(biases["bias_gate_write"])
        machine = eqx.tree_at(
            lambda m: (m.cell.access.reads[0].gate, m.cell.access.writes[0].gate), machine, gates
        )
    if layout.is_lie and layout.opt["act_interp"]:
        gates = DoubledGate(biases["bias_gate_act_read"]), GivenGate(biases["bias_gate_act_write"])
        machine = eqx.tree_at(action_gates, machine, gates)
    return machine


def action_gates(machine: lantm.Machine) -> tuple[Gate, Gate]:
    access = machine.cell.access
    return access.reads[0].action_gate, access.writes[0].action_gate


def with_program_constants(layout: Layout, machine: lantm.Machine, biases: Biases) -> lantm.Machine:
    """The program's number of initial memories, its epsilons (keys a little inside the sphere,
    weights that sum to a little less than one) and its doubled gate.
    """
    opt = layout.opt
    if opt["model"] != "lstm":
        sizes = opt["init_mem_length"], opt["key_dim"], opt["mem_width"]
        bias = biases["bias_init_mem_strength"]
        memory = InitialMemory(*sizes, strength_bias=bias, key=jax.random.key(0))
        machine = eqx.tree_at(lambda m: m.cell.initial_memory, machine, memory)
    if opt["model"] == "ram":
        options = {"tape": opt["tape"], "sharpen": opt["wt_sharpening"], "leak": EPSILON}
        access = RandomAccess(opt["key_dim"], **options, key=jax.random.key(0))
        return eqx.tree_at(lambda m: m.cell.access, machine, access)
    if layout.is_lie:
        weightings = {"InvNormalize": lantm.InverseSquare, "SoftMax": lantm.Softmax}
        weighting = weightings[opt["weight_method"]](leak=EPSILON)
        machine = eqx.tree_at(lambda m: m.cell.access.weighting, machine, weighting)
    if layout.mixes_actions:
        doubled = DoubledGate(biases["bias_gate_act_read"])
        _, write = action_gates(machine)
        gates = (doubled, write) if opt["act_interp"] else (OpenGate(), OpenGate())
        machine = eqx.tree_at(action_gates, machine, gates)
    if layout.is_sphere:
        sphere = lantm.Sphere(bounded=opt["bound_act"], softening=EPSILON)
        machine = eqx.tree_at(lambda m: m.cell.access.space, machine, sphere)
    return machine


def our_parameters(layout: Layout, params: Params, biases: Biases) -> Params:
    """The program's parameters under the names and in the order of ours."""
    rows = interface_rows(layout)
    ours = {
        "embedding.weight": params["embedding.weight"],
        "cell.interface.weight": params["ctrl.weight"][rows],
        "cell.interface.bias": params["ctrl.bias"][rows],
    }
    for i in range(layout.opt["num_lstm_layers"]):
        layer = f"cell.controller.layers.{i}"
        for part in ("weight", "bias"):
            ours[f"{layer}.from_input.{part}"] = params[f"lstm{i + 1}.i2h.{part}"]
            ours[f"{layer}.from_hidden.{part}"] = params[f"lstm{i + 1}.h2h.{part}"]
        ours[f"{layer}.initial.hidden"] = initial(layout, params, f"controller.{i + 1}.lstm_h")
        ours[f"{layer}.initial.cell"] = initial(layout, params, f"controller.{i + 1}.lstm_c")
    if layout.opt["model"] != "lstm":
        ours |= memory_parameters(layout, params)
    if layout.opt["tape"]:
        for name in TapeKeys._fields:
            ours[f"cell.access.initial_tape.{name}"] = initial(layout, params, f"{name}_keys[1]")
    if layout.is_lie:
        for end, one in ENDS:
            ours |= head_parameters(layout, params, biases, end, one)
    return ours


def memory_parameters(layout: Layout, params: Params) -> Params:
    slots = range(1, layout.opt["init_mem_length"] + 1)

    def stacked(name: str) -> Array:
        return jnp.stack([initial(layout, params, f"{name}[{i}]") for i in slots])

    return {
        "cell.output.readout.weight": params["read2pred.weight"],
        "cell.output.readout.bias": params["read2pred.bias"],
        "cell.initial_reading": initial(layout, params, "read_val[1]"),
        "cell.initial_memory.keys": stacked("keys_"),
        "cell.initial_memory.values": stacked("mem"),
        "cell.initial_memory.strengths": stacked("mem_strength")[:, 0],
    }


def head_parameters(layout: Layout, params: Params, biases: Biases, end: str, one: str) -> Params:
    head = f"cell.access.{end}s.0"
    ours = {f"{head}.initial_key": initial(layout, params, f"key_{end}{one}")}
    if layout.mixes_actions:
        names = [f"act_{end}{one}"]
        if layout.is_sphere:
            names = [f"rot_axis_{end}{one}"]
            names += [f"rot_ang_{end}{one}"] * layout.opt["bound_act"]
        action = initial(layout, params, *names)
        if layout.is_sphere and not layout.opt["bound_act"]:
            action = jnp.append(action, 0.0)  # `initial_state` puts the program's angle in
        ours[f"{head}.initial_action"] = action
    if layout.is_sphere and layout.opt["bound_act"]:
        bound = initial(layout, params, f"angle_bound_{end}{one}")[0]
        ours[f"{head}.reach.bound"] = bound + biases["angle_bound_bias"] + 5
    return ours


def initial(layout: Layout, params: Params, *names: str) -> Array:
    """The named slices of the raw initial state."""
    return params["init.bias"][layout.rows("init_state", *names)]


def initial_state(layout: Layout, params: Params, machine: lantm.Machine, batch: int) -> State:
    """The machine's own initial state, but for two things on the sphere: the program leaves the key
    of its first memory unprojected, and an unbounded first angle starts as a free (cos, sin).
    """
    state = machine.init_state(batch, layout.encoder_steps)
    if not layout.is_sphere:
        return state
    keys = state.memory.keys.at[:, 0].set(initial(layout, params, "keys_[1]"))
    state = eqx.tree_at(lambda s: s.memory.keys, state, keys)
    if not layout.opt["bound_act"]:
        for end, one in ENDS:
            raw = initial(layout, params, f"rot_trig_{end}{one}")
            phase = jnp.broadcast_to(normalise(raw, EPSILON), (batch, 2))
            state = eqx.tree_at(
                lambda s, e=end: getattr(s.heads, f"{e}s")[0].action.phase, state, phase
            )
    return state


# ---- comparison


class Run(NamedTuple):
    """What the library computes for a fixture by the reference."""

    loss_sum: Array
    losses: Array
    logits: Array
    scores: lantm.Scores
    trace: Trace
    initial: State
    final: State


class Update(NamedTuple):
    """What it computes by the fast unroll."""

    loss_sum: Array
    logits: Array
    final: State
    gradients: Params
    """Of the sum of the losses."""
    params: Params
    optimiser: Any


def split(layout: Layout, tokens: Array) -> tuple[Array, Array]:
    """Inputs and answers."""
    return tokens[:, : layout.encoder_steps], tokens[:, layout.encoder_steps + 1 :]


def trace(fixture: Fixture) -> Run:
    """By the reference, with the fixture's biases where users have theirs: in the machine."""
    biases = tuple(sorted(fixture.biases.items()))
    return compiled_trace(fixture.layout, biases, fixture.params, fixture.tokens)


@partial(jax.jit, static_argnums=(0, 1))
def compiled_trace(
    layout: Layout, biases: tuple[tuple[str, float], ...], params: Params, tokens: Array
) -> Run:
    machine = assemble(layout, params, dict(biases))
    first = initial_state(layout, params, machine, tokens.shape[0])
    inputs, answers = split(layout, tokens)
    cell = machine.cell
    middle, (before, encode) = lantm.unroll_traced(cell, first, machine.embed(inputs))
    marks = machine.placeholders(middle, answers.shape[1])
    last, (logits, decode) = lantm.unroll_traced(cell, middle, marks, write=False)
    steps = jax.tree.map(lambda *phases: jnp.concatenate(phases, axis=1), encode, decode)
    return Run(
        lantm.answer_loss(logits, answers) * answers.shape[1],
        optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean(axis=0),
        jnp.concatenate([before, logits], axis=1),
        lantm.score(logits, answers),
        steps,
        first,
        last,
    )


@partial(jax.jit, static_argnums=0)
def update(layout: Layout, biases: Biases, tokens: Array, params: Params, state: Any) -> Update:
    """By the fast unroll, with its gradients."""
    inputs, answers = split(layout, tokens)
    steps = answers.shape[1]

    def mean_loss(params: Params) -> tuple[Array, Any]:
        machine = assemble_given(layout, params, biases)
        assert layout.opt["model"] == "lstm" or machine.cell.access.in_pieces, "it has no fast one"
        first = initial_state(layout, params, machine, tokens.shape[0])
        middle, before = machine.cell.unroll(first, machine.embed(inputs))
        marks = machine.placeholders(middle, steps)
        last, logits = machine.cell.unroll(middle, marks, write=False)
        both = jnp.concatenate([before, logits], axis=1)
        return lantm.answer_loss(logits, answers), (both, last)

    (loss, (logits, last)), gradients = jax.value_and_grad(mean_loss, has_aux=True)(params)
    changes, state = layout.optimiser.update(gradients, state)
    params = optax.apply_updates(params, changes)
    summed = {name: gradient * steps for name, gradient in gradients.items()}
    return Update(loss * steps, logits, last, summed, params, state)


def compare(fixture: Fixture) -> Iterator[tuple[str, float]]:
    """Every compared quantity with its relative error."""
    data, theirs = fixture.data, fixture.data["rmsprop_traj"]
    traced = trace(fixture)
    yield from compare_forward(fixture, traced)
    biases = {name: jnp.asarray(bias) for name, bias in fixture.biases.items()}
    params, state = fixture.params, fixture.layout.optimiser.init(fixture.params)
    for i in range(theirs["n_updates"]):
        ours = update(fixture.layout, biases, fixture.tokens, params, state)
        params, state = ours.params, ours.optimiser
        if i == 0:
            yield from compare_fast(fixture, ours, traced)
        loss = ours.loss_sum / data["nloss"]
        expected = theirs["loss_mean_before_each_update"][i]
        yield f"loss of update {i}", relative_error(loss, expected)
    for name, expected in theirs["params_after"].items():
        yield f"updated {name}", relative_error(params[name], expected)


def compare_fast(fixture: Fixture, ours: Update, traced: Run) -> Iterator[tuple[str, float]]:
    data = fixture.data
    yield "loss_sum of the fast unroll", relative_error(ours.loss_sum, data["loss_sum"])
    yield "predictions of the fast unroll", relative_error(ours.logits, fixture.steps("pred"))
    for path, expected in jax.tree_util.tree_leaves_with_path(traced.final):
        name = f"last state of the fast unroll{jax.tree_util.keystr(path)}"
        found = dict(jax.tree_util.tree_leaves_with_path(ours.final))[path]
        yield name, relative_error(found, expected)
    for name, expected in data["grads"].items():
        yield f"gradient {name}", relative_error(ours.gradients[name], expected)


def compare_forward(fixture: Fixture, ours: Run) -> Iterator[tuple[str, float]]:
    data, steps = fixture.data, fixture.layout.encoder_steps
    score = data["score"]
    yield "loss_sum", relative_error(ours.loss_sum, data["loss_sum"])
    yield "losses", relative_error(ours.losses, [s["loss"] for s in data["steps"][steps:]])
    yield "predictions", relative_error(ours.logits, fixture.steps("pred"))
    yield "fine", relative_error(ours.scores.fine, score["fine"] / score["fine_total"])
    yield "coarse", relative_error(ours.scores.coarse, score["coarse"] / score["coarse_total"])
    layers = fixture.layout.opt["num_lstm_layers"]
    yield "hidden", relative_error(ours.trace.hidden, fixture.steps(f"lstm{layers}_h"))
    if isinstance(ours.final, MemoryState):
        yield from compare_memory(fixture, ours)
    if fixture.layout.is_lie:
        for end, _ in ENDS:
            yield from compare_head(fixture, ours, end)
    if fixture.layout.opt["tape"]:
        for name in TapeKeys._fields:
            theirs = data["steps"][-1][f"{name}_keys"]
            yield f"{name} key", relative_error(getattr(ours.final.heads, name), theirs)


def compare_memory(fixture: Fixture, ours: Run) -> Iterator[tuple[str, float]]:
    trace, memory = ours.trace, ours.final.memory
    for t, step in enumerate(fixture.data["steps"]):
        theirs = np.asarray(step["read_weights"])
        padding = memory.strengths.shape[1] - theirs.shape[1]
        theirs = np.pad(theirs, ((0, 0), (0, padding)))
        yield f"weights of step {t}", relative_error(trace.weights[:, t, 0], theirs)
    yield "readings", relative_error(trace.reading[:, :, 0], fixture.steps("read_val"))
    yield "written keys", relative_error(trace.write.key[:, :, 0], fixture.written("key"))
    yield "written values", relative_error(trace.value[:, :, 0], fixture.written("mem"))
    strength = fixture.written("strength")
    yield "written strengths", relative_error(trace.strength, strength)
    for when, state, theirs in (
        ("first", ours.initial.memory, fixture.data["init_state"]),
        ("last", memory, fixture.data["steps"][-1]),
    ):
        count = len(theirs["mem"])
        for name, list_name in (("keys", "keys_"), ("values", "mem")):
            expected = np.swapaxes(theirs[list_name], 0, 1)
            yield f"{when} {name}", relative_error(getattr(state, name)[:, :count], expected)
        strengths = np.swapaxes(theirs["mem_strength"], 0, 1)[..., 0]
        yield f"{when} strengths", relative_error(state.strengths[:, :count], strengths)


def compare_head(fixture: Fixture, ours: Run, end: str) -> Iterator[tuple[str, float]]:
    trace = jax.tree.map(lambda leaf: leaf[:, :, 0], getattr(ours.trace, end))
    first = getattr(ours.initial.heads, f"{end}s")[0]
    init = fixture.data["init_state"]
    yield f"first {end} key", relative_error(first.key, init[f"key_{end}"])
    yield f"{end} keys", relative_error(trace.key, fixture.steps(f"key_{end}"))
    if fixture.layout.is_sphere:
        yield f"{end} axes", relative_error(trace.action.axis, fixture.steps(f"rot_axis_{end}"))
        yield f"{end} phases", relative_error(trace.action.phase, fixture.steps(f"rot_trig_{end}"))
    else:
        yield f"{end} shifts", relative_error(trace.action, fixture.steps(f"act_{end}"))


def relative_error(ours: Any, theirs: Any) -> float:
    """The largest difference, relative to the largest value; infinite for NaN."""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {a.shape} here, {b.shape} there")
    scale = np.max(np.abs(b), initial=0.0)
    error = np.max(np.abs(a - b), initial=0.0) / (scale if scale > 0 else 1.0)
    return float(error) if np.isfinite(error) else float("inf")


def main(paths: list[str]) -> int:
    jax.config.update("jax_enable_x64", True)
    if not paths:
        print("usage: python tests/oracle.py FIXTURE.json.gz ...", file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        name, error = max(compare(Fixture.read(path)), key=lambda row: row[1])
        failed |= not error < BOUND
        verdict = "ok" if error < BOUND else "FAILED"
        print(f"{Path(path).name}: {verdict}, largest relative error {error:.1e} ({name})")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
