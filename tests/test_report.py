"""Reports: what hand-made results give, in every format, and the page of our own."""

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lantm import cli
from lantm.machines.models import ModelConfig
from lantm.studies.entries import Place, Scores
from lantm.studies.report import (
    FORMATS,
    PICTURES,
    TABLES,
    best,
    draw_differences,
    draw_successes,
    paper,
    parse,
    picture_digest,
    source_of,
    summary,
    update_page,
)
from lantm.studies.report.heatmap import differences
from lantm.studies.results import count_parameters, read_results
from lantm.studies.sweep.grids import PEERS
from lantm.training.config import configure
from test_cli import assert_picture, refused

ROOT = Path(__file__).parents[1]
EMPTY = "·"


def row(digest, coarse=None, *, grid="best", recipe="paper", **settings):
    """A result; without a coarse accuracy one that failed. Its last checkpoint has half of it."""
    scores = [
        {"checkpoint": name, "source": n, "examples": 32, "fine": part**0.5, "coarse": part}
        for name, share in (("best", 1), ("last", 0.5))
        for n in (1, 2)
        for part in ([] if coarse is None else [coarse * share])
    ]
    ended = {"status": "finished"} if scores else {"status": "failed", "error": "a | b_%"}
    own = {name: settings.pop(name) for name in ("task",) if settings.get(name) == "mine"}
    config = configure(recipe, **settings).flat() | own
    told = {
        "command": f"lantm train {config['task']}",
        "seconds": 7.4,
        "test": scores,
        "versions": {},
    }
    return {"digest": digest, "grid": grid, "config": config} | told | ended


ROWS = [
    row("1", 0.81),
    row("2", 1.0),
    row("3"),
    row("4", 0.25, action_interpolation=True),
    row("5", task="reverse", regime="large"),
    row("6", 0.9, model="lstm", lr=0.002, decay_delay=500, grid=None),
]
OURS = [
    row("7", 0.95, recipe="plain", regime="large", grid="plain"),
    row("8", 0.3, recipe="plain", regime="large", grid="plain"),
    row("9", 0.99, recipe="default", grid="default"),
]
"""Beside these: two runs of the paper's machine with our training, and one of our recipe."""


def table(name, rows=ROWS, checkpoint="best"):
    return TABLES[name](parse(rows, checkpoint), checkpoint)


def line(found, *labels):
    (cells,) = [cells for cells in found.rows if tuple(cells[: len(labels)]) == labels]
    return dict(zip(found.header, cells, strict=True))


# ---- tables


def test_the_best_run_stands_beside_the_paper():
    cells = line(table("main"), "copy", "small", "lantm")
    columns = ("ours fine", "ours coarse", "paper fine", "solved")
    assert [cells[name] for name in columns] == ["100", "100", "100", "1 of 3"]
    cells = line(table("main"), "copy", "small", "lstm")
    assert (cells["ours coarse"], cells["paper coarse"]) == ("90.00", "0")


def test_a_cell_that_was_not_run_is_empty_and_a_failed_one_says_so():
    own = ("ours fine", "ours coarse", "solved")
    cells = line(table("main"), "reverse", "small", "lantm")
    assert [cells[name] for name in own] == [EMPTY] * 3
    assert cells["paper fine"] == "100"
    cells = line(table("main"), "reverse", "large", "lantm")
    assert [cells[name] for name in own] == ["failed", "failed", "0 of 1"]


def test_our_training_and_our_recipe_never_stand_in_the_papers_cells():
    cells = line(table("main", [*ROWS, *OURS]), "copy", "small", "lantm")
    assert [cells[name] for name in ("ours coarse", "solved")] == ["100", "1 of 3"]
    assert (cells["our training"], cells["our recipe"]) == (EMPTY, "99.00 (1 of 1)")
    cells = line(table("main", [*ROWS, *OURS]), "copy", "large", "lantm")
    assert [cells[name] for name in ("ours coarse", "solved")] == [EMPTY] * 2
    assert (cells["our training"], cells["our recipe"]) == ("95.00 (1 of 2)", EMPTY)
    cells = line(table("tasks", OURS), "copy", "small", "no")
    assert [cells[name] for name in ("ours", "our model", "solved")] == [EMPTY] * 3
    assert cells["our recipe"] == "99.00 (1 of 1)"


def test_other_machines_stand_in_no_cell_of_the_papers_tables():
    others = [row("1", 1.0, recipe="default", noise=0.0), row("2", 1.0, model="gru")]
    cells = line(table("main", others), "copy", "small", "lantm")
    assert [cells[name] for name in ("ours coarse", "our training", "our recipe")] == [EMPTY] * 3
    assert "2 of other machines" in summary(parse(others), "best")


