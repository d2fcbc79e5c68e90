"""The benchmark: a fair yardstick, sound arithmetic, results that programs can read."""

import dataclasses
import json
import runpy
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm import cli
from lantm.cli import bench
from lantm.machines.seq2seq import answer_loss
from lantm.studies import benchmark
from lantm.studies.benchmark import Case, Measurement, compare, floating_point_operations
from test_cli import assert_picture, refused

ROOT = Path(__file__).parents[1]


# ---- the yardstick is the same model


def torch_parameters(machine):
    """Ours by the names of the PyTorch model, whose gates lie input, forget, candidate, output."""
    cell, (layer,) = machine.cell, machine.cell.controller.layers

    def gates(array):
        forget, enter, leave, candidate = jnp.split(array, 4)
        return jnp.concatenate([enter, forget, candidate, leave])

    return {
        "embedding.weight": machine.embedding.weight,
        "lstm.weight_ih": gates(layer.from_input.weight),
        "lstm.weight_hh": gates(layer.from_hidden.weight),
        "lstm.bias_ih": gates(layer.from_input.bias),
        "lstm.bias_hh": gates(layer.from_hidden.bias),
        "interface.weight": cell.interface.weight,
        "interface.bias": cell.interface.bias,
        "readout.weight": cell.readout.weight,
        "readout.bias": cell.readout.bias,
        "read_head.initial": cell.access.read.initial_key,
        "write_head.initial": cell.access.write.initial_key,
        "initial_hidden": layer.initial.hidden,
        "initial_cell": layer.initial.cell,
        "initial_reading": cell.initial_reading,
        "memory_key": cell.initial_memory.keys[0],
        "memory_value": cell.initial_memory.values[0],
        "memory_strength": cell.initial_memory.strengths,
    }


@pytest.mark.parametrize("model", ["lantm", "slantm"])
def test_the_yardstick_is_the_same_model(model):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra, [bench]")
    sizes = {"embedding": 3, "hidden": 11, "width": 5}
    names = {"embedding": "embedding_size", "hidden": "hidden_size", "width": "memory_width"}
    config = lantm.ModelConfig(model, **{names[name]: size for name, size in sizes.items()})
    machine = lantm.build_machine(config, lantm.Vocabulary(7), key=jax.random.key(3))
    yardstick = runpy.run_path(str(bench.TORCH_FILE))["LieAccessMachine"]
    other = yardstick(10, sphere=model == "slantm", **sizes).double()
    ours = {name: np.array(value) for name, value in torch_parameters(machine).items()}
    other.load_state_dict({name: torch.from_numpy(value) for name, value in ours.items()})

    rng = np.random.default_rng(0)
    inputs, answers = rng.integers(10, size=(5, 13)), rng.integers(10, size=(5, 17))

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss_of(machine):
        logits = machine(jnp.asarray(inputs), 17)
        return answer_loss(logits, jnp.asarray(answers)), logits

    (loss, logits), grads = loss_of(machine)
    found = other(torch.from_numpy(inputs), 17)
    found_loss = torch.nn.functional.cross_entropy(
        found.flatten(0, 1), torch.from_numpy(answers).flatten()
    )
    found_loss.backward()
    np.testing.assert_allclose(found.detach().numpy(), logits, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found_loss.item(), loss, rtol=1e-8)
    wanted = torch_parameters(grads)
    for name, parameter in other.named_parameters():
        np.testing.assert_allclose(parameter.grad, wanted[name], rtol=1e-8, atol=1e-8, err_msg=name)


def test_the_yardstick_comes_with_the_package():
    assert bench.TORCH_FILE.is_file()
    assert bench.TORCH_FILE.is_relative_to(Path(lantm.__file__).parent)


# ---- arithmetic


def test_lengths_count_steps():
    copy, repeat = Case.copy("slantm", 64), Case("lantm", "repeat_copy", 3)
    assert (copy.length, copy.answer_length) == (64, 64)
    assert (repeat.length, repeat.answer_length) == (24, 61)


def test_operations_of_a_step():
    """Counted by hand: LSTM 50, memory width 20, embedding 14, 131 symbols, heads of 5 numbers."""
    encode = 200 * (20 + 50) + 50 * (20 + 1 + 5 + 5)
    decode = 200 * (20 + 50) + 50 * (131 + 1 + 5) + 20 * 131
    readings = 20 * (1 + 2 + 3) + 3 * 20 * 4
    products = 32 * (3 * encode + 3 * decode + readings) + 97 * 14 * 200
    assert floating_point_operations(Case.copy("lantm", 3)) == 3 * 2 * products


def row(implementation, *milliseconds, length=33, **changes):
    times = list(map(float, milliseconds))
    made = Measurement("lantm", "copy", length, implementation, times, times, 2.0, 0.1, 0.5)
    return dataclasses.replace(made, **changes)


def test_ratios_are_of_turns_and_of_medians():
    assert benchmark.ratios(row("scan", 20, 33, 40), row("lantm", 10, 11, 8)) == (3.3, 2, 5)


