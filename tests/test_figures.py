"""What figures show is what the machine did."""

import dataclasses
import re
import shutil
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.colors import to_rgb
from PIL import Image, ImageSequence

import lantm
from lantm import cli
from lantm.inspection.figures import FIGURES, animate, animation, draw, gallery
from lantm.inspection.figures.episode import observe
from lantm.inspection.figures.parts import way
from lantm.inspection.picture import READ, WRITE, head_looks
from lantm.training.evaluation import Evaluation
from spaces import one_head

pytest_plugins = ["tiny"]

SIZE, SEED = 5, 3
PROBLEM = {"size": SIZE, "seed": SEED}
KEPT = ["000005", "000010", "000015", "1000020"]


@pytest.fixture(scope="module")
def run_of(tiny, tmp_path_factory):
    """Runs as training leaves them, with machines that have learned nothing."""
    folder = tmp_path_factory.mktemp("runs")

    def make(model, kept=(), **settings):
        run = lantm.Run.create(tiny(model=model, keep_all=bool(kept), **settings), folder)
        for seed, name in enumerate(["best", *kept]):
            shape, key = (run.config.model, run.task.vocabulary), jax.random.key(seed)
            machine = lantm.build_machine(*shape, key=key)
            lantm.save_tree(run.weights_path(name), machine, {"config": run.digest})
        return run

    return make


def traced(run, checkpoint="best"):
    """The inputs, and both phases as the machine itself tells them."""
    inputs, answers = run.task.sample(np.random.default_rng(SEED), SIZE, 1)
    trace = run.machine(checkpoint).trace(jnp.asarray(inputs), answers.shape[1])
    right = (np.argmax(trace.logits[0], axis=-1) == answers[0]).sum()
    return inputs[0], one_head(jax.tree.map(lambda a: np.asarray(a[0]), trace), 1), right


def marks(axes):
    """Of writes, reads, start and end of writes, start and end of reads: the places."""
    return [np.asarray(np.ma.getdata(part.get_offsets())) for part in axes.collections]


def strengths_shown(axes):
    """The square of the share of the colour of writes in each fill."""
    shares = (1 - axes.collections[0].get_facecolor()[:, :3]) / (1 - np.array(to_rgb(WRITE)))
    np.testing.assert_allclose(shares, shares[:, :1].repeat(3, axis=1), atol=1e-6)
    return shares[:, 0] ** 2


