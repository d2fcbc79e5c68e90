"""Every task against the same task in plain Python: lists, and integers of any length."""

import doctest
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lantm
from lantm.tasks import arithmetic, permutation, unary

TABLE = {
    "copy": (2, 64, 128),
    "reverse": (2, 64, 128),
    "bigram_flip": (1, 16, 128),
    "double": (2, 40, 10),
    "interleaved_add": (2, 16, 10),
    "odd_first": (1, 16, 128),
    "repeat_copy": (1, 5, 128),
    "priority_sort": (2, 10, 128),
    "priority_sort_symbols": (2, 10, 128),
}
"""The smallest and the largest size of training, and |V|: the paper's task table."""
BATCH = 7
MARK = "^"

over_tasks = pytest.mark.parametrize("name", TABLE)


# ---- the oracles: from the words after the first `^` to the words before `$`


def number(digits):
    return int("".join(map(str, reversed(digits))))


def digits_of(value, places):
    return [int(digit) for digit in reversed(str(value).zfill(places))]


def flip_pairs(words):
    return [word for i in range(0, len(words), 2) for word in (words[i + 1], words[i])]


def double(words):
    return digits_of(2 * number(words), len(words) + 1)


def interleaved_add(words):
    x, y = number(words[::2]), number(words[1::2])
    return digits_of(x + y, len(words) // 2 + 1)


def repeat_copy(words):
    count = words.count(MARK)
    assert words[:count] == [MARK] * count
    return count * words[count:]


def priority_sort(words):
    items, priority = [], 0
    for word in words:
        if word == MARK:
            priority += 1
        else:
            items.append((priority, word))
            priority = 0
    assert sorted(priority for priority, _ in items) == list(range(len(items)))
    return [word for _, word in sorted(items)]


def priority_sort_symbols(words):
    items = dict(zip(words[::2], words[1::2], strict=True))
    assert len(items) == len(words) // 2
    return [items[priority] for priority in sorted(items)]


ORACLES = {
    "copy": list,
    "reverse": lambda words: words[::-1],
    "bigram_flip": flip_pairs,
    "double": double,
    "interleaved_add": interleaved_add,
    "odd_first": lambda words: words[::2] + words[1::2],
    "repeat_copy": repeat_copy,
    "priority_sort": priority_sort,
    "priority_sort_symbols": priority_sort_symbols,
}
LONGEST = {"double": 700, "interleaved_add": 500, "repeat_copy": 31, "priority_sort": 47}
"""How far beyond training the oracles go, with numbers of some hundred digits."""
INPUT_LENGTHS = {
    **dict.fromkeys(["copy", "reverse", "double"], lambda size: size),
    **dict.fromkeys(["bigram_flip", "interleaved_add", "odd_first"], lambda size: 2 * size),
    "priority_sort_symbols": lambda size: 2 * size,
    "repeat_copy": lambda size: size + 20,
    "priority_sort": lambda size: size + size * (size - 1) // 2,
}


def sample(name, size, seed=1, batch=BATCH):
    return lantm.TASKS[name].sample(np.random.default_rng(seed), size, batch)


def words_of(name, tokens):
    """Symbols as integers, marks as characters."""
    vocabulary = lantm.TASKS[name].vocabulary
    words = vocabulary.show(tokens.tolist()).split()
    return [int(word) if word.isdigit() else word for word in words]


@over_tasks
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_answers_are_those_of_plain_python(name, data, seed):
    size = data.draw(st.integers(1, LONGEST.get(name, 128)))
    for question, answer in zip(*sample(name, size, seed), strict=True):
        first, *words = words_of(name, question)
        assert first == MARK
        assert words_of(name, answer) == [*ORACLES[name](words), "$"]


@over_tasks
@given(data=st.data())
def test_shapes_types_and_marks(name, data):
    size = data.draw(st.integers(1, LONGEST.get(name, 128)))
    inputs, answers = sample(name, size)
    vocabulary = lantm.TASKS[name].vocabulary
    length = len(ORACLES[name](words_of(name, inputs[0])[1:]))
    assert inputs.dtype == answers.dtype == np.int32
    assert inputs.shape == (BATCH, 1 + INPUT_LENGTHS[name](size))
    assert answers.shape == (BATCH, length + 1)
    assert np.all(inputs[:, 0] == vocabulary.start)
    assert np.all(answers[:, -1] == vocabulary.end)
    assert answers[:, :-1].max() < vocabulary.symbols
    assert np.all(inputs <= vocabulary.start)
    assert min(inputs.min(), answers.min()) >= 0


@over_tasks
def test_sizes_are_those_of_the_paper(name):
    smallest, largest, symbols = TABLE[name]
    task = lantm.TASKS[name]
    assert task.name == name
    assert task.vocabulary == lantm.Vocabulary(symbols)
    assert list(task.sizes()) == list(range(smallest, largest + 1))
    assert list(task.sizes(2)) == list(range(largest + 1, 2 * largest + 1))
    assert list(task.sizes(5)) == list(range(4 * largest + 1, 5 * largest + 1))


@over_tasks
def test_one_generator_decides(name):
    first, again, other = (sample(name, 11, seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first.inputs, other.inputs)
    assert len(np.unique(first.inputs, axis=0)) == BATCH


@over_tasks
def test_every_symbol_is_drawn(name):
    inputs, _ = sample(name, 5, batch=997)
    symbols = lantm.TASKS[name].symbols
    assert set(range(symbols)) <= set(inputs.ravel().tolist()) <= set(range(symbols + 1))


def test_repeat_copy_counts_in_unary():
    inputs, answers = sample("repeat_copy", 3)
    start = lantm.TASKS["repeat_copy"].vocabulary.start
    assert np.all((inputs == start) == (np.arange(1 + 3 + 20) < 1 + 3)[None, :])
    assert answers.shape[1] == 3 * 20 + 1


def test_priorities_are_all_orders():
    """None of the 3! orders of three priorities is left out."""
    inputs, _ = sample("priority_sort", 3, batch=131)
    start = lantm.TASKS["priority_sort"].vocabulary.start
    assert len(np.unique(inputs == start, axis=0)) == 6


def test_more_priorities_than_symbols_are_refused():
    with pytest.raises(ValueError, match="size must be at most 128 for priority_sort_symbols"):
        sample("priority_sort_symbols", 129)


def test_repeat_copy_of_another_length():
    inputs, answers = unary.RepeatCopy(length=2).sample(np.random.default_rng(1), 3, BATCH)
    assert inputs.shape == (BATCH, 1 + 3 + 2)
    assert answers.shape == (BATCH, 3 * 2 + 1)


# ---- the examples in docstrings


@pytest.mark.parametrize("module", [arithmetic, permutation, unary])
def test_every_task_shows_an_example(module):
    here = module.__name__
    tasks = {type(task) for task in lantm.TASKS.values() if type(task).__module__ == here}
    shown = {test.name: test.examples for test in doctest.DocTestFinder().find(module)}
    assert tasks
    assert all(shown[f"{here}.{task.__name__}"] for task in tasks)


@pytest.mark.parametrize("module", [arithmetic, permutation, unary])
def test_the_examples_hold(module):
    failed, attempted = doctest.testmod(module)
    assert attempted > 0
    assert failed == 0


class Odd(lantm.tasks.Copy):
    """Returns what it is told."""

    name = "odd"

    def __init__(self, made):
        object.__setattr__(self, "made", made)

    def problems(self, rng, size, batch):
        return self.made


WHOLE = np.zeros((2, 3), int)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (WHOLE, "Odd.problems must return inputs and answers, got array"),
        ((WHOLE,), "Odd.problems must return inputs and answers, got (array"),
        ((WHOLE, WHOLE[0]), "answers of Odd.problems must have shape (2, length), got (3,)"),
        ((WHOLE[:1], WHOLE), "inputs of Odd.problems must have shape (2, length), got (1, 3)"),
        ((WHOLE, WHOLE * 1.0), "answers of Odd.problems must be whole numbers, got float64"),
    ],
)
def test_problems_of_a_wrong_shape_are_named(made, reason):
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}"):
        Odd(made).sample(np.random.default_rng(0), 3, 2)
