"""Reports: what hand-made results give, in every format, and the page of our own."""

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lantm import cli
from lantm.machines.models import ModelConfig
from lantm.studies.report import FORMATS, TABLES, best, draw_differences, paper, parse, update_page
from lantm.studies.report.entries import Place, Scores
from lantm.studies.report.heatmap import differences
from lantm.studies.results import count_parameters, read_results
from lantm.studies.sweep.grids import PEERS
from lantm.training.config import configure
from test_cli import assert_picture, refused

ROOT = Path(__file__).parents[1]
EMPTY = "·"


def row(digest, coarse=None, *, task="copy", model="lantm", regime="small", grid="best", **more):
    """A result; without a coarse accuracy one that failed. Its last checkpoint has half of it."""
    scores = [
        {"checkpoint": name, "source": n, "examples": 32, "fine": part**0.5, "coarse": part}
        for name, share in (("best", 1), ("last", 0.5))
        for n in (1, 2)
        for part in ([] if coarse is None else [coarse * share])
    ]
    ended = {"status": "finished"} if scores else {"status": "failed", "error": "a | b_%"}
    config = {"task": task, "model": model, "regime": regime, "seed": 1, "batches": 10, **more}
    told = {"command": f"lantm train {task}", "seconds": 7.4, "test": scores, "versions": {}}
    return {"digest": digest, "grid": grid, "config": config} | told | ended


ROWS = [
    row("1", 0.81),
    row("2", 1.0),
    row("3"),
    row("4", 0.25, action_interpolation=True),
    row("5", task="reverse", regime="large"),
    row("6", 0.9, model="lstm", grid=None),
]


def table(name, rows=ROWS, checkpoint="best"):
    return TABLES[name](parse(rows, checkpoint), checkpoint)


def line(found, *labels):
    (cells,) = [cells for cells in found.rows if tuple(cells[: len(labels)]) == labels]
    return dict(zip(found.header, cells, strict=True))


# ---- tables


def test_the_best_run_stands_beside_the_paper():
    cells = line(table("main"), "copy", "lantm")
    columns = ("fine", "coarse", "paper fine", "n")
    assert [cells[f"small {name}"] for name in columns] == ["100", "100", "100", "3"]
    cells = line(table("main"), "copy", "lstm")
    assert (cells["small coarse"], cells["small paper coarse"]) == ("90.00", "0")


def test_a_cell_that_was_not_run_is_empty_and_a_failed_one_says_so():
    cells = line(table("main"), "reverse", "lantm")
    assert [cells[f"small {c}"] for c in ("fine", "coarse", "n")] == [EMPTY] * 3
    assert [cells[f"large {c}"] for c in ("fine", "coarse", "n")] == ["failed", "failed", "1"]
    assert cells["small paper fine"] == "100"


def test_coarse_decides_which_run_is_best():
    results = parse([row("1", 0.5), row("2", 0.4)])
    worse = dataclasses.replace(results[1], accuracy={2: Scores(0.99, 0.4)})
    assert best([worse, results[0]]) == best([results[0], worse])
    assert best([worse, results[0]])[results[0].cell].coarse == 0.5


def test_no_number_of_ours_without_a_run():
    for name in ("main", "interpolation"):
        empty = table(name, [])
        ours = [i for i, column in enumerate(empty.header[2:], 2) if "paper" not in column]
        assert {cells[i] for cells in empty.rows for i in ours} == {EMPTY}
        assert len(empty.rows) == {"main": 56, "interpolation": 32}[name]


def test_the_paper_has_all_its_cells():
    assert len(paper()) == 112 + 64
    assert paper()[Place("priority_sort", "lantm", "large")] == (0.98, 0.72)
    assert paper()[Place("odd_first", "slantm_s", "small", True)] == (0.92, 0.45)


def test_tasks_of_ones_own_get_a_line():
    cells = line(table("main", [row("1", 1.0, task="mine")]), "mine", "lantm")
    assert (cells["small coarse"], cells["small paper coarse"]) == ("100", EMPTY)


def test_interpolation_pairs_without_and_with():
    cells = line(table("interpolation"), "copy", "lantm")
    assert cells["small coarse"] == "100 : 25.00"
    assert cells["small n"] == "3 : 1"
    assert cells["large coarse"] == EMPTY
    assert line(table("interpolation"), "odd_first", "lantm")["small paper coarse"] == "91 : 0"


