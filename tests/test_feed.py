"""The batches of a run: which problems are in them, and how much of an answer counts."""

import functools
import math
from collections import Counter

import numpy as np
import pytest

import lantm
from lantm.tasks.streams import TaskStream, training_stream
from lantm.training.feed import Feed, open_stream

pytest_plugins = ["tiny"]

plain = functools.partial(lantm.configure, "plain")
GROWING = {"growth_by": "performance"}
SHARE = 0.1
"""Of the samples, at first."""


def problems(padded):
    """The rows of a batch without what they are filled up with."""
    each = zip(
        *(padded.inputs, padded.input_lengths, padded.answers, padded.answer_lengths), strict=True
    )
    return [(tuple(i[:n]), tuple(a[:m])) for i, n, a, m in each]


def samples(stream, index):
    """The rows of a batch of a stream."""
    return [tuple(map(tuple, row)) for row in zip(*stream[index], strict=True)]


# ---- one size


@pytest.mark.parametrize("settings", [{"recipe": "paper"}, {"recipe": "plain"}, GROWING])
def test_with_one_size_a_batch_is_that_of_the_stream(settings):
    """The paper's data: in order, from the beginning again after 500; nothing is cut."""
    config = lantm.configure(**{"recipe": "plain", "task": "repeat_copy", "seed": 7} | settings)
    feed, stream = Feed(config), training_stream(lantm.TASKS["repeat_copy"], "small", 7)
    for index in (0, 1, 499, 500, 7003):
        padded = feed.batch(index)
        assert problems(padded) == samples(stream, index)
        for tokens, lengths in (
            (padded.inputs, padded.input_lengths),
            (padded.answers, padded.answer_lengths),
        ):
            beyond = np.arange(tokens.shape[1]) >= lengths[:, None]
            assert np.all(tokens[beyond] == 0)


# ---- several sizes