def test_a_task_has_its_best_machine_also_where_it_is_worse_than_the_papers():
    rows = [row("1", 0.2, task="reverse"), row("2", 0.3, task="reverse", model="slantm")]
    cells = line(table("tasks", rows), "reverse", "small", "no")
    assert [cells[name] for name in ("paper", "its model")] == ["100", "lantm, slantm_s"]
    assert [cells[n] for n in ("ours", "our model", "solved")] == ["30.00", "slantm", "0 of 2"]


def test_coarse_decides_which_run_is_best():
    results = parse([row("1", 0.5), row("2", 0.4)])
    worse = dataclasses.replace(results[1], accuracy={2: Scores(0.99, 0.4)})
    assert best([worse, results[0]]) == best([results[0], worse])
    assert best([worse, results[0]])[results[0].cell].coarse == 0.5


def test_no_number_of_ours_without_a_run():
    for name in ("main", "interpolation"):
        empty = table(name, [])
        ours = [i for i, column in enumerate(empty.header[3:], 3) if "paper" not in column]
        assert {cells[i] for cells in empty.rows for i in ours} == {EMPTY}
        assert len(empty.rows) == {"main": 112, "interpolation": 64}[name]


def test_the_paper_has_all_its_cells():
    assert len(paper()) == 112 + 64
    assert paper()[Place("priority_sort", "lantm", "large")] == (0.98, 0.72)
    assert paper()[Place("odd_first", "slantm_s", "small", True)] == (0.92, 0.45)


def test_tasks_of_ones_own_get_a_line():
    cells = line(table("main", [row("1", 1.0, task="mine")]), "mine", "small", "lantm")
    assert (cells["ours coarse"], cells["paper coarse"]) == ("100", EMPTY)


def test_interpolation_pairs_without_and_with():
    cells = line(table("interpolation"), "copy", "small", "lantm")
    assert cells["ours coarse"] == "100 : 25.00"
    assert cells["solved"] == "1 of 3 : 0 of 1"
    assert line(table("interpolation"), "copy", "large", "lantm")["ours coarse"] == EMPTY
    cells = line(table("interpolation"), "odd_first", "small", "lantm")
    assert cells["paper coarse"] == "91 : 0"


def test_failed_runs_are_no_successes():
    found = table("success")
    assert line(found, "paper", "best", "small", "no", "copy")["lantm"] == "1 of 3 (100)"
    assert line(found, "paper", "best", "small", "yes", "copy")["lantm"] == "0 of 1 (100)"
    assert line(found, "paper", "none", "small", "no", "copy")["lstm"] == "1 of 1 (0)", (
        "90 % is enough"
    )
    assert line(found, "paper", "best", "large", "no", "reverse")["slantm"] == EMPTY
    assert len(found.rows) == 8


def test_successes_are_summed_over_tasks():
    found = table("success", [*ROWS, row("7", 1.0, task="double")])
    assert line(found, "paper", "best", "small", "no", "all tasks")["lantm"] == "2 of 4"
    assert line(found, "paper", "best", "large", "no", "all tasks")["lantm"] == "0 of 1"


def test_every_run_has_a_line():
    found = table("runs")
    assert len(found.rows) == len(ROWS)
    command = "lantm train copy"
    assert found.rows[0] == [command, "paper", "finished", *["90.00", "81.00"] * 2, "7"]
    assert found.rows[2] == [command, "paper", "a | b_%", *[EMPTY] * 4, "7"]


def test_every_kind_and_grid_has_a_line_of_what_was_run():
    found = table("grids", [*ROWS, *OURS])
    kinds = ["paper", "paper", "our training", "our recipe"]
    assert [cells[0] for cells in found.rows] == kinds
    assert line(found, "our training", "plain")["solved"] == "1 of 2"
    assert line(found, "paper", "best")["core-hours"] == "0.0"


def told_row(digest, coarse, **settings):
    """A result of the default recipe with its own command."""
    made = row(digest, coarse, recipe="default", **settings)
    return made | {"command": configure("default", **settings).command}


def test_an_ingredient_that_was_taken_away_has_a_line():
    base = {"task": "odd_first", "starts": 1, "batches": 3000, "growth_of": "answers"}
    rows = [
        told_row("a", 1.0, **base),
        told_row("b", 0.2, **base, seed=2),
        told_row("c", 0.5, **base | {"growth_of": "sizes"}),
        told_row("d", 0.7, **base, blank=False, initial_strength_bias=-10.0),
        told_row("e", 1.0, task="odd_first"),
    ]
    table = TABLES["ablations"](parse(rows), "best")
    column = table.header.index("odd_first")
    found = {line[0]: line[column] for line in table.rows if line[column] != EMPTY}
    assert found == {
        "nothing": "1 of 2: 60.00 / 60.00",
        "the other way to grow": "0 of 1: 50.00 / 50.00",
        "--no-blank --initial-strength-bias -10.0": "0 of 1: 70.00 / 70.00",
    }
    assert len(table.rows) == 17