def explained(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


def test_plane_shows_the_coordinates_and_the_strengths(run_of):
    run = run_of("lantm")
    figure = draw("plane", run, **PROBLEM)
    _, trace, right = traced(run)
    writes, reads, *ends = marks(figure.axes[0])
    np.testing.assert_allclose(writes, trace.encode.write.key, atol=1e-6)
    np.testing.assert_allclose(reads, trace.decode.read.key, atol=1e-6)
    np.testing.assert_allclose(strengths_shown(figure.axes[0]), trace.encode.strength, atol=1e-6)
    np.testing.assert_array_equal(
        np.concatenate(ends), [writes[0], writes[-1], reads[0], reads[-1]]
    )
    lines = [(line.get_color(), line.get_xydata()) for line in figure.axes[0].lines]
    assert [colour for colour, _ in lines] == [WRITE, READ]
    np.testing.assert_array_equal(lines[0][1], writes)
    np.testing.assert_array_equal(lines[1][1], reads)
    assert figure.get_suptitle() == f"tiny, size 5: {right} of 6 symbols right (another machine)"
    assert explained(figure) == ["write, strength 1", "0.1", "0", "read", "start", "end"]


def test_plane_shows_every_head_in_its_colour(run_of):
    run = run_of("lantm", read_heads=2, write_heads=3)
    figure = draw("plane", run, **PROBLEM)
    episode = observe(run.machine(), run.task, **PROBLEM)
    trace = episode.trace
    keys = [trace.encode.write.key[:, i] for i in range(3)]
    keys += [trace.decode.read.key[:, i] for i in range(2)]
    colours = [look.colour for look in head_looks("write", 3) + head_looks("read", 2)]
    assert len(set(colours)) == 5
    for places, line, way_of_head, colour in zip(
        marks(figure.axes[0]), figure.axes[0].lines, keys, colours, strict=False
    ):
        np.testing.assert_allclose(places, way_of_head, atol=1e-6)
        np.testing.assert_array_equal(line.get_xydata(), places)
        assert line.get_color() == colour
    assert explained(figure) == [
        *("write 1, strength 1", "0.1", "0", "write 2", "write 3"),
        *("read 1", "read 2", "start", "end"),
    ]
    assert "head" not in figure.get_suptitle()


def test_one_head_has_no_number():
    assert head_looks("write", 1) == [("write", WRITE)]
    assert head_looks("read", 2)[0] == ("read 1", READ)
    assert len(head_looks("read", 11)) == 11, "colours come again"


@pytest.mark.parametrize("name", ["plane", "lines", "flat", "memory"])
def test_legend_of_many_heads_is_inside(run_of, name):
    figure = draw(name, run_of("lantm", read_heads=4, write_heads=3), **PROBLEM)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


@pytest.fixture(scope="module")
def idle(run_of):
    """Three read heads, of which the first reads nothing that was written."""
    run = run_of("lantm", read_heads=3)
    episode = observe(run.machine(), run.task, **PROBLEM)
    weights = np.array(episode.trace.decode.weights)
    weights[:, 0] = np.eye(weights.shape[2])[0]
    decode = episode.trace.decode._replace(weights=weights)
    return dataclasses.replace(episode, trace=episode.trace._replace(decode=decode))


def heat_maps(figure):
    """What the heat maps of a figure show, by title."""
    return {axes.get_title(): axes.images[0].get_array() for axes in figure.axes if axes.images}


def test_memory_shows_the_two_heads_that_read_most(idle):
    maps = heat_maps(gallery.memory(idle))
    assert list(maps) == ["read head 2 of 3", "read head 3 of 3"]
    np.testing.assert_array_equal(list(maps.values()), idle.weights[1:, SIZE + 1 :].swapaxes(1, 2))


def test_weights_show_every_head(idle):
    maps = heat_maps(gallery.weights(idle))
    assert list(maps) == [f"read head {i} of 3" for i in (1, 2, 3)]
    np.testing.assert_array_equal(list(maps.values()), idle.weights.swapaxes(1, 2))


@pytest.mark.parametrize("heads", [1, 2])
def test_slots_of_every_head(run_of, heads):
    run = run_of("dnc", read_heads=heads)
    maps = heat_maps(draw("memory", run, **PROBLEM))
    weights = observe(run.machine(), run.task, **PROBLEM).trace.decode.weights
    np.testing.assert_array_equal(list(maps.values()), np.transpose(weights, (1, 2, 0)))
    assert list(maps) == {1: [""], 2: ["read head 1 of 2", "read head 2 of 2"]}[heads]


def test_lines_have_a_row_for_every_input_symbol_and_one_for_the_reads(run_of):
    run = run_of("slantm")
    axes = draw("lines", run, **PROBLEM).axes[0]
    inputs, trace, _ = traced(run)
    writes, reads = marks(axes)[:2]
    np.testing.assert_array_equal(writes[:, 1], np.arange(SIZE + 1))
    assert reads.shape == (SIZE + 1, 2)
    assert reads[0, 1] > writes[-1, 1]
    assert np.all(np.diff(reads[:, 1]) > 0)
    np.testing.assert_allclose(strengths_shown(axes), trace.encode.strength, atol=1e-6)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["^", *map(str, inputs[1:]), "reads"]
    assert axes.yaxis_inverted()
    # The line is the one along which the keys of both heads vary most.
    keys = np.concatenate([trace.encode.write.key, trace.decode.read.key])
    shown = np.concatenate([writes, reads])[:, 0]
    largest = np.linalg.eigvalsh(np.cov(keys.T, bias=True))[-1]
    np.testing.assert_allclose(shown.var(), largest, rtol=1e-5)
    _, residual, *_ = np.linalg.lstsq(np.c_[keys, np.ones(len(keys))], shown)
    np.testing.assert_allclose(residual, 0, atol=1e-8)


def test_flat_has_writes_left_and_reads_right(run_of):
    run = run_of("slantm")
    left, right = draw("flat", run, **PROBLEM).axes
    inputs, trace, _ = traced(run)
    writes, start, end = marks(left)
    np.testing.assert_array_equal([start[0], end[0]], writes[[0, -1]])
    reads, start, end = marks(right)
    np.testing.assert_array_equal([start[0], end[0]], reads[[0, -1]])
    assert [text.get_text() for text in left.texts] == [str(token) for token in inputs[1:]]
    np.testing.assert_array_equal([text.xy for text in left.texts], writes[1:])
    offsets = [np.linalg.norm(text.get_position()) for text in left.texts]
    np.testing.assert_allclose(offsets, 13, err_msg="as far from its point as all others")
    # Of the variance in space, only that along the least of three directions is lost.
    keys = np.concatenate([trace.encode.write.key, trace.decode.read.key])
    lost = np.cov(keys.T, bias=True).trace() - np.concatenate([writes, reads]).var(axis=0).sum()
    np.testing.assert_allclose(lost, np.linalg.eigvalsh(np.cov(keys.T, bias=True))[0], atol=1e-6)
    assert np.all(distances(writes) <= distances(trace.encode.write.key) + 1e-6)


def test_sphere_shows_the_coordinates_in_space_from_their_side(run_of):
    run = run_of("slantm")
    axes = draw("sphere", run, **PROBLEM).axes[0]
    _, trace, _ = traced(run)
    writes, reads, *_ = (np.transpose(part._offsets3d) for part in axes.collections)
    np.testing.assert_allclose(writes, trace.encode.write.key, atol=1e-6)
    np.testing.assert_allclose(reads, trace.decode.read.key, atol=1e-6)
    up, round_ = np.radians([axes.elev, axes.azim])
    eye = [np.cos(up) * np.cos(round_), np.cos(up) * np.sin(round_), np.sin(up)]
    assert np.quantile(np.concatenate([writes, reads]) @ eye, 0.1) > 0
    assert not axes.axison, "no panes"


def test_weights_are_those_of_both_phases(run_of):
    run = run_of("ram")
    axes = draw("weights", run, **PROBLEM).axes[0]
    inputs, trace, _ = traced(run)
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(
        shown, np.concatenate([trace.encode.weights, trace.decode.weights]).T, atol=1e-6
    )
    np.testing.assert_allclose(shown.sum(axis=0), 1, atol=1e-6)
    assert axes.lines[0].get_xdata() == [SIZE + 0.5, SIZE + 0.5]
    memories = [label.get_text() for label in axes.get_yticklabels()]
    assert memories == ["initial", "^", *map(str, inputs[1:])]
    assert [label.get_text() for label in axes.get_xticklabels()][: SIZE + 1] == memories[1:]


@pytest.mark.parametrize(("bend", "said"), [(0.0, False), (1.0, True)])
def test_lines_say_when_one_line_is_too_few(run_of, bend, said):
    episode = observe(run_of("lantm").machine(), run_of("lantm").task, **PROBLEM)
    around = np.linspace(0, 6, SIZE + 1)
    keys = np.column_stack([around * (1 - bend) + np.cos(around), bend * np.sin(around)])[:, None]
    phases = (episode.trace.encode, episode.trace.decode)
    encode, decode = (
        phase._replace(
            write=phase.write._replace(key=keys) if phase.write else None,
            read=phase.read._replace(key=keys),
        )
        for phase in phases
    )
    bent = dataclasses.replace(episode, trace=episode.trace._replace(encode=encode, decode=decode))
    assert ("cannot show" in gallery.lines(bent).axes[0].get_title()) is said


@pytest.mark.parametrize(("asked", "first"), [(None, "000010"), ("000015", "000015")])
def test_training_shows_the_middle_and_the_end(run_of, asked, first):
    run = run_of("lantm", KEPT)
    settings = PROBLEM if asked is None else PROBLEM | {"checkpoint": asked}
    figure = draw("training", run, **settings)
    for axes, name in zip(figure.axes, [first, KEPT[-1]], strict=True):
        _, trace, right = traced(run, name)
        np.testing.assert_allclose(marks(axes)[0], trace.encode.write.key, atol=1e-6)
        assert axes.get_title() == f"batch {int(name):,}: {right} of 6 symbols right"


def test_lengths_show_the_scores_and_the_range_of_training(run_of, monkeypatch):
    def scores(_machine, batches):
        parts = {
            batch.answers.shape[1] - 1: Evaluation(len(batch.answers), 0.75, 0.5)
            for batch in batches
        }
        return Evaluation(1, 1.0, 1.0, parts)

    monkeypatch.setattr(gallery, "evaluate_batches", scores)
    figure = draw("lengths", run_of("lantm"), multiples=[1, 2], examples=10)
    axes = figure.axes[0]
    fine, coarse = (line.get_xydata() for line in axes.lines)
    np.testing.assert_allclose(fine, [[n, 0.75] for n in (2, 3, 4, 5, 6)])
    np.testing.assert_allclose(coarse, [[n, 0.5] for n in (2, 3, 4, 5, 6)])
    band = axes.collections[0].get_paths()[0].vertices
    bounds = np.concatenate(gallery.interval(np.array([0.5]), np.array([3])))
    np.testing.assert_allclose([band[:, 1].min(), band[:, 1].max()], bounds)
    assert "3 to 5 problems" in figure.get_suptitle()
    assert figure.get_suptitle().endswith("(another machine)"), "its sizes are not the paper's"
    shaded = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    np.testing.assert_allclose([shaded.x0, shaded.x1], [1.5, 3.5])


def test_animation_has_a_frame_for_every_kept_checkpoint(run_of, tmp_path):
    animate(run_of("lantm", KEPT), tmp_path / "memory.gif", **PROBLEM, fps=2)
    with Image.open(tmp_path / "memory.gif") as film:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(film)]
    assert len(frames) == len(KEPT)
    assert times == [500, 500, 500, 2000], "the last one stays"
    assert all(np.any(a != b) for a, b in pairwise(frames))


