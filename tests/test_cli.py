"""The command line: one command to a trained machine, one line for every mistake."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import lantm
from lantm import cli
from lantm.cli.commands import MODULES, build_parser
from lantm.cli.options import given_options
from lantm.inspection.figures import memory, observe
from lantm.interrupts import Stopped
from lantm.tasks.streams import evaluation_batches, training_stream
from lantm.tasks.textfile import read_batches, write_batches
from lantm.training import runs
from lantm.training import trainer as training
from lantm.training.evaluation import percent

pytest_plugins = ["tiny"]

RESULTS = Path(__file__).parents[1] / "results" / "results.jsonl"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing is written into the repository."""
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments):
    """The one line that a mistake gets."""
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    lines = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2
    assert len(lines) == 1
    assert lines[0].startswith("lantm")
    return lines[0]


def copy_of(run, folder):
    return lantm.Run.open(shutil.copytree(run.path, folder / run.path.name))


# ---- mistakes


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("trian copy", "got 'trian' (did you mean 'train'?)"),
        ("train", "task must be given: one of copy, reverse"),
        ("train cpoy", "got 'cpoy' (did you mean 'copy'?)"),
        ("train copy --hiden-size 5", "'--hiden-size' (did you mean --hidden-size?)"),
        ("train copy --zzz", "unknown argument '--zzz'; see lantm train --help"),
        ("train copy reverse", "unknown argument 'reverse'"),
        ("train copy --lr fast", "argument --lr: invalid float value: 'fast'"),
        ("train copy --lr", "argument --lr: expected one argument"),
        ("train copy --lr nan", "lr must be a finite number, got nan"),
        ("train copy --clip -1", "clip must be a number above 0, got -1.0"),
        ("train copy --batches 0", "batches must be a whole number of at least 1, got 0"),
        ("train copy --batches 2.5", "argument --batches: invalid int value: '2.5'"),
        ("train copy --hidden-size -3", "hidden_size must be a whole number of at least 1"),
        ("train copy --seed -1", "seed must be a whole number from 0 to 4294967295, got -1"),
        ("train copy --seed 4294967296", "seed must be a whole number from 0 to 4294967295"),
        ("train copy --decay-delay 9999999999", "decay_delay must be a whole number from 0 to 21"),
        ("train copy --batches 9999999999", "batches must be a whole number from 0 to 2147483647"),
        ("train copy --validation-examples 0", "lantm: validation_examples must be a whole number"),
        ("train copy --read-gate-bias nan", "read_gate_bias must be a finite number, got nan"),
        ("train copy --hidden-size 1000000000", "hidden_size 1000000000 would need "),
        ("train copy --validation-examples 99999999999", "99999999999 problems would need "),
        ("eval zoo:copy --multiples 1000000", "3200 problems would need "),
        ("train --resume zoo:copy", "--resume takes the directory of a run; zoo:copy is trained"),
        ("train --resume nowhere --recipe paper", "settings from the run; got recipe too"),
        ("train --resume nowhere --out there", "settings from the run; got out too"),
        ("data export copy x --regime medium", "regime must be one of small, large"),
        ("data export copy x --seed -1", "seed must be a whole number from 0, got -1"),
        ("train copy --averaging 1", "averaging must be from 0 to below 1, got 1.0"),
        ("train copy --model lantn", "got 'lantn' (did you mean 'lantm'?)"),
        ("train copy --space shpere", "got 'shpere' (did you mean 'sphere'?)"),
        ("train copy --model lstm --space sphere", "space is only for lantm, lantm_s, slantm"),
        ("train copy --recipe papr", "got 'papr' (did you mean 'paper'?)"),
        ("train copy --regime medium", "regime must be one of small, large; got 'medium'"),
        ("train copy --init unifrom", "got 'unifrom' (did you mean 'uniform'?)"),
        ("train --resume nowhere --lr 0.5", "--resume takes its settings from the run; got lr too"),
        ("train --resume nowhere", "run must be a run directory or zoo:TASK, got nowhere"),
        ("train copy --data none.txt", "none.txt: cannot be read: No such file or directory"),
        ("train copy --file none.py", "file must be a Python file, got none.py"),
        ("eval", "the following arguments are required: run"),
        ("eval nowhere", "run must be a run directory or zoo:TASK, got nowhere"),
        ("eval zoo:cpoy", "(did you mean 'zoo:copy'?)"),
        ("data exprot copy x", "got 'exprot' (did you mean 'export'?)"),
        ("data export cpoy x", "got 'cpoy' (did you mean 'copy'?)"),
        ("data export copy x --purpose tests", "got 'tests' (did you mean 'test'?)"),
        ("data export copy x --multiple 0", "multiple must be a whole number of at least 1"),
        ("data export copy x --examples 0", "examples must be a whole number of at least 1"),
        ("data export copy no/x", "cannot use no/x: No such file or directory"),
        ("zoo copy", "unknown argument 'copy'"),
    ],
)
def test_mistakes_get_one_line(command, said, capsys):
    assert said in refused(capsys, *shlex.split(command))