def test_failed_runs_are_no_successes():
    found = table("success")
    assert line(found, "best", "small", "no", "copy")["lantm"] == "1 of 3 (100)"
    assert line(found, "best", "small", "yes", "copy")["lantm"] == "0 of 1 (100)"
    assert line(found, "none", "small", "no", "copy")["lstm"] == "1 of 1 (0)", "90 % is enough"
    assert line(found, "best", "large", "no", "reverse")["slantm"] == EMPTY
    assert len(found.rows) == 8


def test_successes_are_summed_over_tasks():
    found = table("success", [*ROWS, row("7", 1.0, task="double")])
    assert line(found, "best", "small", "no", "all tasks")["lantm"] == "2 of 4"
    assert line(found, "best", "large", "no", "all tasks")["lantm"] == "0 of 1"


def test_every_run_has_a_line():
    found = table("runs")
    assert len(found.rows) == len(ROWS)
    assert found.rows[0] == ["lantm train copy", "finished", *["90.00", "81.00"] * 2, "7"]
    assert found.rows[2] == ["lantm train copy", "a | b_%", *[EMPTY] * 4, "7"]


def test_the_checkpoint_can_be_the_last():
    assert line(table("main", checkpoint="last"), "copy", "lantm")["small coarse"] == "50.00"
    assert "validation" in table("main").caption
    assert "validation" not in table("main", checkpoint="last").caption


@pytest.mark.parametrize("name", ["main", "interpolation"])
def test_the_caption_tells_the_rule(name):
    assert "selected by its test score" in table(name).caption
    assert "optimistic" in table(name).caption