def test_animation_shows_the_same_heads_in_all_frames(run_of, tmp_path, monkeypatch):
    """Those that read most in the end."""
    run = run_of("lantm", KEPT, read_heads=3)
    shown = []
    monkeypatch.setattr(animation, "draw_weights", lambda _axes, _episode, head: shown.append(head))
    animate(run, tmp_path / "memory.gif", **PROBLEM, fps=1)
    last = observe(run.machine(KEPT[-1]), run.task, **PROBLEM)
    assert len(last.busiest) == 2
    assert shown == last.busiest * (len(KEPT) + 1), "the last frame stays for two seconds"


@pytest.mark.parametrize("space", ["hyperbolic", "quaternions"])
def test_chart_shows_the_keys_as_their_space_does(run_of, space):
    """In the disc with its outline, or in space; the axes say what they are."""
    run = run_of("lantm", space=space)
    _, trace, _ = traced(run)
    keys = np.concatenate([trace.encode.write.key, trace.decode.read.key])
    chart = lantm.find_space(space).chart(keys)
    (axes,) = draw("chart", run, **PROBLEM).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == chart.axes[:2]
    if space == "hyperbolic":
        writes, reads = marks(axes)[:2]
        np.testing.assert_allclose(np.concatenate([writes, reads]), chart.points)
        outline = axes.lines[-1].get_xydata()
        np.testing.assert_allclose(np.linalg.norm(outline, axis=1), 1)
    else:
        assert axes.get_zlabel() == chart.axes[2]
        shown = np.stack(axes.collections[0]._offsets3d, axis=-1)
        np.testing.assert_allclose(shown, chart.points[: len(shown)])