def test_settings_of_the_whole_grid_have_a_line_with_every_seed():
    def found(digest, coarse, **more):
        settings = {"task": "double", "model": "lantm_s", "lr": 0.02, "init": "uniform"} | more
        command = configure("paper", **settings).command
        return row(digest, coarse, **settings) | {"command": command}

    rows = [found("a", 0.5, seed=3), found("b", 1.0, seed=1), found("c", 0.2, clip=1.0)]
    table = TABLES["lantm_s"](parse(rows), "best")
    assert table.header == ["setting", "double", "bigram_flip"]
    assert len(table.rows) == 12
    assert [line for line in table.rows if set(line[1:]) != {EMPTY}] == [
        ["--decay-delay 300 --init uniform --lr 0.02", "100, 50.00", EMPTY]
    ]


def test_models_that_our_recipe_makes_one_machine_refer_to_each_other():
    rows = [told_row("a", 1.0, task="copy", model="slantm")]
    table = TABLES["main"](parse(rows), "best")
    column = table.header.index("our recipe")
    found = {tuple(line[:3]): line[column] for line in table.rows if line[column] != EMPTY}
    assert found == {
        ("copy", "small", "slantm"): "100 (1 of 1)",
        ("copy", "small", "slantm_s"): "as slantm",
    }


def test_a_space_has_a_line_and_budgets_are_kept_apart():
    within = {"batches": 2500, "starts": 1}
    rows = [
        told_row("a", 1.0, task="copy", space="plane"),
        told_row("b", 0.9, task="copy", space="circle", **within),
        told_row("c", 0.1, task="reverse", space="line*circle", **within),
        told_row("d", 0.3, task="repeat_copy", space="plane", **within),
        told_row("e", 0.8, task="copy", space="plane", **within, seed=2),
        told_row("f", 0.4, task="copy", space="circle", starts=2),
    ]
    table = TABLES["spaces"](parse(rows), "best")
    others = ["copy, as it is", "copy, --starts 2", "repeat_copy, --batches 2500 --starts 1"]
    assert table.header == ["space", "copy", "reverse", *others]
    assert table.rows == [
        [
            *("plane", "0 of 1: 80.00 / 80.00"),
            *(EMPTY, "1 of 1: 100 / 100", EMPTY),
            "0 of 1: 30.00 / 30.00",
        ],
        ["circle", "1 of 1: 90.00 / 90.00", EMPTY, EMPTY, "0 of 1: 40.00 / 40.00", EMPTY],
        ["line*circle", EMPTY, "0 of 1: 10.00 / 10.00", EMPTY, EMPTY, EMPTY],
    ]


def test_the_summary_counts_what_reproduced():
    text = summary(parse([row("1", 0.99), row("2", 0.2, task="reverse"), *OURS]), "best")
    assert "2 runs with the paper's machine and the paper's training: 2 of the 112 cells" in text
    assert "There are 2 cells" in text
    assert "In 1 of them our best run comes within 2 points" in text
    assert "| copy | 1 | 0 | 0 | 1 |" in text
    assert "| lantm | 1 | 0 | 1 | 2 |" in text
    assert "none of our runs comes to 10%:\n\n- none" in text
    assert "succeeds in 1 of 2 cases" in text
    assert "our machine and our training: 1 of 8 tasks (copy); runs: 1 of 1" in text


def test_the_summary_names_what_the_paper_solved_and_we_did_not_begin_to():
    rows = [row("1", 0.01), row("2", 0.01, regime="large"), row("3", 0.05, model="slantm")]
    text = summary(parse(rows), "best")
    assert "in 3 of those none of our runs comes to 10%" in text
    assert "- lantm: copy, copy large\n- slantm: copy\n" in text


def test_the_summary_of_nothing_claims_nothing():
    text = summary([], "best")
    assert "0 of the 112 cells" in text
    assert "There are 0 cells" in text
    assert "none run so far" in text


def test_the_checkpoint_can_be_the_last():
    last = table("main", checkpoint="last")
    assert line(last, "copy", "small", "lantm")["ours coarse"] == "50.00"
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
    panels = draw_differences(parse([*rows, *OURS])).axes[:4]
    assert [panel.get_title() for panel in panels] == [
        f"{whose}, {name}"
        for whose in ("ours (the paper's machine and training)", "paper")
        for name in ("fine", "coarse")
    ]
    texts = [[text.get_text() for text in panel.texts] for panel in panels]
    assert [len(part) for part in texts] == [64] * 4
    assert texts[1].count(EMPTY) == (63 if rows else 64)
    assert EMPTY not in texts[2] + texts[3]