def test_help_shows_the_values_of_the_default_recipe(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    told = capsys.readouterr().out
    for option, value in (("--read-gate-bias", "-3.0"), ("--clip", "1.0"), ("--lr", "0.005")):
        assert re.search(rf"^ *{option} FLOAT[^\[]*\[{value}\]", told, re.M), option


def test_a_folder_that_cannot_be_written_to(capsys, tmp_path):
    (tmp_path / "file").touch()
    assert "file" in refused(capsys, "train", "copy", "--out", "file")
    assert "cannot use" in refused(capsys, "train", "copy", "--out", "file/below")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--checkpoint besst", "got 'besst' (did you mean 'best'?)"),
        ("--multiples 0", "multiples must be whole numbers of at least 1, got 0"),
        ("--multiples two", "argument --multiples: invalid int value: 'two'"),
        ("--examples 0", "examples must be a whole number of at least 1, got 0"),
        ("--data none.txt", "none.txt: cannot be read: No such file or directory"),
        ("--data bad.txt", "bad.txt, line 2: symbol '7' is not in the vocabulary: 0 to 6"),
        ("--jsn", "unknown argument '--jsn' (did you mean --json?)"),
    ],
)
def test_mistakes_with_a_run(options, said, trained, capsys, tmp_path):
    (tmp_path / "bad.txt").write_text("^1#1$\n^7#7$\n")
    assert said in refused(capsys, "eval", str(trained.path), *shlex.split(options))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\x00",
        b'{"digest": "1", "config": {}}',
        b'{"digest": "1", "config": {"model": {"sides": 3}}}',
    ],
)
def test_a_damaged_config(content, trained, capsys, tmp_path):
    run = copy_of(trained, tmp_path)
    (run.path / "config.json").write_bytes(content)
    for command in (["eval"], ["train", "--resume"]):
        assert "config.json is damaged" in refused(capsys, *command, str(run.path))


def test_a_run_that_is_being_trained_is_refused(tiny, options, capsys, tmp_path):
    run = lantm.Run.create(tiny(), tmp_path)
    with run.held():
        for arguments in (["tiny", *options, f"--out={tmp_path}"], ["--resume", str(run.path)]):
            told = refused(capsys, "train", *arguments)
            assert told.endswith(f"another process is training {run.path}")
    assert not (run.path / "metrics.jsonl").exists()