@pytest.mark.parametrize("parts", [3, 4])
def test_a_batch_has_parts_of_as_many_sizes(parts):
    feed = Feed(plain(task="copy", sizes_per_batch=parts))
    stream = training_stream(lantm.TASKS["copy"], "small", 1)
    edges = [32 * number // parts for number in range(parts + 1)]
    seen = set()
    for index in (0, 1, 130, 499):
        found = problems(feed.batch(index))
        assert len(found) == 32
        for number in range(parts):
            rows = slice(*edges[number : number + 2])
            assert found[rows] == samples(stream, index + number * 500 // parts)[rows]
        seen.add(len({len(inputs) for inputs, _ in found}))
    assert max(seen) == parts


@pytest.mark.parametrize(("parts", "shapes"), [(1, 2), (4, 1)])
def test_batches_have_few_shapes(parts, shapes):
    """A program is compiled for each; with several sizes in a batch one of them is mostly large."""
    feed = Feed(plain(task="copy", sizes_per_batch=parts))
    batches = [feed.batch(index) for index in range(60)]
    found = {(batch.inputs.shape, batch.answers.shape) for batch in batches}
    assert len(found) == shapes
    assert max(found) == ((32, 65), (32, 65))


@pytest.mark.parametrize("parts", [1, 3, 4, 32])
def test_a_pass_over_the_stream_sees_every_sample_once(parts):
    feed = Feed(plain(task="copy", sizes_per_batch=parts))
    feed.stream = TaskStream(lantm.TASKS["copy"], "train", 11)
    every = Counter(sample for index in range(11) for sample in samples(feed.stream, index))
    for first in (0, 4):
        seen = Counter(p for index in range(first, first + 11) for p in problems(feed.batch(index)))
        assert seen == every


def test_data_of_few_problems_of_a_size(tmp_path):
    """Groups of fewer problems than there are parts: batches of any number of rows, none empty."""
    (tmp_path / "data.txt").write_text("^1234561#1$\n" + "^1#1$\n" * 2 + "^12#12$\n" * 32)
    config = plain(task="tiny", data=str(tmp_path / "data.txt"), sizes_per_batch=4)
    feed, stream = Feed(config), open_stream(config)
    found = [problems(feed.batch(index)) for index in range(len(stream))]
    assert all(found)
    every = Counter(sample for index in range(len(stream)) for sample in samples(stream, index))
    assert Counter(problem for batch in found for problem in batch) == every


# ---- growth


@pytest.mark.parametrize("share", [0.1, 0.37, 0.8])
def test_while_answers_grow_they_are_cut_and_nothing_else_is(share):
    feed = Feed(plain(task="repeat_copy", sizes_per_batch=4, growth_of="answers", **GROWING))
    longest = max(feed.stream[i].answers.shape[1] for i in range(500))
    assert feed.stream.longest()[1] == longest
    cut_short = 0
    for index in range(20):
        whole, cut = feed.batch(index), feed.batch(index, share)
        assert np.array_equal(whole.inputs, cut.inputs)
        assert np.array_equal(whole.input_lengths, cut.input_lengths)
        assert np.array_equal(whole.answers, cut.answers)
        most = math.ceil(share * longest)
        assert np.array_equal(cut.answer_lengths, np.minimum(whole.answer_lengths, most))
        assert cut.answer_lengths.dtype == whole.answer_lengths.dtype, "or it compiles again"
        cut_short += np.sum(whole.answer_lengths > most)
    assert cut_short > 0


def smallest_parts(feed, start, batches=60):
    """Whether a part was always of the smallest tenth of the sizes, for each of the parts."""
    sizes = sorted(map(feed.stream.size, range(len(feed.stream))))
    largest = sizes[math.ceil(SHARE * len(sizes)) - 1]
    length = lantm.TASKS["copy"].sample(np.random.default_rng(0), largest, 1).inputs.shape[1]
    lengths = [feed.batch(index, SHARE, start).input_lengths for index in range(batches)]
    parts = np.array(lengths).reshape(batches, feed.parts, -1)
    return np.all(parts <= length, axis=(0, 2)).tolist()


@pytest.mark.parametrize(
    ("growth_of", "parts", "starts", "expected"),
    [
        ("sizes", 1, (0, 1), [True]),
        ("sizes", 4, (0, 1), [True, True, True, False]),
        ("answers", 4, (0, 1), [False] * 4),
        ("answers", 1, (0, 1), [False]),
        ("turns", 4, (0, 2), [True, True, True, False]),
        ("turns", 4, (1, 3), [False] * 4),
        ("turns", 1, (0,), [True]),
    ],
)
def test_which_parts_of_which_starts_have_the_smallest_sizes(growth_of, parts, starts, expected):
    feed = Feed(plain(task="copy", sizes_per_batch=parts, growth_of=growth_of, **GROWING))
    for start in starts:
        assert smallest_parts(feed, start) == expected


def test_parts_of_the_smallest_sizes_are_drawn_each_for_itself():
    feed = Feed(plain(task="copy", sizes_per_batch=4, **GROWING))
    again, other = (
        Feed(plain(task="copy", sizes_per_batch=4, seed=seed, **GROWING)) for seed in (1, 2)
    )
    batches = [feed.batch(index, 0.3) for index in range(8)]
    drawn = [tuple(b.input_lengths[[0, 8, 16]]) for b in batches]
    assert any(len(set(three)) > 1 for three in drawn)
    assert len(set(drawn)) > 1
    assert [problems(b) for b in batches] == [problems(again.batch(i, 0.3)) for i in range(8)]
    assert drawn != [tuple(other.batch(i, 0.3).input_lengths[[0, 8, 16]]) for i in range(8)]


def test_grown_up_every_start_learns_from_the_same_batches():
    feed = Feed(plain(task="copy", sizes_per_batch=4, growth_of="turns", **GROWING))
    for index in (3, 200):
        first, second = (problems(feed.batch(index, 1.0, start)) for start in (0, 1))
        assert first == second


def test_sizes_that_grow_by_the_clock_are_those_of_the_stream():
    feed = Feed(plain(task="copy", growth=0.5))
    sizes = sorted(map(feed.stream.stream.size, range(500)))
    lengths = [feed.batch(index).input_lengths[0] for index in range(50)]
    assert max(lengths) <= sizes[60] + 1
    assert problems(feed.batch(5001)) == samples(feed.stream.stream, 5001)


# ---- runs


def test_a_run_learns_from_the_batches_of_its_share_and_start(tiny, tmp_path, monkeypatch):
    asked, batch = [], Feed.batch

    def noted(feed, index, share, start):
        asked.append((index, round(share, 6), start))
        return batch(feed, index, share, start)

    monkeypatch.setattr(Feed, "batch", noted)
    growing = {"growth_of": "turns", "sizes_per_batch": 2, **GROWING}
    lantm.train(tiny(**growing, starts=2, start_batches=5, batches=7), tmp_path / "grown")

    def expected(index, start):
        pace = (6000, 20_000)[start]
        return index, round(0.1 + index * 0.9 / pace, 6), start

    ends = 3  # hopeless by then
    begun = [expected(index, start) for start in (0, 1) for index in range(ends)]
    assert asked[: 2 * ends] == begun
    chosen = asked[-1][2]
    assert asked[2 * ends :] == [expected(index, chosen) for index in range(ends, 7)]
    asked.clear()
    lantm.train(tiny(batches=3), tmp_path / "plain")
    assert asked == [(0, 1.0, 0), (1, 1.0, 0), (2, 1.0, 0)]