def test_successes_have_a_panel_for_each_kind_and_regime():
    panels = draw_successes(parse([*ROWS, *OURS])).axes[:6]
    assert [panel.get_title() for panel in panels] == [
        f"{whose}, {regime} regime"
        for regime in ("small", "large")
        for whose in (
            "the paper's machine and training",
            "the paper's machine, our training",
            "our machine and training",
        )
    ]
    shown = [[t.get_text() for t in panel.texts if t.get_text() != EMPTY] for panel in panels]
    assert shown == [["1/1", "1/3", "0/1"], [], ["1/1"], ["0/1"], ["1/2"], []]
    assert {len(panel.texts) for panel in panels} == {8 * 11}


def test_a_picture_with_other_numbers_has_another_digest():
    digests = {picture_digest(draw_successes(parse(rows))) for rows in (ROWS, ROWS, ROWS[1:])}
    assert len(digests) == 2


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
        assert cli.main(["report", str(results), "--differences", name]) == 0
        told = capsys.readouterr().out.removeprefix("differences: ").strip()
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


def test_a_folder_is_made_anew(results, tmp_path, capsys):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "words.md").write_text("<!-- report summary -->\n<!-- end -->\n")
    (docs / "plain.md").write_text("no marks\n")
    assert cli.main(["report", "--update", "docs"]) == 0
    assert summary(parse(ROWS), "best") in (docs / "words.md").read_text()
    assert (docs / "plain.md").read_text() == "no marks\n"
    for name in PICTURES:
        assert_picture(docs / "images" / f"{name}.png")
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(PICTURES)


@pytest.mark.parametrize("path", ["docs", "docs/other.md"])
def test_a_page_of_other_results_says_so(path, results, tmp_path):
    results.with_name("other.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    page = tmp_path / "docs" / "other.md"
    page.parent.mkdir()
    page.write_text("<!-- results other.jsonl -->\n<!-- report runs -->\n<!-- end -->\n")
    assert cli.main(["report", "--update", path]) == 0
    assert FORMATS["markdown"](table("runs", ROWS[:1])) in page.read_text()


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
        ("--update results", "results must have a page with lines <!-- report TABLE -->"),
        ("--update open.md", "page must have lines <!-- report TABLE -->"),
        ("--update wrong.md --table main", "--update makes what its page asks for; got --table"),
        ("--update wrong.md", "got 'mian' (did you mean 'main'?)"),
        ("--update other.md", "got 'bets' (did you mean 'best'?)"),
        ("--update lost.md", "cannot use results/lost.jsonl: No such file or directory"),
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
    (tmp_path / "lost.md").write_text(
        "<!-- results lost.jsonl -->\n<!-- report main -->\n<!-- end -->\n"
    )
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
        config = configure("plain", **row["config"])
        assert (config.digest, config.command) == (row["digest"], row["command"])


def test_pages_have_what_the_results_give():
    pages = [page.read_text() for page in (ROOT / "docs").glob("*.md")]
    pages = [page for page in pages if "<!-- report" in page]
    asked = re.findall(r"<!-- report (\w+)", "".join(pages))
    assert sorted(asked) == sorted([*TABLES, "summary"])
    for page in pages:
        results = parse(read_results(source_of(page, ROOT / "results/results.jsonl")))
        assert update_page(page, results, "best") == page, "lantm report --update docs"


def test_the_page_of_peers_has_their_results():
    page = (ROOT / "docs/peers.md").read_text()
    assert set(re.findall(r"<!-- report (\w+)", page)) == {"peers", "lengths"}
    assert source_of(page, ROOT / "results/results.jsonl") == ROOT / "results/peers.jsonl"


def test_the_page_of_peers_counts_their_parameters():
    page = (ROOT / "docs/peers.md").read_text()
    counts = re.findall(r"^\| `(\w+)` \| .* \| (\d+) \|$", page, re.M)
    assert [name for name, _ in counts] == list(PEERS)
    for name, count in counts:
        assert count_parameters(ModelConfig(model=name), "copy") == int(count), name


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_what_the_results_give(name):
    results = parse(read_results(ROOT / "results/results.jsonl"))
    with Image.open(ROOT / "docs" / "images" / f"{name}.png") as picture:
        assert picture.info["Description"] == picture_digest(PICTURES[name](results)), (
            "lantm report --update docs"
        )