def test_a_table_compares_within_a_case():
    rows = [row("lantm", 10, 12), row("scan", 22, 22), row("torch", 7, 7, length=64)]
    rows += [row("lantm", 14, 28, length=64, peak_megabytes=5.0)]
    assert benchmark.table(rows) == [
        ("lantm copy 33", "11.0", "2.0 (1.8 to 2.2)", "-", "0.5", "2, 2, -"),
        ("lantm copy 64", "21.0", "-", "0.3 (0.2 to 0.5)", "0.5", "5, -, 2"),
    ]


def test_a_shared_core_is_remarked():
    alone, shared = row("lantm", 10), row("lantm", 10, cpu_milliseconds=[4.0])
    assert len(benchmark.remarks([alone])) == 1
    assert "lantm had it for 40% of the time" in benchmark.remarks([shared])[1]


def test_the_docs_show_the_saved_results():
    rows = benchmark.load_rows(ROOT / "benchmarks" / "results.json")
    assert benchmark.markdown(rows) in (ROOT / "docs" / "benchmark.md").read_text()


# ---- the command


@pytest.fixture
def quickly(monkeypatch):
    """Workers that compile in a hurry."""
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


@pytest.mark.usefixtures("quickly")
def test_the_command(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "first_step_seconds", lambda: 1.5)
    saved, plot = tmp_path / "saved.json", tmp_path / "plot.png"
    options = ["--models=lantm", "--lengths=3", "--repetitions=2", "--torch=none.py"]
    assert cli.main(["bench", *options, f"--json={saved}", f"--plot={plot}"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("torch is left out: ")
    assert "1.5 s from the start of lantm train to its first step" in told
    assert "drawing a batch takes at most" in told
    rows = json.loads(saved.read_text())
    assert [found["implementation"] for found in rows] == ["lantm", "scan"]
    for found in rows:
        assert (found["model"], found["task"], found["length"]) == ("lantm", "copy", 3)
        assert len(found["milliseconds"]) == len(found["cpu_milliseconds"]) == 2
        assert all(time > found["bound_milliseconds"] > 0 for time in found["milliseconds"])
        assert 0 < found["peak_megabytes"] < 100
    assert_picture(plot)
    assert cli.main(["bench", f"--saved={saved}", "--markdown"]) == 0
    assert capsys.readouterr().out == benchmark.markdown(benchmark.load_rows(saved)) + "\n"


def test_a_space_is_compared_with_the_plane_turn_by_turn():
    rows = [benchmark.SpaceCost("plane", 33, [10.0, 20.0, 30.0])]
    rows += [benchmark.SpaceCost("line", 33, [5.0, 30.0, 30.0])]
    assert benchmark.space_table(rows) == [
        ("plane", "20.0", "1.00 (1.00 to 1.00)"),
        ("line", "30.0", "1.00 (0.50 to 1.50)"),
    ]


def test_the_command_for_spaces(capsys, tmp_path):
    saved = tmp_path / "saved.json"
    options = ["--lengths=3", "--repetitions=2", f"--json={saved}", "--markdown"]
    assert cli.main(["bench", "--spaces", "line*circle", *options]) == 0
    rows = json.loads(saved.read_text())
    assert [found["space"] for found in rows] == ["plane", "line*circle"]
    assert all(len(found["cpu_milliseconds"]) == 2 for found in rows)
    header, _, first, second = capsys.readouterr().out.splitlines()
    assert header == "| space | ms | times plane |"
    assert first.startswith("| plane | ")
    assert second.startswith("| line*circle | ")
    assert "did you mean 'circle'" in refused(capsys, "bench", "--spaces", "cirle")


def test_a_worker_that_fails_is_left_out():
    said = []
    assert compare(Case.copy("lantm", 3), ["no_such"], on_notice=said.append) == []
    assert said == ["no_such is left out: KeyError: 'no_such'"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--lengths 1", "lengths must be whole numbers of at least 2, got 1"),
        ("--lengths two", "argument --lengths: invalid int value: 'two'"),
        ("--models slatnm", "got 'slatnm' (did you mean 'slantm'?)"),
        ("--models lstm", "model must be one of lantm, slantm; got 'lstm'"),
        ("--repetitions 0", "repetitions must be a whole number of at least 1, got 0"),
        ("--quik", "unknown argument '--quik' (did you mean --quick?)"),
        ("--saved none.json", "cannot use none.json: No such file or directory"),
        ("--json no/where.json --lengths 3", "cannot use no/where.json"),
        ("--plot no/where.png --lengths 3", "cannot use no/where.png"),
        ("--plot x.xyz --lengths 3", "suffix of x.xyz must be one of"),
        (f"--saved {ROOT / 'CITATION.cff'}", "CITATION.cff has no results of lantm bench"),
    ],
)
def test_mistakes_get_one_line(command, said, capsys):
    assert said in refused(capsys, "bench", *command.split())
