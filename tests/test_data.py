"""Sample streams: by position, reproducible, and with test sets that nobody has selected on."""

import dataclasses
import json
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lantm
from lantm.tasks import Copy
from lantm.tasks.streams import (
    GrowingStream,
    TaskStream,
    bucket,
    buckets,
    evaluation_batches,
    pad,
    training_stream,
)
from lantm.tasks.textfile import DataError, FileStream, read_batches, write_batches

pytest_plugins = ["tiny"]

NINE = [
    "copy",
    "reverse",
    "bigram_flip",
    "double",
    "interleaved_add",
    "odd_first",
    "repeat_copy",
    "priority_sort",
    "priority_sort_symbols",
]
over_tasks = pytest.mark.parametrize("name", NINE)


class Few(Copy):
    """Of few problems: 27 of the smallest size at twice the size of training."""

    name: ClassVar[str] = "few"
    symbols: ClassVar[int] = 3
    largest: ClassVar[int] = 2


class Single(Few):
    """One problem of each size."""

    symbols: ClassVar[int] = 1


def same(left, right):
    return all(map(np.array_equal, left, right))


def problems(batches):
    """Every problem, as bytes."""
    return {row.tobytes() for batch in batches for row in batch.inputs}


# ---- streams


@over_tasks
def test_any_order_of_access(name):
    streams = [training_stream(lantm.TASKS[name], "small", seed=3) for _ in range(2)]
    order = [7, 2, 499, 0, 2]
    forward = {i: streams[0][i] for i in sorted(order)}
    assert all(same(forward[i], streams[1][i]) for i in order)
    assert not same(forward[0], forward[2])


@pytest.mark.parametrize(("regime", "batches"), [("small", 500), ("large", 10_000)])
def test_a_regime_begins_again_after_its_batches(regime, batches):
    stream = training_stream(lantm.TASKS["double"], regime, seed=1)
    assert len(stream) == batches
    assert same(stream[batches + 3], stream[3])
    assert same(stream[7 * batches + 3], stream[3])
    assert not same(stream[batches - 1], stream[0])
    assert same(stream[500], stream[0]) == (regime == "small")


def test_the_seed_decides_what_training_sees():
    one, other = (training_stream(lantm.TASKS["copy"], "small", seed) for seed in (1, 2))
    assert not problems(one[i] for i in range(5)) & problems(other[i] for i in range(5))


@over_tasks
def test_batches_have_one_size_of_the_multiple(name):
    task = lantm.TASKS[name]
    for multiple in (1, 2, 3):
        stream = TaskStream(task, "test", 50, multiple=multiple)
        rng = np.random.default_rng(0)
        lengths = {task.sample(rng, size, 1).inputs.shape[1] for size in task.sizes(multiple)}
        found = [stream[i].inputs.shape for i in range(50)]
        assert {batch for batch, _ in found} == {32}
        assert {length for _, length in found} <= lengths
        assert len({length for _, length in found}) > min(3, len(lengths) - 1)


@over_tasks
def test_validation_and_test_share_nothing(name):
    task = lantm.TASKS[name]
    for multiple in (1, 2):
        sets = [
            problems(evaluation_batches(task, purpose, multiple, 3200))
            for purpose in ("validation", "test")
        ]
        assert min(map(len, sets)) > 2000
        assert not sets[0] & sets[1]


def test_they_share_nothing_where_problems_are_few():
    validation, test = (
        problems(evaluation_batches(Few(), purpose, 2, 999)) for purpose in ("validation", "test")
    )
    assert len(validation) + len(test) == 3**3 + 3**4
    assert not validation & test


@pytest.mark.parametrize("examples", [1, 31, 32, 33, 97])
def test_as_many_examples_as_asked_for(examples):
    batches = evaluation_batches(lantm.TASKS["reverse"], "test", 2, examples)
    whole = evaluation_batches(lantm.TASKS["reverse"], "test", 2, 3200)
    assert sum(len(batch.inputs) for batch in batches) == examples
    assert sum(len(batch.answers) for batch in batches) == examples
    assert problems(batches) <= problems(whole)


def test_too_few_problems_are_an_error():
    """The one problem of a size is for validation or for test."""
    purposes = ("validation", "test")
    streams = [TaskStream(Single(), purpose, 1, multiple=2) for purpose in purposes]
    with pytest.raises(ValueError, match=r"size \d of few has too few problems for a (val|test)"):
        [stream[0] for stream in streams]


@pytest.mark.parametrize("options", [{"purpose": "tset"}, {"batches": 0}, {"multiple": 0}])
def test_impossible_streams_are_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"^{name} must be "):
        TaskStream(**{"task": Few(), "purpose": "test", "batches": 1} | options)
    with pytest.raises(ValueError, match=r"regime must be .* \(did you mean 'small'\?\)"):
        training_stream(Few(), "smal", seed=1)


