"""The explorer: what its page says, and what a browser makes of it."""

import base64
import dataclasses
import gzip
import json
import re
import shutil
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm import cli
from lantm.inspection.explorer import checkpoint_names, describe_trace, write_explorer
from lantm.inspection.picture import trace_machine
from lantm.tasks import Copy
from spaces import one_head
from test_cli import refused

pytest_plugins = ["tiny"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\u2028"
EXAMPLES = 2


@dataclasses.dataclass(frozen=True)
class HostileVocabulary(lantm.Vocabulary):
    def show(self, tokens):
        return HOSTILE + super().show(tokens)


class HostileTask(Copy):
    """The tiny task, but for its name and its symbols' names."""

    name = HOSTILE
    symbols, largest = 7, 3
    vocabulary = HostileVocabulary(symbols)


def untrained(config, root, checkpoints=("best",)):
    """A run with random weights, larger ones from checkpoint to checkpoint."""
    run = lantm.Run.create(config, root)
    key = jax.random.key(0)
    machine = eqx.filter_jit(lantm.build_machine)(config.model, run.task.vocabulary, key=key)
    for number, name in enumerate(checkpoints, start=1):
        grown = jax.tree.map(lambda leaf, by=number: leaf * by, machine)
        lantm.save_tree(run.weights_path(name), grown, {"config": run.digest})
    return run


@pytest.fixture(scope="module")
def plane(tiny, tmp_path_factory):
    names = ("000005", "000010", "best")
    return untrained(tiny(), tmp_path_factory.mktemp("plane"), names)


@pytest.fixture(scope="module")
def sphere(tiny, tmp_path_factory):
    return untrained(
        tiny(model="slantm", space="bounded_sphere"), tmp_path_factory.mktemp("sphere")
    )


@pytest.fixture(scope="module")
def page(plane, tmp_path_factory):
    """About one machine."""
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    return write_explorer([plane], path, examples=EXAMPLES)


@pytest.fixture(scope="module")
def both(plane, sphere, tmp_path_factory):
    """About two."""
    path = tmp_path_factory.mktemp("both") / "explorer.html"
    return write_explorer([plane, sphere], path, examples=EXAMPLES)


@pytest.fixture(scope="module")
def heads(tiny, tmp_path_factory):
    """A run of a machine with two memories and several heads, and the page about it."""
    folder = tmp_path_factory.mktemp("heads")
    run = untrained(tiny(read_heads=2, memories=2), folder)
    return run, write_explorer([run], folder / "explorer.html", examples=EXAMPLES)


def content(path, name="page"):
    """What a page was told."""
    packed = re.search(rf'<script id="{name}"[^>]*>([^<]*)</script>', path.read_text())[1]
    return gzip.decompress(base64.b64decode(packed)).decode()


def problems(run):
    return run.task.sample(np.random.default_rng(1), run.task.largest, EXAMPLES)


def traced(run, checkpoint="best"):
    inputs, answers = problems(run)
    trace = trace_machine(run.machine(checkpoint), jnp.asarray(inputs), answers.shape[1])
    return one_head(trace, 2)


# ---- the page


def test_page_says_what_the_trace_says(both, plane, sphere):
    told_all = json.loads(content(both))
    for told, run in zip(told_all["models"], (plane, sphere), strict=True):
        trace = traced(run)
        inputs, answers = problems(run)
        time = inputs.shape[1]
        assert told["name"] == run.path.name
        assert told["examples"][1]["input"] == ["^", *map(str, inputs[1, 1:].tolist())]
        assert told["examples"][1]["answer"] == [*map(str, answers[1, :-1].tolist()), "$"]
        found = told["traces"][-1][1]
        view = {"lantm": "plane", "slantm in bounded_sphere": "sphere"}[told["model"]]
        assert found["view"] == view
        assert found["axes"] == [f"coordinate {i + 1}" for i in range(len(found["memories"][0]))]
        np.testing.assert_allclose(found["memories"][1:], trace.encode.write.key[1], atol=1e-4)
        (read,) = found["reads"]
        np.testing.assert_allclose(read["places"][:time], trace.encode.read.key[1], atol=1e-4)
        np.testing.assert_allclose(read["places"][time:], trace.decode.read.key[1], atol=1e-4)
        np.testing.assert_allclose(found["strengths"][1:], trace.encode.strength[1], atol=1e-3)
        np.testing.assert_allclose(read["weights"][time:], trace.decode.weights[1], atol=1e-3)
        assert [len(row) for row in read["weights"][:time]] == list(range(1, time + 1))
        np.testing.assert_allclose(read["gate"][:time], trace.encode.read.gate[1], atol=1e-3)


def test_page_says_what_every_head_does(heads):
    """Of two memories with two read heads and one write head each."""
    run, path = heads
    found = json.loads(content(path))["models"][0]["traces"][0][0]
    inputs, answers = problems(run)
    trace = trace_machine(run.machine(), jnp.asarray(inputs), answers.shape[1])
    time = inputs.shape[1]
    assert [head["name"] for head in found["writes"]] == ["write 1", "write 2"]
    assert [head["name"] for head in found["reads"]] == [f"read {i}" for i in (1, 2, 3, 4)]
    colours = [head["colour"] for head in found["writes"] + found["reads"]]
    assert len(set(colours)) == 6
    written = np.concatenate(trace.encode.write.key[0])
    np.testing.assert_allclose(found["memories"][2:], written, atol=1e-4)
    for i, head in enumerate(found["reads"]):
        keys, weights = trace.decode.read.key[0, :, i], trace.decode.weights[0, :, i]
        np.testing.assert_allclose(head["places"][time:], keys, atol=1e-4)
        np.testing.assert_allclose(head["weights"][time:], weights, atol=1e-3)
        assert [len(row) for row in head["weights"][:time]] == list(range(2, 2 * time + 2, 2))
        np.testing.assert_allclose(head["gate"][time:], trace.decode.read.gate[0, :, i], atol=1e-3)


def test_the_head_that_reads_most_is_described(heads):
    """All others read the memories of the beginning."""
    run, _ = heads
    machine, (inputs, answers) = run.machine(), problems(run)
    trace = trace_machine(machine, jnp.asarray(inputs), answers.shape[1])
    trace = jax.tree.map(lambda leaf: np.array(leaf[0]), trace)
    weights = trace.decode.weights
    weights[:, [0, 1, 3]] = np.eye(weights.shape[2])[0]
    found = describe_trace(trace, machine)
    assert found["busiest"] == 2
    assert "read 3 step" in [name for name, *_ in found["diagnostics"]]


def test_checkpoints_are_told_in_order(page):
    assert json.loads(content(page))["models"][0]["checkpoints"] == ["000005", "000010", "best"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["best", "last"], ["best"]),
        (["last", "000010", "000009"], ["000009", "000010", "last"]),
        (["999990", "1000000"], ["999990", "1000000"]),
        ([f"{i:06d}" for i in range(100)], ["000000", "000050", "000099"]),
        ([], ["best"]),
    ],
)
def test_choice_of_checkpoints(files, names, plane, tmp_path):
    (tmp_path / "weights").mkdir()
    for name in files:
        (tmp_path / "weights" / f"{name}.safetensors").touch()
    assert checkpoint_names(dataclasses.replace(plane, path=tmp_path), 3) == names