def test_a_bad_data_file_leaves_no_run(capsys, tmp_path):
    missing = str(tmp_path / "none.txt")
    refused(capsys, "train", "copy", "--data", missing, "--out", str(tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_damaged_weights(trained, capsys, tmp_path):
    run = copy_of(trained, tmp_path)
    run.weights_path("best").write_bytes(b"weights")
    assert "best.safetensors is damaged" in refused(capsys, "eval", str(run.path))


# ---- train


@pytest.fixture(scope="module")
def command(options, tmp_path_factory):
    return ["train", "tiny", *options, f"--out={tmp_path_factory.mktemp('runs')}"]


@pytest.fixture(scope="module")
def shown(command):
    """What a first run of the command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(command) == 0
    return out.getvalue()


def run_directory(shown):
    first, *_, last = (line for line in shown.splitlines() if line.startswith("run directory: "))
    assert first == last
    return lantm.Run.open(first.removeprefix("run directory: "))


def table_rows(shown):
    cells = [line.strip("│ ").split("│") for line in shown.splitlines() if line.startswith("│ ")]
    return [[cell.strip() for cell in row] for row in cells]


def shares(row):
    return [percent(row["fine"]), percent(row["coarse"])]


def test_training_ends_in_a_table_a_picture_and_a_run(shown, trained):
    run = run_directory(shown)
    assert run.config == trained.config
    assert run.path.name == trained.path.name
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("batch ")] == [
        "5",
        "10",
        "15",
        "20",
    ]
    expected = [[r["checkpoint"], f"{r['source']}x", *shares(r)] for r in run.result["test"]]
    assert table_rows(shown) == expected
    assert [row[:2] for row in expected] == [[c, s] for c in ("best", "last") for s in ("1x", "2x")]
    assert f"picture of the memory: {run.path / 'memory.png'}" in shown.splitlines()


def test_the_picture_is_a_picture(shown):
    assert_picture(run_directory(shown).path / "memory.png")


def assert_picture(path):
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert 500 < height < width < 3000
    assert len(content) > 10_000


@pytest.mark.parametrize("model", ["lstm", "slantm"])
def test_other_machines_have_a_picture(model, tmp_path):
    """Without a memory; with keys of three dimensions."""
    config, task = lantm.ModelConfig(model, hidden_size=5), lantm.TASKS["repeat_copy"]
    machine = lantm.build_machine(config, task.vocabulary, key=jax.random.key(0))
    memory(observe(machine, task)).savefig(tmp_path / "memory.png", dpi=120)
    assert_picture(tmp_path / "memory.png")


def test_the_same_command_again_does_not_train_again(command, shown, capsys, monkeypatch):
    monkeypatch.delattr(training, "Trainer")
    assert cli.main(command) == 0
    again = capsys.readouterr().out.splitlines()
    told = ("compiling", "first update", "batch ")
    assert again == [line for line in shown.splitlines() if not line.startswith(told)]


def stop_before(monkeypatch, index, error):
    """As if something happened before the update of that number."""
    step = training.Trainer.step

    def stopped_step(trainer, i):
        if i == index:
            raise error
        return step(trainer, i)

    monkeypatch.setattr(training.Trainer, "step", stopped_step)


def test_control_c_saves_and_says_how_to_go_on(options, shown, capsys, monkeypatch, tmp_path):
    stop_before(monkeypatch, 7, Stopped(signal.SIGINT))
    assert cli.main(["train", "tiny", *options, f"--out={tmp_path}"]) == 130
    monkeypatch.undo()
    *_, told = capsys.readouterr().out.splitlines()
    assert told.startswith("stopped; saved at batch 7; go on with: lantm train --resume ")
    assert cli.main(shlex.split(told.partition("lantm ")[2])) == 0
    resumed, whole = run_directory(capsys.readouterr().out), run_directory(shown)
    assert resumed.path.parent == tmp_path
    assert list(resumed.metrics()) == list(whole.metrics())
    assert resumed.result["test"] == whole.result["test"]


def test_a_loss_that_is_no_number(options, capsys, monkeypatch, tmp_path):
    stop_before(monkeypatch, 7, training.NonFiniteError("the loss became nan at batch 8"))
    assert cli.main(["train", "tiny", *options, f"--out={tmp_path}"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "the loss became nan at batch 8; the last good checkpoint is in" in lines[0]


def test_a_bad_checkpoint_is_told_in_one_line(options, trained, capsys, tmp_path):
    run = copy_of(trained, tmp_path)
    (run.path / "result.json").unlink()
    (run.path / "checkpoints" / "000020.safetensors").write_bytes(b"")
    assert cli.main(["train", "tiny", *options, f"--out={tmp_path}"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "stepping over" in line]
    assert len(told) == 1
    assert "000020.safetensors is damaged: " in told[0]
    assert list(run.metrics()) == list(trained.metrics())


@pytest.mark.parametrize(
    "settings",
    [
        {"task": "odd_first", "model": "slantm_s", "space": "bounded_sphere", "lr": 1e-05},
        {"task": "reverse", "model": "ram", "sharpen": True, "keep_all": True, "seed": 3},
        {"task": "double", "recipe": "paper", "data": "a file.txt", "write_gate_bias": -1.5},
        {"task": "copy", "recipe": "paper", "model": "slantm", "clip": 1.5},
        {"task": "copy", "decay_delay": None, "forget_bias": 3.0},
        {"task": "copy", "recipe": "plain", "optimiser": "adam", "steady": 2.0, "slow_cells": 7},
        {"task": "copy", "recipe": "plain", "growth_by": "performance", "growth_of": "answers"},
        {"task": "copy", "steady": None, "sizes_per_batch": 1, "blank": False, "slow_cells": 0},
    ],
)
def test_a_config_knows_its_command(settings):
    config = lantm.configure(**settings)
    found = build_parser().parse_or_suggest(shlex.split(config.command)[1:])
    given = given_options(found, lantm.TrainConfig, lantm.ModelConfig)
    assert lantm.configure(found.recipe or "default", **given) == config


def test_every_command_is_found_in_its_module(capsys):
    for name in MODULES:
        with pytest.raises(SystemExit):
            cli.main([name, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: lantm {name} ")
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert re.findall(r"^    (\w+)", capsys.readouterr().out, re.M) == list(MODULES)


# ---- a file of one's own


OWN = """
from dataclasses import dataclass
from typing import ClassVar

import lantm
from own_space import Turntable


@dataclass(frozen=True)
class Negative(lantm.Task):
    name: ClassVar[str] = "negative"
    symbols: ClassVar[int] = 7
    largest: ClassVar[int] = 3

    def problems(self, rng, size, batch):
        inputs = self.draw(rng, batch, size)
        return inputs, self.symbols - 1 - inputs


lantm.TASKS["negative"] = Negative()
lantm.SPACES["ring"] = Turntable()
"""


def test_an_own_task_and_key_space(options, capsys, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    own = ["--file", "own.py"]
    assert "got 'negative'" in refused(capsys, "train", "negative")
    assert cli.main(["train", "negative", "--space=ring", *options, *own]) == 0
    run = run_directory(capsys.readouterr().out)
    assert cli.main(["eval", str(run.path), *own, "--examples=32", "--json"]) == 0
    assert [row["source"] for row in json.loads(capsys.readouterr().out)] == [1, 2, 4, 10] * 2
    del lantm.TASKS["negative"], lantm.SPACES["ring"]
    told = refused(capsys, "eval", str(run.path))
    assert "task must be one of copy, " in told
    assert told.endswith("one of your own needs --file FILE.py")


BROKEN = """
import lantm
import numpy as np
from own_space import Turntable

class Task(lantm.tasks.Copy):
    name = "broken"
    def problems(self, rng, size, batch):
        return self.make(size)
    def make(self, size):
        return np.zeros((2, size)).reshape(7, 7)

class Space(Turntable):
    def act(self, action, key):
        raise ValueError("act is broken")

lantm.TASKS["broken"] = Task()
lantm.SPACES["broken"] = Space()
"""


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("train broken", "line 11, in make: ValueError: cannot reshape array", "return self.make"),
        ("data export broken x", "line 11, in make: ValueError: cannot reshape", "np.zeros((2, s"),
        ("train copy --space broken", "line 15, in act: ValueError: act is broken", "raise ValueE"),
    ],
)
def test_an_error_in_an_own_file_shows_its_place(command, said, code, capsys, tmp_path):
    (tmp_path / "own.py").write_text(BROKEN)
    assert cli.main([*command.split(), "--file", "own.py"]) == 1
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith(f"lantm: own.py, {said}")
    assert code in "\n".join(more)
    assert all("own.py" in line for line in more if line.startswith("  File"))


@pytest.mark.parametrize(
    ("text", "said"),
    [("x = (", "own.py, line 1: '(' was never closed"), ("import lantm\nx =", "own.py, line 2: ")],
)
def test_an_own_file_that_is_no_python(text, said, capsys, tmp_path):
    (tmp_path / "own.py").write_text(text)
    assert said in refused(capsys, "train", "copy", "--file", "own.py")


def test_a_mistake_in_the_command_is_one_line_also_with_an_own_file(capsys, tmp_path):
    (tmp_path / "own.py").write_text(BROKEN)
    assert "got 'brokne'" in refused(capsys, "train", "brokne", "--file", "own.py")


# ---- eval, data, zoo


def test_eval_as_json(trained, capsys, tmp_path):
    path = tmp_path / "data.txt"
    write_batches(path, trained.task, evaluation_batches(trained.task, "test", 2, 41))
    command = ["eval", str(trained.path), "--json", "--examples=41", "--data", str(path)]
    assert cli.main([*command, "--multiples", "1", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)
    sources = [1, 2, str(path)]
    assert [(row["checkpoint"], row["source"]) for row in rows] == [
        (name, source) for name in ("best", "last") for source in sources
    ]
    for row in rows:
        assert list(row) == ["checkpoint", "source", "examples", "fine", "coarse"]
        assert row["examples"] == 41
        assert 0 <= row["coarse"] <= row["fine"] <= 1
    assert [row["fine"] for row in rows[1::3]] == [row["fine"] for row in rows[2::3]]


def test_eval_of_a_file_alone(trained, capsys, tmp_path):
    (tmp_path / "data.txt").write_text("^123#123$^456#456$\n^12#12$\n")
    command = ["eval", str(trained.path), "--data", "data.txt", "--checkpoint", "last", "--json"]
    assert cli.main([*command, "--by-length"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["checkpoint"], row["source"], row["examples"]) == ("last", "data.txt", 3)
    assert {length: part["examples"] for length, part in row["by_length"].items()} == {
        "2": 1,
        "3": 2,
    }


def test_eval_as_a_table(trained, capsys):
    command = ["eval", str(trained.path), "--examples=41", "--checkpoint", "best"]
    scores = lantm.evaluate(trained, [1, 2, 4, 10], checkpoints=["best"], examples=41)
    expected = []
    for score in scores:
        parts = {"all": score.evaluation, **score.evaluation.by_length}
        expected += [
            ["best", f"{score.source}x", str(n), str(part.examples), *shares(part.to_dict())]
            for n, part in parts.items()
        ]
    assert cli.main([*command, "--by-length"]) == 0
    assert table_rows(capsys.readouterr().out) == expected
    assert cli.main(command) == 0
    assert table_rows(capsys.readouterr().out) == [row for row in expected if row[2] == "all"]


@pytest.mark.parametrize(
    ("share", "shown"), [(1.0, "100"), (0.99999, "99.99"), (0.123456, "12.35"), (0.0, "0.00")]
)
def test_only_what_is_all_right_is_100_percent(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize("multiple", [1, 3])
def test_export_of_a_test_set(multiple, capsys, tmp_path):
    command = "data export double data.txt --examples 45 --multiple"
    assert cli.main([*command.split(), str(multiple)]) == 0
    assert capsys.readouterr().out == "45 problems in data.txt\n"
    task = lantm.TASKS["double"]
    expected = evaluation_batches(task, "test", multiple, 45)
    for found, batch in zip(read_batches(tmp_path / "data.txt", task), expected, strict=True):
        assert all(map(np.array_equal, found, batch))


def test_export_of_a_training_set(capsys, tmp_path):
    assert cli.main(["data", "export", "tiny", "data.txt", "--purpose=train", "--seed=2"]) == 0
    assert capsys.readouterr().out == "16000 problems in data.txt\n"
    task = lantm.TASKS["tiny"]
    found, stream = read_batches(tmp_path / "data.txt", task), training_stream(task, "small", 2)
    assert len(found) == 500
    assert all(np.array_equal(found[i].inputs, stream[i].inputs) for i in range(500))


@pytest.mark.parametrize("name", ["a[/b].txt", "x[red]&.txt", ":smile:.txt"])
def test_names_of_files_are_shown_as_they_are(name, trained, capsys, tmp_path):
    (tmp_path / "a[").mkdir()
    (tmp_path / name).write_text("^12#12$\n")
    assert cli.main(["eval", str(trained.path), "--data", name, "--checkpoint", "best"]) == 0
    assert [row[1] for row in table_rows(capsys.readouterr().out)] == [name]


def test_a_narrow_terminal_leaves_no_cell_empty(trained, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    command = ["eval", str(trained.path), "--examples=32", "--checkpoint", "best", "--multiples=1"]
    assert cli.main(command) == 0
    ((checkpoint, source, length, examples, *_),) = table_rows(capsys.readouterr().out)
    assert (checkpoint, source, length, examples) == ("best", "1x", "all", "32")


def test_our_own_notation_is_read_as_data(trained, capsys, tmp_path):
    (tmp_path / "data.txt").write_text("^ 1 2 # 1 2 $\n^12#12$\n^,1,2,#,1,2,$\n")
    command = ["eval", str(trained.path), "--data", "data.txt", "--checkpoint", "last", "--json"]
    assert cli.main(command) == 0
    assert json.loads(capsys.readouterr().out)[0]["examples"] == 3


def test_the_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"lantm {lantm.__version__}\n"


def test_a_terminal_without_our_characters(tmp_path):
    """Their places are marked, instead of an error."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "XDG_CACHE_HOME": str(tmp_path)}
    words = [sys.executable, "-m", "lantm", "report", str(RESULTS)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)  # noqa: S603
    assert "? was not run" in done.stdout


def test_a_zoo(trained, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "ZOO_FOLDER", tmp_path / "zoo")
    assert cli.main(["zoo"]) == 0
    assert table_rows(capsys.readouterr().out) == []
    assert "got 'zoo:tiny'" in refused(capsys, "eval", "zoo:tiny")
    shutil.copytree(trained.path, tmp_path / "zoo" / "tiny")
    assert cli.main(["zoo"]) == 0
    name, _, _, four, ten, kind, _ = table_rows(capsys.readouterr().out)[0]
    assert (name, four, ten) == ("zoo:tiny", "-", "-")
    assert kind == "another machine", "its sizes are not the paper's"
    file = tmp_path / "zoo" / "tiny" / "result.json"
    result = json.loads(file.read_bytes())
    result["test"].append({"checkpoint": "best", "source": 10, "fine": 0.9, "coarse": 0.625})
    file.write_text(json.dumps(result))
    assert cli.main(["zoo"]) == 0
    assert table_rows(capsys.readouterr().out)[0][3:5] == ["-", "62.50"]
    assert cli.main(["eval", "zoo:tiny", "--examples=32", "--multiples", "2", "--json"]) == 0
    assert [row["checkpoint"] for row in json.loads(capsys.readouterr().out)] == ["best", "last"]


def test_the_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "lantm", "eval", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lantm: run must be a run directory or zoo:TASK, got nowhere\n"
