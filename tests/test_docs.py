"""README, guides and examples do what they say."""

import doctest
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import lantm
import memory_layer
import own_space
from lantm import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [m.name for m in pkgutil.walk_packages(lantm.__path__, "lantm.") if "__" not in m.name]


def python_blocks(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name
)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """All blocks of a page in one namespace, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with jax.enable_x64(False):  # as for a reader, and as the machines of the zoo are
        exec(compile(python_blocks(page), str(page), "exec"), names)  # noqa: S102
    finder = doctest.DocTestFinder(recurse=False)
    for value in [v for v in names.values() if isinstance(v, type) and v.__module__ == "page"]:
        for test in finder.find(value, globs=names, module=False):
            assert doctest.DocTestRunner().run(test).failed == 0


def has_examples(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return ">>> " in Path(spec.origin).read_text()


@pytest.mark.parametrize("module", list(filter(has_examples, MODULES)))
def test_docstring_examples(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_at_files(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "command",
    [
        *("train", "sweep", "eval", "data", "zoo", "figure", "animate", "bench", "explore"),
        *("report", "compare"),
    ],
)
def test_options_of_commands_exist(command, capsys):
    """Every option that a page gives to a command is one that the command has."""
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    known = capsys.readouterr().out
    lines = [line for page in PAGES for line in page.read_text().splitlines()]
    used = [line.split("  ")[0] for line in lines if re.search(rf"\blantm {command}\b", line)]
    assert [o for line in used for o in re.findall(r"--[a-z][a-z-]*", line) if o not in known] == []


def test_the_pages_have_every_task_with_its_example_and_sizes():
    pages = "".join((ROOT / page).read_text() for page in ("README.md", "docs/peers.md"))
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)`.* \| (\d+) to (\d+) ", pages, re.M)
    own = [task for task in lantm.TASKS.values() if type(task).__module__.startswith("lantm.")]
    examples = [re.findall(r"'(.*)'", task.__doc__)[0] for task in own]
    assert rows == [
        (task.name, example, str(task.smallest), str(task.largest))
        for task, example in zip(own, examples, strict=True)
    ]


def test_imports_follow_the_order_of_the_contributing_guide():
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    listed = re.search(r"From the ground up: (.*?)\.\s+A file", guide, re.S)
    assert listed is not None
    order = re.findall(r"`(\w+)`", listed[1])
    assert sorted(order) == sorted({module.split(".")[1] for module in MODULES})
    for module in MODULES:
        source = Path(importlib.import_module(module).__file__).read_text()
        names = re.findall(r"^from lantm\.(\w+)", source, re.M)
        own = module.split(".")[1]
        assert [name for name in names if order.index(name) > order.index(own)] == [], module


def test_notebook_runs(tmp_path, monkeypatch):
    """All code cells in one namespace, but for the lines that are for the notebook itself."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples/first_steps.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    source = "\n".join(line for cell in cells for line in cell.split("\n") if line[:1] != "%")
    with jax.enable_x64(False):
        exec(compile(source, "first_steps.ipynb", "exec"), {"__name__": "notebook"})  # noqa: S102
    assert list(tmp_path.glob("runs/running_maximum-*/result.json"))


def test_reference_builds_and_has_every_public_name(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True)  # noqa: S603
    page = (tmp_path / "index.html").read_text()
    assert [name for name in lantm.__all__ if f'.{name}"' not in page] == []


def test_own_space_example(capsys):
    own_space.main()
    assert "written at" in capsys.readouterr().out


def test_memory_layer_example_learns(capsys):
    assert memory_layer.main(steps=600) < 0.6, "a guess without memory has error 1"


def test_the_test_command_is_in_the_readme():
    """What `.ci/run` takes from there."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"^<!-- test -->\n```bash\n(.*?)^```", readme, re.S | re.M)
    assert block is not None
    assert "pytest" in block[1]