def test_page_needs_nothing_else(page):
    """Apart from its packed parts, no address and no file is named in it."""
    text = re.sub(r'(<script id="\w+"[^>]*>)[^<]*', r"\1", page.read_text())
    assert not re.search(r"https?:|\bsrc=|@import|url\(", text)
    assert "plotly.js" in content(page, "plotly")[:200]
    assert page.stat().st_size < 2.5e6


# ---- the command


def test_command(plane, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "page.html"
    command = ["explore", str(plane.path), "--out", str(out), "--examples", "1", "--multiple", "2"]
    assert cli.main([*command, "--checkpoints", "1"]) == 0
    assert capsys.readouterr().out == f"explorer: {out}\n"
    assert opened == [out.as_uri()]
    (model,) = json.loads(content(out))["models"]
    assert model["checkpoints"] == ["000005", "best"]
    assert [len(example["input"]) for example in model["examples"]] == [7]
    assert cli.main([*command, "--no-open"]) == 0
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "run must be a run directory or zoo:TASK, got nowhere"),
        (["zoo:cpoy"], "did you mean 'zoo:copy'?"),
        (["zoo:copy", "--examples", "0"], "examples must be a whole number of at least 1, got 0"),
        (["zoo:copy", "--seed", "-1"], "seed must be a whole number from 0, got -1"),
        (["zoo:copy", "--multiple", "0"], "multiple must be a whole number of at least 1, got 0"),
    ],
)
def test_mistakes(arguments, said, capsys):
    assert said in refused(capsys, "explore", *arguments, "--no-open")