def test_ways_on_a_torus_do_not_cross_the_square():
    points = np.array([[0, 0], [3, 0], [-3, 0.1], [-2, 3], [-2, -3]])
    shown = way(points, True)
    assert np.isnan(shown[:, 0]).tolist() == [False, False, True, False, False, True, False]
    np.testing.assert_array_equal(shown[~np.isnan(shown[:, 0])], points)
    np.testing.assert_array_equal(way(points, False), points)


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg")
def test_animation_as_mp4(run_of, tmp_path):
    animate(run_of("lantm", KEPT), tmp_path / "memory.mp4", **PROBLEM, fps=2)
    assert (tmp_path / "memory.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize(
    ("file", "begin"),
    [(None, b"\x89PNG"), ("x.png", b"\x89PNG"), ("x", b"\x89PNG"), ("x.pdf", b"%PDF")],
)
def test_figure_command_writes_by_the_suffix(run_of, tmp_path, monkeypatch, capsys, file, begin):
    monkeypatch.chdir(tmp_path)
    out = [] if file is None else ["--out", file]
    assert cli.main(["figure", "plane", str(run_of("lantm").path), "--size", "5", *out]) == 0
    written = tmp_path / {None: "plane.png", "x": "x.png"}.get(file, file)
    assert written.read_bytes().startswith(begin)
    assert capsys.readouterr().out == f"figure: {written.name}\n"


