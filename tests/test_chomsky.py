"""The public suite: its tasks against plain Python, and its way to score."""

import doctest
from itertools import product

import numpy as np
import pytest

import lantm
from lantm.tasks import chomsky
from lantm.tasks.streams import evaluation_batches

BLANK = 2


def value(bits):
    return int("0" + "".join(map(str, reversed(bits))), 2)


def add(words):
    if BLANK not in words:
        total = value(words)
    else:
        plus = words.index(BLANK)
        assert 0 < plus < len(words) - 1, "both numbers have a digit"
        total = value(words[:plus]) + value(words[plus + 1 :])
    return [int(bit) for bit in reversed(f"{total:b}")]


def work_the_stack(words):
    stack = []
    for i, word in enumerate(words):
        if word == 2:
            assert i > 0, "the first symbol is on the stack"
            stack = stack[:-1]
        else:
            stack.append(word % 3)
    return stack[::-1]


def missing(words):
    words = [word for word in words if word != 3]
    half, place = len(words) // 2, words.index(2)
    assert words.count(2) == 1
    assert [a for a, b in zip(words[:half], words[half:], strict=True) if 2 not in (a, b)] == [
        b for a, b in zip(words[:half], words[half:], strict=True) if 2 not in (a, b)
    ]
    return [words[(place + half) % (2 * half)]]


def pairs(words):
    text = "".join(map(str, words))
    return [int(text.count("01") == text.count("10"))]


ORACLES = {
    "chomsky_even_pairs": pairs,
    "chomsky_parity": lambda words: [words.count(1) % 2],
    "chomsky_cycle": lambda words: [(words.count(1) - words.count(2)) % 5],
    "chomsky_reverse": lambda words: words[::-1],
    "chomsky_stack": work_the_stack,
    "chomsky_duplicate": lambda words: words * 2,
    "chomsky_missing_duplicate": missing,
    "chomsky_odds_first": lambda words: words[::2] + words[1::2],
    "chomsky_addition": add,
    "chomsky_bucket_sort": sorted,
}
SYMBOLS = {"chomsky_cycle": 5, "chomsky_stack": 5, "chomsky_missing_duplicate": 4}
SYMBOLS |= {"chomsky_addition": 3, "chomsky_bucket_sort": 5}

over_tasks = pytest.mark.parametrize("name", ORACLES)


def test_the_suite_is_registered():
    own = [t.name for t in lantm.TASKS.values() if type(t).__module__ == chomsky.__name__]
    assert own == list(ORACLES)


@over_tasks
@pytest.mark.parametrize("size", [2, 3, 4, 7, 40, 131, 500])
def test_answers_are_those_of_plain_python(name, size):
    task = lantm.TASKS[name]
    inputs, answers = task.sample(np.random.default_rng(size), size, 61)
    assert inputs.shape == (61, 1 + size)
    for question, answer in zip(inputs.tolist(), answers.tolist(), strict=True):
        right = ORACLES[name](question[1:])
        filled = right + [task.blank] * (len(answer) - 1 - len(right))
        assert answer == [*filled, task.vocabulary.end]


@over_tasks
def test_sizes_and_alphabets_are_those_of_the_paper(name):
    task = lantm.TASKS[name]
    first = 2 if name == "chomsky_missing_duplicate" else 1
    assert list(task.sizes()) == list(range(first, 41))
    assert task.symbols == SYMBOLS.get(name, 2)
    inputs, answers = task.sample(np.random.default_rng(0), 17, 997)
    everything = {*inputs[:, 1:].ravel().tolist(), *answers[:, :-1].ravel().tolist()}
    assert everything == set(range(task.symbols))


@over_tasks
def test_every_problem_of_a_small_size_is_drawn(name):
    """Or else an alphabet, a split or an action is left out."""
    task = lantm.TASKS[name]
    inputs, _ = task.sample(np.random.default_rng(0), 4, 4000)
    found = {tuple(row) for row in inputs[:, 1:].tolist()}
    assert found == {row for row in product(range(task.symbols), repeat=4) if can_be(name, row)}


def can_be(name, row):
    if name == "chomsky_stack":
        given = sum(symbol < 2 for symbol in row)
        # A pop or push is never before a symbol of the stack; all of it is stack at size 1 only.
        return 0 < given < 4 and all(symbol < 2 for symbol in row[:given])
    if name == "chomsky_addition":
        return row.count(2) == 1 and row.index(2) in (1, 2)
    if name == "chomsky_cycle":
        return max(row) < 3
    if name == "chomsky_missing_duplicate":
        same = all(2 in pair or pair[0] == pair[1] for pair in zip(row[:2], row[2:], strict=True))
        return row.count(2) == 1 and 3 not in row and same
    return True


@over_tasks
def test_small_sizes_have_a_validation_and_a_test_set(name):
    task = lantm.TASKS[name]
    rows = [
        {row.tobytes() for batch in evaluation_batches(task, purpose, 1, 320) for row in batch[0]}
        for purpose in ("validation", "test")
    ]
    assert not rows[0] & rows[1]


def test_a_size_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="size must be at least 2 for chomsky_missing_duplicate"):
        lantm.TASKS["chomsky_missing_duplicate"].example(1)


def test_the_examples_hold():
    failed, attempted = doctest.testmod(chomsky)
    assert attempted >= len(ORACLES)
    assert failed == 0
