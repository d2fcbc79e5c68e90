"""Models side by side: what hand-made results give."""

import json

import equinox as eqx
import jax
import pytest

from lantm import cli
from lantm.studies.report import TABLES, draw_curves, parse
from lantm.studies.report.peers import entries
from lantm.studies.results import course, result_row
from lantm.studies.sweep.grids import GRIDS, PEERS
from lantm.training.lengths import evaluate_lengths, save_lengths
from test_cli import assert_picture, copy_of, refused

pytest_plugins = ["tiny"]

EMPTY = "·"


def row(model, lr, seed, coarse, *, task="copy", validation=None, **more):
    """A result with scores at 1x, 2x, ...; without any a run that failed."""
    scores = [
        {"checkpoint": "best", "source": n, "examples": 32, "fine": share**0.5, "coarse": share}
        for n, share in zip((1, 2, 4, 10), coarse, strict=False)
    ]
    config = {"task": task, "model": model, "regime": "small", "seed": seed, "batches": 10}
    told = {"grid": "peers", "seconds": 50.0, "test": scores, "versions": {}, "parameters": 123}
    told |= {"status": "finished"} if coarse else {"status": "failed", "error": "no number"}
    check = validation if validation is not None else (coarse or [0, 0])[1]
    told |= {"validation": {"coarse": check, "fine": check**0.5}, "trained": 1000}
    command = f"lantm train {task} --model {model} --lr {lr}" + f" --seed {seed}" * (seed > 1)
    digest = f"{task}{model}{lr}{seed}"
    return {"digest": digest, "config": config, "command": command, "learned": None} | told | more


def at(size, fine, slots=None):
    return {
        **{"size": size, "examples": 8, "fine": fine, "coarse": fine**2},
        **{"checkpoint": "best", "slots": slots},
    }


ROWS = [
    row("ntm", 0.001, 1, [1.0, 0.2], validation=0.2),
    row("ntm", 0.001, 2, [1.0, 0.9], validation=0.4),
    row("ntm", 0.01, 1, [1.0, 1.0, 0.5], validation=0.8, learned=200),
    row("ntm", 0.01, 2, [0.96, 0.5, 0.0], validation=0.4, learned=600),
    row("ntm", 0.01, 3, [], validation=1.0),
    row("lantm", 0.01, 1, [0.94, 0.9]),
    row("gru", 0.01, 1, [0.0, 0.0], task="reverse"),
]


def table(name="peers", rows=ROWS):
    return TABLES[name](parse(rows), "best")


def line(found, task, model):
    (cells,) = [cells for cells in found.rows if cells[:2] == [task, model]]
    return dict(zip(found.header, cells, strict=True))


def test_validation_selects_the_settings_and_all_their_seeds_are_shown():
    cells = line(table(), "copy", "ntm")
    assert cells["command"] == "lantm train copy --model ntm --lr 0.01"
    assert (cells["settings"], cells["parameters"]) == ("2", "123")
    assert cells["coarse 1x"] == "65.33 (0.00 to 100)", "the run that failed counts"
    assert cells["coarse 4x"] == "16.67 (0.00 to 50.00)"
    assert cells["coarse 10x"] == EMPTY, "nothing was measured"


def test_several_starts_are_a_competitor_of_their_own():
    several = row("lantm", 0.005, 1, [1.0, 1.0], validation=1.0)
    several["config"] = several["config"] | {"starts": 8}
    found = [cells[1] for cells in table(rows=[*ROWS, several]).rows if cells[0] == "copy"]
    assert found == ["lantm, 8 starts", "lantm", "ntm"]


def test_a_failed_run_has_nothing_right_whatever_its_validation_was():
    rows = [row("ntm", 0.1, 1, [], validation=1.0), row("ntm", 0.2, 1, [0.3, 0.1])]
    assert line(table(rows=rows), "copy", "ntm")["command"].endswith("0.2")