@pytest.mark.parametrize(
    ("model", "name", "settings", "said"),
    [
        ("slantm", "plane", {}, "figure plane is for keys of two numbers"),
        ("lantm", "sphere", {}, "figure sphere is for keys on a sphere"),
        ("ram3", "sphere", {}, "figure sphere is for keys on a sphere"),
        *(
            ("lstm", name, {}, "must have a memory")
            for name in ("lines", "plane", "flat", "sphere", "weights")
        ),
        ("lantm", "training", {}, "has no checkpoints of its training; train with --keep-all"),
        ("lantm", "plnae", {}, "did you mean 'plane'"),
        ("lantm", "plane", {"size": 0}, "size must be a whole number of at least 1, got 0"),
        ("lantm", "plane", {"seed": -1}, "seed must be a whole number from 0, got -1"),
        ("lantm", "plane", {"checkpoint": "7"}, "checkpoint must be one of best; got '7'"),
        ("lantm", "plane", {"multiples": [1]}, "must be one of checkpoint, size, seed"),
        ("lantm", "lengths", {"size": 3}, "must be one of checkpoint, multiples, examples"),
    ],
)
def test_what_does_not_fit_is_refused(run_of, model, name, settings, said):
    run = run_of("ram", key_size=3) if model == "ram3" else run_of(model)
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        draw(name, run, **settings)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("file", "kept", "said"),
    [
        ("x.avi", KEPT, "must be a .gif or .mp4 file"),
        ("x.mp4", KEPT, "needs the program ffmpeg"),
        ("x.gif", (), "train with --keep-all"),
    ],
)
def test_animations_that_cannot_be(run_of, monkeypatch, tmp_path, capsys, file, kept, said):
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    with pytest.raises(SystemExit) as stop:
        cli.main(["animate", str(run_of("lantm", kept).path), "--out", str(tmp_path / file)])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / file).exists()


def test_kept_checkpoints_by_number(run_of):
    assert run_of("lantm", KEPT).kept == KEPT
    assert run_of("lantm").kept == []


def test_every_figure_says_what_it_is():
    assert all(figure.__doc__ for figure in FIGURES.values())


def test_every_figure_is_on_the_page():
    page = (Path(__file__).parents[1] / "docs/figures.md").read_text()
    for name in FIGURES:
        assert f"\n## {name}\n" in page
        assert re.search(rf"^lantm figure {name} \S+ .*--out docs/images/\w+\.png$", page, re.M)