@over_tasks
def test_sizes_are_known_before_the_problems(name):
    stream = training_stream(lantm.TASKS[name], "small", seed=2)
    by_size = sorted(range(len(stream)), key=stream.size)
    lengths = [stream[i].inputs.shape[1] for i in by_size[::50]]
    assert lengths == sorted(lengths)
    assert set(map(stream.size, by_size)) == set(lantm.TASKS[name].sizes())


def test_growing_sizes():
    plain = training_stream(lantm.TASKS["copy"], "small", seed=1)
    grown = GrowingStream(plain, 300, seed=1)
    assert len(grown) == len(plain)
    smallest = sorted(map(plain.size, range(500)))
    for index in range(300):
        assert grown.size(index) <= smallest[50 + int(450 * index / 300)]
        assert grown[index].inputs.shape[1] == grown.size(index) + 1
    assert max(map(grown.size, range(290, 300))) > 24
    assert all(same(grown[i], plain[i]) for i in (300, 500, 1234))
    samples = problems(plain[i] for i in range(500))
    assert problems(grown[i] for i in range(0, 300, 7)) <= samples
    assert same(GrowingStream(plain, 300, seed=1)[7], grown[7])


# ---- padding


def test_pad_keeps_problems_and_counts_their_symbols():
    batches = [lantm.TASKS["copy"].sample(np.random.default_rng(0), size, 3) for size in (2, 5)]
    padded = pad(batches, 7, 11)
    assert padded.inputs.shape == (6, 7)
    assert padded.answers.shape == (6, 11)
    assert padded.input_lengths.tolist() == [3] * 3 + [6] * 3
    assert padded.answer_lengths.tolist() == [3] * 3 + [6] * 3
    assert np.array_equal(padded.inputs[3:, :6], batches[1].inputs)
    assert np.array_equal(padded.answers[:3, :3], batches[0].answers)
    assert not padded.inputs[:3, 3:].any()


@given(longest=st.integers(1, 300), count=st.integers(1, 9))
def test_every_length_has_its_bucket(longest, count):
    edges = buckets(longest, count)
    assert edges == sorted(set(edges))
    assert len(edges) <= count
    assert edges[-1] == longest
    for length in range(1, longest + 1):
        edge = bucket(length, edges)
        assert edge >= length
        assert all(other < length for other in edges if other < edge)


# ---- the authors' text files


@over_tasks
@pytest.mark.parametrize("multiple", [1, 2, 3])
def test_what_is_written_is_read(name, multiple, tmp_path):
    task, path = lantm.TASKS[name], tmp_path / "data.txt"
    batches = evaluation_batches(task, "test", multiple, 129)
    write_batches(path, task, batches)
    again = read_batches(path, task)
    assert len(again) == len(batches) == 5
    assert all(map(same, again, batches))
    assert {part.dtype for batch in again for part in batch} == {np.dtype(np.int32)}


def test_files_look_like_the_authors(tmp_path):
    path = tmp_path / "data.txt"
    for name, text in {
        "copy": "^,60,65,#,60,65,$,^,96,121,#,96,121,$\n",
        "double": "^54#108$^97#194$\n",
        "interleaved_add": "^4579#961$^0189#171$\n",
        "priority_sort": "^,60,^,65,#,60,65,$,^,^,96,121,#,121,96,$\n",
    }.items():
        task = lantm.TASKS[name]
        write_batches(path, task, [task.sample(np.random.default_rng(1), 2, 2)])
        assert path.read_text() == text


def read(tmp_path, name, text):
    path = tmp_path / "data.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_batches(path, lantm.TASKS[name])


def show(name, batches):
    """Every problem as text, in our order of digits."""
    task = lantm.TASKS[name]
    return [
        task.vocabulary.show([*question.tolist(), task.vocabulary.separator, *answer.tolist()])
        for batch in batches
        for question, answer in zip(*batch, strict=True)
    ]


@pytest.mark.parametrize("text", ["^754#1508$^50#100$", "^457#8051$^05#001$"])
def test_double_in_either_order_of_digits(tmp_path, text):
    """754 and 50 doubled: as the authors write them, and least significant digit first."""
    batches = read(tmp_path, "double", text)
    assert show("double", batches) == ["^ 4 5 7 # 8 0 5 1 $", "^ 0 5 # 0 0 1 $"]


@pytest.mark.parametrize("text", ["^12#24$^26#52$", "^21#42$^62#25$"])
def test_double_without_zero_padding(tmp_path, text):
    """An answer of k digits gets its zero; the carry in 26 + 26 tells the order of digits."""
    batches = read(tmp_path, "double", text)
    assert show("double", batches) == ["^ 2 1 # 4 2 0 $", "^ 6 2 # 2 5 0 $"]


