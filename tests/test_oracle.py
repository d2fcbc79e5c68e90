"""Every fixture of the authors' own program, and that the check can fail."""

import copy
from pathlib import Path

import pytest

import oracle

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json.gz"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_agrees_with_the_program(path):
    errors = dict(oracle.compare(oracle.Fixture.read(path)))
    assert {name: error for name, error in errors.items() if not error < oracle.BOUND} == {}


def test_all_fixtures_are_here():
    assert len(FIXTURES) == 33


def test_a_changed_fixture_fails(tmp_path, capsys):
    fixture = oracle.Fixture.read(FIXTURES[0])
    data = copy.deepcopy(fixture.data)
    data["steps"][3]["key_read"][1][0] += 1e-6
    errors = dict(oracle.compare(oracle.Fixture(fixture.path, data)))
    wrong = [name for name, error in errors.items() if not error < oracle.BOUND]
    assert wrong == ["read keys"]


def test_command_line_needs_a_file(capsys):
    assert oracle.main([]) == 2
    assert "usage" in capsys.readouterr().err