def test_who_learned_and_when():
    cells = line(table(), "copy", "ntm")
    assert (cells["learned"], cells["solved"]) == ("2 of 3", "1 of 3")
    assert (cells["batches"], cells["seconds"]) == ("400", "20"), "medians; 50 s for 1000 batches"
    cells = line(table(), "copy", "lantm")
    assert (cells["learned"], cells["solved"]) == ("0 of 1", "1 of 1")
    assert (cells["batches"], cells["seconds"]) == (EMPTY, EMPTY)


def test_the_best_model_of_a_task_comes_first():
    assert [entry.model for entry in entries(parse(ROWS))] == ["lantm", "ntm", "gru"]


def test_only_sizes_beyond_training_count_and_only_the_largest_memory():
    lengths = [
        [at(64, 0.0), at(65, 0.5), at(66, 0.7)],
        [at(65, 0.1), at(65, 0.8, slots=9), at(66, 1.0, slots=9)],
    ]
    rows = [row("ntm", 0.1, i + 1, [1.0, 1.0], lengths=lengths[i]) for i in range(2)]
    cells = line(table("lengths", [*rows, *ROWS[5:]]), "copy", "ntm")
    assert (cells["sizes"], cells["n"]) == ("65 to 66 (2)", "2")
    assert (cells["best"], cells["mean"]) == ("90.00", "75.00")
    assert len(table("lengths", [*rows, *ROWS[5:]]).rows) == 1, "the others were not measured"


def test_curves_show_means_ranges_and_the_sizes_of_training():
    rows = [
        row("ntm", 0.1, 1, [1.0, 1.0], lengths=[at(10, 1.0), at(80, 0.4)]),
        row("ntm", 0.1, 2, [1.0, 1.0], lengths=[at(10, 1.0), at(80, 0.6)]),
        row("mine", 0.1, 1, [1.0, 1.0], lengths=[at(10, 0.5), at(80, 0.1)]),
    ]
    (axes,) = draw_curves(parse(rows)).axes
    lines = {part.get_label(): part.get_xydata().tolist() for part in axes.lines}
    assert lines == {"ntm": [[10, 1.0], [80, 0.5]], "mine": [[10, 0.5], [80, 0.1]]}
    band = axes.collections[1].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (0.4, 1.0)
    (shaded,) = axes.patches
    assert (shaded.get_x(), shaded.get_x() + shaded.get_width()) == (1.5, 64.5)