# ---- formats


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rows", [ROWS, []], ids=["some", "none"])
def test_formats_have_all_cells(name, rows):
    found = table(name, rows)
    columns, count = len(found.header), len(found.rows)

    read = list(csv.reader(io.StringIO(FORMATS["csv"](found))))
    assert read == [found.header] + [[c if c != EMPTY else "" for c in r] for r in found.rows]

    head, rule, *body = FORMATS["markdown"](found).split("\n\n")[0].splitlines()
    cells = [re.split(r"(?<!\\)\|", text)[1:-1] for text in (head, rule, *body)]
    assert {len(parts) for parts in cells} == {columns}
    assert len(body) == count

    text = FORMATS["latex"](found)
    lines = [part for part in text.splitlines() if part.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", part)) for part in lines} == {columns - 1}
    assert len(lines) == count + 1
    assert not re.search(r"(?<!\\)[_%#]|--|·", text)

    shown = FORMATS["terminal"](found)
    assert all(cell in shown for cells in found.rows for cell in cells)
    assert found.caption in shown


# ---- heat maps


def test_differences_are_without_minus_with():
    ours = differences(best(parse(ROWS)), "coarse")
    assert ours[Place("copy", "lantm", "small", True)] == 75
    assert sum(np.isfinite(list(ours.values()))) == 1
    theirs = differences(paper(), "coarse")
    assert theirs[Place("odd_first", "lantm", "small", True)] == pytest.approx(91)
    assert len(theirs) == 64


@pytest.mark.parametrize("rows", [ROWS, []], ids=["some", "none"])
def test_every_cell_of_a_heat_map_has_its_number(rows):
    panels = draw_differences(best(parse(rows))).axes[:4]
    assert [panel.get_title() for panel in panels] == [
        f"{whose}, {name}" for whose in ("ours", "paper") for name in ("fine", "coarse")
    ]
    texts = [[text.get_text() for text in panel.texts] for panel in panels]
    assert [len(part) for part in texts] == [64] * 4
    assert texts[1].count(EMPTY) == (63 if rows else 64)
    assert EMPTY not in texts[2] + texts[3]


# ---- the command


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "results" / "results.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(part) + "\n" for part in ROWS))
    return file


def test_the_command_shows_writes_and_draws(results, capsys, tmp_path):
    assert cli.main(["report"]) == 0
    assert "Main results" in capsys.readouterr().out
    assert cli.main(["report", "--table=runs", "--format=csv", "--out=runs.csv"]) == 0
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == len(ROWS) + 1
    for name in ("map.png", "other"):
        capsys.readouterr()
        assert cli.main(["report", str(results), "--heatmap", name]) == 0
        told = capsys.readouterr().out.removeprefix("heat map: ").strip()
        assert told == (name if "." in name else f"{name}.png")
        assert_picture(tmp_path / told)


def test_a_grid_alone(results, capsys):
    assert cli.main(["report", "--table=runs", "--format=csv", "--grid=none"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2, "the header and run 6"
    results.write_text("")
    assert "grid must be one of none so far" in refused(capsys, "report", "--grid", "best")


def test_a_page_is_made_anew(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- report runs -->\nold\n<!-- end -->\nafter\n")
    for _ in range(2):
        assert cli.main(["report", "--update", "page.md"]) == 0
        text = page.read_text()
        assert text.startswith("before\n<!-- report runs -->\n")
        assert text.endswith("\n<!-- end -->\nafter\n")
        assert text.count(FORMATS["markdown"](table("runs"))) == 1
        assert "old" not in text


def test_a_page_with_the_runs_of_one_grid(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- report runs none -->\n<!-- end -->\n")
    assert cli.main(["report", "--update", "page.md"]) == 0
    assert FORMATS["markdown"](table("runs", ROWS[-1:])) in page.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("none.jsonl", "cannot use none.jsonl: No such file or directory"),
        ("--table mian", "got 'mian' (did you mean 'main'?)"),
        ("--format html", "format must be one of terminal, markdown, csv, latex; got 'html'"),
        ("--checkpoint bst", "got 'bst' (did you mean 'best'?)"),
        ("--grid bets", "grid must be one of best, none; got 'bets' (did you mean 'best'?)"),
        ("--update plain.md", "page must have lines <!-- report TABLE -->"),
        ("--update open.md", "page must have lines <!-- report TABLE -->"),
        ("--update wrong.md --table main", "--update makes what its page asks for; got --table"),
        ("--update wrong.md", "got 'mian' (did you mean 'main'?)"),
        ("--update other.md", "got 'bets' (did you mean 'best'?)"),
        ("--out no/x", "cannot use no/x: No such file or directory"),
        ("text.jsonl", "text.jsonl, line 1 is no result"),
        ("part.jsonl", "part.jsonl, line 1 is no result: a row must have a grid"),
        ("untested.jsonl", "result 1 has no 2x score of the checkpoint best"),
    ],
)
def test_mistakes_get_one_line(results, options, said, capsys, tmp_path):
    (tmp_path / "plain.md").write_text("no marks\n")
    (tmp_path / "wrong.md").write_text("<!-- report mian -->\n<!-- end -->\n")
    (tmp_path / "open.md").write_text(
        "<!-- report main -->\nkeep this\n<!-- report runs -->\n<!-- end -->\n"
    )
    (tmp_path / "other.md").write_text("<!-- report main bets -->\n<!-- end -->\n")
    (tmp_path / "text.jsonl").write_text("{\n")
    known = {name: row("1", 1.0)[name] for name in ("digest", "config", "status")}
    (tmp_path / "part.jsonl").write_text(json.dumps(known) + "\n")
    (tmp_path / "untested.jsonl").write_text(json.dumps(row("1", 1.0) | {"test": []}) + "\n")
    assert said in refused(capsys, "report", *options.split())


def test_without_results_of_ones_own(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "results/results.jsonl" in refused(capsys, "report")


# ---- our own results


def test_sweeps_know_the_runs_among_our_results():
    for row in read_results(ROOT / "results/results.jsonl"):
        config = configure(**row["config"])
        assert (config.digest, config.command) == (row["digest"], row["command"])


def test_the_page_has_what_the_results_give():
    page = (ROOT / "docs/reproduction.md").read_text()
    results = parse(read_results(ROOT / "results/results.jsonl"))
    assert set(re.findall(r"<!-- report (\w+)", page)) == TABLES.keys() - {"peers", "lengths"}
    assert update_page(page, results, "best") == page, "lantm report --update docs/reproduction.md"


def test_the_page_of_peers_has_what_their_results_give():
    page = (ROOT / "docs/peers.md").read_text()
    results = parse(read_results(ROOT / "results/peers.jsonl"))
    assert set(re.findall(r"<!-- report (\w+)", page)) == {"peers", "lengths"}
    made = update_page(page, results, "best")
    assert made == page, "lantm report results/peers.jsonl --update docs/peers.md"


def test_the_page_of_peers_counts_their_parameters():
    page = (ROOT / "docs/peers.md").read_text()
    counts = re.findall(r"^\| `(\w+)` \| .* \| (\d+) \|$", page, re.M)
    assert [name for name, _ in counts] == list(PEERS)
    for name, count in counts:
        assert count_parameters(ModelConfig(model=name), "copy") == int(count), name