@pytest.mark.parametrize(
    "text",
    [
        "^,1,2,#,1,2,$,^,3,4,#,3,4,$\n^,5,#,5,$\n",
        "^,1,2,#,1,2,$,^,3,4,#,3,4,$,\r\n\r\n^,5,#,5,$,\r\n",
        "\n  \n^, 1, 2, #, 1, 2, $, ^, 3, 4, #, 3, 4, $\n\n^,5,#,5,$",
        "^12#12$^34#34$\n^5#5$\n",
    ],
)
def test_commas_and_line_ends_do_not_matter(tmp_path, text):
    batches = read(tmp_path, "copy", text)
    assert [batch.inputs.tolist() for batch in batches] == [[[128, 1, 2], [128, 3, 4]], [[128, 5]]]


def test_a_line_of_many_sizes_is_many_batches(tmp_path):
    batches = read(tmp_path, "reverse", "^12#21$^34#43$^5#5$^67#76$\n^12#21$")
    assert [batch.inputs.shape for batch in batches] == [(2, 3), (1, 2), (1, 3), (1, 3)]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("copy", "1,2,#,1,2,$", "a problem does not begin with ^"),
        ("copy", "^,1,2,1,2,$", "a problem needs exactly one #"),
        ("copy", "^,1,#,1,#,1,$", "a problem needs exactly one #"),
        ("copy", "^,1,#,1,$,^,2,#,2", "the last problem does not end with $"),
        ("copy", "^,1,#,$", "a problem has an empty input or answer"),
        ("copy", "^,#,1,$", "a problem has an empty input or answer"),
        ("copy", "^,1,#,^,1,$", "an answer has a ^ in it"),
        ("copy", "^,128,#,128,$", "symbol '128' is not in the vocabulary: 0 to 127 and ^ # $"),
        ("copy", "^,-1,#,-1,$", "symbol '-1' is not in the vocabulary"),
        ("copy", "^,,1,#,1,$", "symbol '' is not in the vocabulary"),
        pytest.param("copy", f"^,{9:0>5000},#,1,$", "symbol '000", id="digits"),
        ("copy", "^,x,#,x,$", "symbol 'x' is not in the vocabulary"),
        ("double", "^,10,#,20,$", "symbol '10' is not in the vocabulary: 0 to 9 and ^ # $"),
        ("double", "^26#53$", "an answer is not twice its number"),
        ("double", "^26#0052$", "an answer is not twice its number"),
        ("interleaved_add", "^123#45$", "two interleaved numbers need an even number of digits"),
    ],
)
def test_malformed_lines_are_refused(tmp_path, name, line, reason):
    good = {"copy": "^,1,#,1,$", "double": "^26#52$", "interleaved_add": "^12#30$"}[name]
    with pytest.raises(DataError) as error:
        read(tmp_path, name, f"{good}\n\n{line}\n{good}\n")
    assert str(error.value).startswith(f"{tmp_path / 'data.txt'}, line 3: {reason}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds no problem"),
        (" \r\n\n", "holds no problem"),
        (b"\xff\xfe^12#24$", "is not a text file of symbols"),
        ("^26#52$^62#25$", "the order of digits differs from problem to problem"),
    ],
)
def test_malformed_files_are_refused(tmp_path, text, reason):
    with pytest.raises(DataError) as error:
        read(tmp_path, "double", text)
    assert str(error.value) == f"{tmp_path / 'data.txt'}: {reason}"


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"missing\.txt: cannot be read: No such file"):
        FileStream(tmp_path / "missing.txt", lantm.TASKS["copy"])
    with pytest.raises(DataError, match=r"cannot be read: Is a directory"):
        FileStream(tmp_path, lantm.TASKS["copy"])


def test_a_file_is_a_stream(tmp_path):
    path, task = tmp_path / "data.txt", lantm.TASKS["copy"]
    batches = evaluation_batches(task, "test", 1, 70)
    write_batches(path, task, batches)
    stream = FileStream(path, task)
    assert len(stream) == 3
    assert all(same(stream[i], batches[i % 3]) for i in (0, 2, 3, 7))


def test_training_on_the_file_of_a_stream_is_training_on_the_stream(tiny, trained, tmp_path):
    """Twenty batches of a file in their order, bit for bit as if they had been drawn."""
    task, path = lantm.TASKS["tiny"], tmp_path / "data.txt"
    stream = training_stream(task, "small", seed=1)
    write_batches(path, task, [stream[i] for i in range(20)])
    run = lantm.train(tiny(data=str(path)), tmp_path)
    assert run.config == dataclasses.replace(trained.config, data=str(path))
    assert list(run.metrics()) == list(trained.metrics())
    assert json.loads((run.path / "config.json").read_text())["config"]["data"] == str(path)