# ---- in a browser


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        # A machine without a graphics card draws the sphere in software.
        browser = driver.chromium.launch(
            executable_path=program, args=["--enable-unsafe-swiftshader"]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a page from disk. When the test ends it must have had no error and asked nobody."""
    tabs, errors, requests = [], [], []

    def visit(path: Path, width=1280):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        tab.wait_for_selector("body[data-ready]")
        tabs.append(tab)
        return tab

    yield visit
    for tab in tabs:
        tab.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def plotted(tab, panel, name):
    """Where a panel's plot has what is called so: a list for each coordinate."""
    return (
        tab.locator(".keys")
        .nth(panel)
        .evaluate(
            """(plot, name) => {
            const found = plot._fullData.find((trace) => trace.name === name);
            return [found.x, found.y, found.z].filter(Boolean);
        }""",
            name,
        )
    )


def drawn(tab, name):
    """Where on the plane a mark was drawn, from the pixels of its centre."""
    return tab.locator(".keys").first.evaluate(
        """(plot, name) => {
            const { xaxis, yaxis } = plot._fullLayout;
            const index = plot._fullData.findIndex((trace) => trace.name === name);
            const trace = plot.querySelectorAll(".scatterlayer > .trace")[index];
            const mark = trace.querySelector(".points path").getBoundingClientRect();
            const corner = plot.getBoundingClientRect();
            return [
                xaxis.p2d(mark.x + mark.width / 2 - corner.x - xaxis._offset),
                yaxis.p2d(mark.y + mark.height / 2 - corner.y - yaxis._offset),
            ];
        }""",
        name,
    )


def test_sliders_move_the_heads(both, plane, sphere, visit):
    tab = visit(both)
    time, steps = (part.shape[1] for part in problems(plane))
    for number, name in ((2, "best"), (0, "000005")):
        tab.locator("#checkpoint").fill(str(number))
        traces = traced(plane, name), traced(sphere)
        for step in (0, 2):
            tab.locator("#step").fill(str(step))
            for head in ("read", "write"):
                keys = [getattr(trace.encode, head).key[0, step] for trace in traces]
                for panel, key in enumerate(keys):
                    here = np.ravel(plotted(tab, panel, head))
                    np.testing.assert_allclose(here, key, atol=1e-4)
                np.testing.assert_allclose(drawn(tab, head), keys[0], atol=0.02)
        tab.locator("#step").fill(str(time + 1))
        for panel, trace in enumerate(traces):
            here = np.ravel(plotted(tab, panel, "read"))
            np.testing.assert_allclose(here, trace.decode.read.key[0, 1], atol=1e-4)
            assert set(np.ravel(plotted(tab, panel, "write"))) == {None}
    assert tab.locator("#step-label").inner_text() == f"{time + 2}/{time + steps}, answering"


def test_every_head_is_drawn(heads, visit):
    run, path = heads
    tab = visit(path)
    inputs, answers = problems(run)
    trace = trace_machine(run.machine(), jnp.asarray(inputs), answers.shape[1])
    time, step = inputs.shape[1], 2
    tab.locator("#step").fill(str(step))
    for kind, number in (("write", 2), ("read", 4)):
        keys = getattr(trace.encode, kind).key[0]
        for i in range(number):
            name = f"{kind} {i + 1}"
            np.testing.assert_allclose(drawn(tab, name), keys[step, i], atol=0.02)
            trail = np.transpose(plotted(tab, 0, f"{name} trail"))
            np.testing.assert_allclose(trail, keys[: step + 1, i], atol=1e-4)
    names = ["memory", "write 1", "write 2", "read 1", "read 2", "read 3", "read 4"]
    assert tab.locator(".keys .legendtext").all_text_contents() == names
    lines = tab.locator(".doing p").all_inner_texts()
    assert [line.split(" at ")[0] for line in lines[:-1]] == names[1:]
    tab.locator("#step").fill(str(time))
    assert tab.locator(".keys .legendtext").all_text_contents() == names
    bars = tab.locator(".weights").evaluate("(plot) => plot.data.map(({ y }) => y)")
    np.testing.assert_allclose(bars, trace.decode.weights[0, 0], atol=1e-3)


def test_symbols_have_the_colour_of_the_head_that_reads_them(heads, visit):
    run, path = heads
    tab = visit(path)
    inputs, answers = problems(run)
    trace = trace_machine(run.machine(), jnp.asarray(inputs), answers.shape[1])
    time = inputs.shape[1]
    tab.locator("#step").fill(str(time))
    weights = np.asarray(trace.decode.weights[0, 0, :, 2:]).reshape(4, time, 2).sum(axis=2)
    reads = json.loads(content(path))["models"][0]["traces"][0][0]["reads"]
    cells = tab.locator(".symbol").evaluate_all("(all) => all.map((one) => one.style.background)")
    tinted = [
        tab.evaluate(
            "([colour, share]) => tint(colour, share)",
            [reads[head]["colour"], 0.75 * float(weights[head, i])],
        )
        for i, head in enumerate(np.argmax(weights, axis=0))
    ]
    parts = [np.array(re.findall(r"\d+", colour), int) for colour in cells[:time] + tinted]
    np.testing.assert_allclose(parts[:time], parts[time:], atol=1)
    assert set(cells[time:]) == {""}, "those of the answer have none"


def test_play_and_keys(page, visit):
    tab = visit(page)
    step = tab.locator("#step")
    tab.locator("#play").click()
    tab.wait_for_function("position.step >= 2")
    tab.locator("#play").press("Space")
    assert tab.locator("#play").inner_text() == "Play"
    for key, value in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        step.press(key)
        assert step.input_value() == str(value)
    tab.keyboard.press("Shift+ArrowLeft")
    assert tab.locator("#checkpoint-label").inner_text() == "batch 10"
    tab.keyboard.press("End")
    tab.keyboard.press("Space")
    tab.wait_for_function("position.step > 0 && position.step < 4")
    tab.wait_for_function("timer === null")
    assert step.input_value() == step.get_attribute("max"), "it plays to the end and stops"


def test_opens_at_the_first_step(page, visit):
    tab = visit(page)
    assert tab.locator("#step").input_value() == "0"
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#step").input_value() == "1"


def test_examples_side_by_side(page, visit):
    tab = visit(page)
    assert tab.locator(".panel").count() == 1
    tab.get_by_label("2", exact=True).check()
    assert tab.locator(".about").all_inner_texts()[1].startswith("tiny, lantm, example 2, best")
    tab.get_by_label("1", exact=True).uncheck()
    assert tab.locator(".panel").count() == 1
    tab.get_by_label("2", exact=True).click()
    assert tab.locator(".panel").count() == 1, "one stays"


def test_answers_are_marked(page, plane, visit):
    tab = visit(page)
    given = np.argmax(traced(plane).logits[0], axis=-1)
    wrong = given != problems(plane).answers[0]
    cells = tab.locator(".panel").first.locator(".symbols").nth(1).locator(".symbol")
    marked = cells.evaluate_all("(all) => all.map((cell) => cell.classList.contains('wrong'))")
    assert marked == wrong.tolist()


@pytest.mark.parametrize("width", [1280, 400])
def test_fits_the_window(page, visit, width):
    tab = visit(page, width)
    assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_machine_without_a_memory(tiny, tmp_path, visit):
    run = untrained(tiny(model="lstm"), tmp_path)
    tab = visit(write_explorer([run], tmp_path / "page.html", examples=EXAMPLES))
    tab.locator("#step").fill("3")
    shown = tab.locator(".hidden-state").evaluate("(plot) => plot.data[0].z[0]")
    hidden = traced(run).encode.hidden[0, :, 0]
    np.testing.assert_allclose(shown[: len(hidden)], hidden, atol=0.01)


def test_slots_of_every_head(tiny, tmp_path, visit):
    run = untrained(tiny(model="dnc", read_heads=2), tmp_path)
    tab = visit(write_explorer([run], tmp_path / "page.html", examples=EXAMPLES))
    inputs, answers = problems(run)
    trace = trace_machine(run.machine(), jnp.asarray(inputs), answers.shape[1])
    maps = tab.locator(".hidden-state").evaluate("(plot) => plot.data.map(({ z }) => z)")
    shown = np.array(maps)[:, :, inputs.shape[1] :]
    np.testing.assert_allclose(shown, np.transpose(trace.decode.weights[0], (1, 2, 0)), atol=1e-3)
    titles = tab.locator(".hidden-state .infolayer > g[class$=title]").all_text_contents()
    assert {"read 1", "read 2"} <= set(titles)


def test_hostile_names_are_text(plane, tmp_path, monkeypatch, visit):
    """In the names of a run, a task and symbols; nothing of it is executed."""
    monkeypatch.setitem(lantm.TASKS, "tiny", HostileTask())
    name = HOSTILE.replace("/", "")
    run = dataclasses.replace(plane, path=shutil.copytree(plane.path, tmp_path / name))
    path = write_explorer([run], tmp_path / "page.html", examples=EXAMPLES)
    assert "hacked" not in path.read_text()
    tab = visit(path)
    tab.locator("#step").fill("5")
    assert tab.locator("h2").text_content() == name
    assert HOSTILE in tab.locator(".about").text_content()
    assert tab.locator(".symbol").first.text_content() == HOSTILE + "^"
    for plot, curve in ((".keys", 2), (".weights", 0)):
        hover = "(plot, n) => Plotly.Fx.hover(plot, [{ curveNumber: n, pointNumber: 2 }])"
        tab.locator(plot).evaluate(hover, curve)
        assert "<img src=x" in tab.locator(f"{plot} .hoverlayer").text_content()
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img").count() == 0