def test_no_curves_without_scores():
    with pytest.raises(ValueError, match="no result has scores by size"):
        draw_curves(parse(ROWS))


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(part) + "\n" for part in ROWS[:5]))
    more = row("lantm", 0.1, 1, [1.0, 1.0], lengths=[at(10, 1.0), at(80, 0.4)])
    (tmp_path / "b.jsonl").write_text(json.dumps(more) + "\n")
    assert cli.main(["compare", "a.jsonl", "b.jsonl", "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert "copy,ntm,lantm train copy --model ntm --lr 0.01" in shown
    assert "80 to 80 (1),40.00,40.00,1" in shown
    assert cli.main(["compare", "a.jsonl", "b.jsonl", "--models", "lantm"]) == 0
    assert "ntm" not in capsys.readouterr().out.replace("lantm", "")
    assert cli.main(["compare", "b.jsonl", "--figure", "lengths"]) == 0
    assert_picture(tmp_path / "lengths.png")
    (tmp_path / "none.jsonl").write_text("")
    assert cli.main(["compare", "none.jsonl"]) == 0
    assert "no results so far" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["none.jsonl"], "cannot use none.jsonl: No such file or directory"),
        (["a.jsonl", "--models", "mtn"], "model must be one of ntm; got 'mtn'"),
        (["a.jsonl", "--format", "html"], "format must be one of terminal, markdown, csv, latex"),
        (["a.jsonl", "--figure", "x.png"], "no result has scores by size"),
        (["bad.jsonl"], "bad.jsonl, line 1 is no result: scores of size 3 cannot be 2"),
    ],
)
def test_mistakes_get_one_line(options, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    bad = row("ntm", 0.1, 1, [1.0, 1.0], lengths=[at(3, 2.0)])
    (tmp_path / "bad.jsonl").write_text(json.dumps(bad) + "\n")
    assert said in refused(capsys, "compare", *options)


def test_every_peer_is_tried_in_three_ways_within_the_same_budget():
    tried = GRIDS["trial"].configs()
    assert {config.model.model for config in tried} == set(PEERS)
    budget = {(c.batches, c.clip, c.regime, c.test_examples, c.optimiser, c.starts) for c in tried}
    assert budget == {(2000, 1.0, "small", 320, "adam", 1)}
    for name in PEERS:
        own = [config for config in tried if config.model.model == name]
        assert (len({c.digest for c in own}), {c.seed for c in own}) == (3, {1})
        assert [c.rate_by for c in own] == ["clock", "clock", "performance"], "and our training"


def test_every_task_is_trained_in_the_way_that_the_trial_selects():
    tried = GRIDS["trial"]._replace(models=["gru", "lantm"]).configs()

    def ended(config, share):
        found = row(config.model.model, config.lr, 1, [1.0, 1 - share], validation=share)
        return found | {"digest": config.digest, "config": config.flat()}

    rows = [
        ended(config, share)
        for config, share in zip(tried, [0.1, 0.7, 0.0, 0.7, 0.2, 0.9], strict=True)
    ]
    for name in ("peers", "chomsky"):
        grid = GRIDS[name]._replace(models=["gru", "lantm"])
        found = grid.configs({}, rows)
        places = {(c.task, c.model.model, c.starts, c.seed) for c in found}
        assert len(places) == len(found) == len(GRIDS[name].tasks) * 3 * 3, "each place once"
        ways = {(c.model.model, c.starts, c.lr, c.rate_by) for c in found}
        assert ways == {
            ("gru", 1, 0.003, "clock"),
            ("lantm", 1, 0.005, "performance"),
            ("lantm", 8, 0.005, "performance"),
        }
        with pytest.raises(ValueError, match=r"not tried in all ways: lantm$"):
            grid.configs({}, rows[:4])


# ---- what a run tells


def test_a_row_has_the_course_of_the_run(trained):
    told = course(trained)
    rows = list(trained.metrics())
    assert told["trained"] == 20
    assert told["learned"] is None, "20 batches are too few"
    assert told["validation"]["coarse"] == max(r.get("validation_coarse", 0) for r in rows)
    learned = jax.tree.leaves(eqx.filter(trained.machine(), eqx.is_array))
    assert result_row(trained)["parameters"] == sum(leaf.size for leaf in learned)


def test_learned_is_the_first_good_row_with_all_sizes(trained, tmp_path):
    run = copy_of(trained, tmp_path)
    rows = [
        {"batch": 100, "coarse": 0.97, "share": 0.5},
        {"batch": 200, "coarse": 0.94, "share": 1.0},
        {"batch": 300, "coarse": 0.95, "share": 1.0},
        {"batch": 400, "coarse": 0.99, "share": 1.0},
    ]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(part) + "\n" for part in rows))
    assert course(run)["learned"] == 300
    (run.path / "metrics.jsonl").unlink()
    assert course(run) == {}


def test_scores_by_size_are_kept_with_a_run_and_in_its_row(trained, tmp_path):
    run = copy_of(trained, tmp_path)
    scores = evaluate_lengths(run, [2, 5], each=7)
    assert scores == evaluate_lengths(run, [2, 5], each=7), "the same problems every time"
    assert [(score.size, score.examples) for score in scores] == [(2, 7), (5, 7)]
    assert "lengths" not in result_row(run)
    save_lengths(run, scores[1:])
    save_lengths(run, scores)
    kept = result_row(run)["lengths"]
    assert [(part["size"], part["fine"]) for part in kept] == [(s.size, s.fine) for s in scores]
    (run.path / "lengths.json").write_text('[{"size": 3}]')
    with pytest.raises(ValueError, match=r"lengths\.json is damaged"):
        result_row(run)
