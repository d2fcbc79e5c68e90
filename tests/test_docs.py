"""README, guides and examples do what they say."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lantm
from spaces import quick_compilation  # noqa: F401

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [m.name for m in pkgutil.walk_packages(lantm.__path__, "lantm.") if "__" not in m.name]


def python_blocks(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name
)
def test_code_of_a_page_runs(page, tmp_path):
    """All blocks of a page in one namespace, in which `folder` is an empty directory."""
    names = {"folder": tmp_path, "__name__": "page"}
    exec(compile(python_blocks(page), str(page), "exec"), names)  # noqa: S102
    finder = doctest.DocTestFinder(recurse=False)
    for value in [v for v in names.values() if isinstance(v, type) and v.__module__ == "page"]:
        for test in finder.find(value, globs=names, module=False):
            assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_at_files(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_options_of_commands_exist():
    """Every option that a page gives to `lantm` is one that the command has."""
    for page in PAGES:
        for command, rest in re.findall(r"^(?:.*/)?lantm (train|eval|data|zoo)\b(.*)$", page.read_text(), re.M):
            known = subprocess.run(  # noqa: S603
                [sys.executable, "-m", "lantm", command, "--help"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert [o for o in re.findall(r"--[a-z][a-z-]*", rest) if o not in known] == []


def test_own_space_example(capsys):
    import own_space

    own_space.main()
    assert "written at" in capsys.readouterr().out


def test_memory_layer_example_learns(capsys):
    import memory_layer

    assert memory_layer.main(steps=600) < 0.6, "a guess without memory has error 1"


def test_the_test_command_is_in_the_readme():
    """What `.ci/run` takes from there."""
    block = re.search(r"^<!-- test -->\n```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    assert block is not None
    assert "pytest" in block[1]
