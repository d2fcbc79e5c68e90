"""Scores against the same scores counted by hand, one problem at a time."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import lantm
from lantm.tasks.streams import evaluation_batches, far_multiples, usual_examples
from lantm.tasks.textfile import write_batches
from lantm.training.evaluation import CHUNK, Evaluation, evaluate_batches
from lantm.training.train import final_scores
from lantm.training.updates import initial_machine

pytest_plugins = ["tiny"]


@pytest.fixture(scope="module")
def machine(tiny):
    return initial_machine(tiny())


@eqx.filter_jit
def ask(machine, question, steps):
    """Logits and greedy answer to one problem, unpadded."""
    tokens = jnp.asarray(question)[None]
    return machine(tokens, steps), machine.predict(tokens, steps)


@pytest.fixture(scope="module")
def batches(machine):
    """Problems of the sizes of training, with the machine's own answers: all of them right."""

    def draw(size, count):
        inputs, _ = lantm.TASKS["tiny"].sample(rng, size, count)
        logits = [ask(machine, question, size + 1)[0][0] for question in inputs]
        return lantm.Batch(inputs, np.argmax(np.stack(logits), axis=-1).astype(np.int32))

    rng = np.random.default_rng(1)
    return [draw(2, 5), draw(3, 11), draw(2, 3)]


def spoil(batch, *places):
    """Another symbol in the given places."""
    answers = batch.answers.copy()
    for place in places:
        answers[place] = (answers[place] + 1) % 10
    return batch._replace(answers=answers)


def plainly(machine, batches):
    """Length, symbols right and whole answers right, of each problem on its own."""
    for batch in batches:
        for question, answer in zip(*batch, strict=True):
            logits, predicted = ask(machine, question, len(answer))
            scores = lantm.score(logits, jnp.asarray(answer[None]))
            assert bool(scores.coarse) == np.array_equal(predicted[0], answer)
            yield len(answer), round(float(scores.fine) * len(answer)), float(scores.coarse)


def counted_by_hand(problems):
    lengths, right, whole = zip(*problems, strict=True)
    return len(lengths), sum(right) / sum(lengths), sum(whole) / len(whole)


def test_a_machine_is_right_about_its_own_answers(machine, batches):
    found = evaluate_batches(machine, batches)
    assert found == Evaluation(
        19, 1.0, 1.0, {2: Evaluation(8, 1.0, 1.0), 3: Evaluation(11, 1.0, 1.0)}
    )


def test_known_errors(machine, batches):
    """Two symbols of one answer, the end of another, one symbol of a third."""
    short, long, last = batches
    short, long = spoil(short, (0, 0), (0, 1), (3, -1)), spoil(long, (7, 1))
    found = evaluate_batches(machine, [short, long, last])
    symbols = {2: 8 * 3, 3: 11 * 4}
    assert found.by_length == {
        2: Evaluation(8, (symbols[2] - 3) / symbols[2], 6 / 8),
        3: Evaluation(11, (symbols[3] - 1) / symbols[3], 10 / 11),
    }
    total = sum(symbols.values())
    assert (found.examples, found.fine, found.coarse) == (19, (total - 4) / total, 16 / 19)


def test_scores_are_those_of_single_problems(machine):
    """Of a random machine on the task's own answers, its end symbols included."""
    batches = evaluation_batches(lantm.TASKS["tiny"], "test", 1, 53)
    problems = list(plainly(machine, batches))
    found = evaluate_batches(machine, batches)
    assert (found.examples, found.fine, found.coarse) == counted_by_hand(problems)
    assert 0 < found.fine < 1
    for length in (2, 3):
        part = found.by_length[length]
        same = [problem for problem in problems if problem[0] == length + 1]
        assert (part.examples, part.fine, part.coarse) == counted_by_hand(same)


def test_neighbours_and_padding_do_not_matter(machine, batches):
    """Single problems, one large batch, more than fit at once, and beside much longer ones."""
    batches = [spoil(batches[0], (1, 1)), *batches[1:]]
    expected = evaluate_batches(machine, batches)
    single = [
        lantm.Batch(question[None], answer[None])
        for batch in batches[::-1]
        for question, answer in zip(*batch, strict=True)
    ]
    assert evaluate_batches(machine, single) == expected
    copies = CHUNK // 5
    many = evaluate_batches(machine, batches * copies)
    assert many.examples == 19 * copies > 3 * CHUNK
    assert (many.fine, many.coarse) == (expected.fine, expected.coarse)
    far = lantm.TASKS["tiny"].sample(np.random.default_rng(2), 6, 2)
    beside = evaluate_batches(machine, [batches[0], far, *batches[1:]])
    assert {n: beside.by_length[n] for n in (2, 3)} == expected.by_length


def test_nothing_to_evaluate_is_an_error(machine):
    with pytest.raises(ValueError, match="batches must be a whole number of at least 1, got 0"):
        evaluate_batches(machine, [])


# ---- runs


def test_rows_of_an_evaluation(trained, tmp_path):
    """Every checkpoint on every multiple, then on every file."""
    path, task = tmp_path / "data.txt", trained.task
    write_batches(path, task, evaluation_batches(task, "validation", 2, 17))
    scores = lantm.evaluate(trained, [2, 1], [path], examples=41)
    places = [(score.checkpoint, score.source, score.evaluation.examples) for score in scores]
    rows = [(2, 41), (1, 41), (str(path), 17)]
    assert places == [(name, *row) for name in ("best", "last") for row in rows]
    for score in scores:
        machine = trained.machine(score.checkpoint)
        sets = {n: evaluation_batches(task, "test", n, 41) for n in (1, 2)}
        problems = sets.get(score.source) or lantm.tasks.textfile.read_batches(path, task)
        assert score.evaluation == evaluate_batches(machine, problems)
        assert score.to_dict()["by_length"].keys() == score.evaluation.by_length.keys()


def test_a_run_by_its_directory(trained):
    by_name = lantm.evaluate(str(trained.path), [1], checkpoints=["last"], examples=23)
    assert by_name == lantm.evaluate(trained, [1], examples=23)[1:]
    with pytest.raises(ValueError, match=r"checkpoint must be one of best, last; got 'lost'"):
        lantm.evaluate(trained, [1], checkpoints=["lost"], examples=23)
    with pytest.raises(ValueError, match="run must be a run directory or zoo:TASK, got nowhere"):
        lantm.evaluate("nowhere")


def test_one_name_is_not_read_letter_by_letter(trained, tmp_path, unchecked):
    (tmp_path / "data.txt").write_text("^12#12$\n")
    file = str(tmp_path / "data.txt")
    (score,) = lantm.evaluate(trained, [], file, checkpoints="best")
    assert (score.checkpoint, score.source) == ("best", file)
    (score,) = lantm.evaluate(trained, 2, checkpoints="last", examples=32)
    assert (score.checkpoint, score.source) == ("last", 2)


def test_selected_on_validation_reported_on_test(trained):
    *_, row = trained.metrics()
    results = {(r["checkpoint"], r["source"]): r for r in trained.result["test"]}
    machine, config = trained.machine("last"), trained.config
    validation, test = (
        evaluate_batches(machine, evaluation_batches(trained.task, purpose, 2, examples))
        for purpose, examples in [
            ("validation", config.validation_examples),
            ("test", config.test_examples),
        ]
    )
    assert (row["validation_fine"], row["validation_coarse"]) == (
        validation.fine,
        validation.coarse,
    )
    told = results["last", 2]
    assert (told["fine"], told["coarse"]) == (test.fine, test.coarse)
    assert test.fine != validation.fine


# ---- far beyond the training size


def test_a_run_that_asks_for_it_is_scored_far_beyond_its_training(trained):
    """The test is made again, of a run that was already trained."""
    config = dataclasses.replace(trained.config, test_far=True)
    assert config.digest != trained.config.digest
    scores = final_scores(dataclasses.replace(trained, config=config))
    assert [(score.checkpoint, score.source) for score in scores] == [
        *(("best", 1), ("best", 2), ("last", 1), ("last", 2)),
        *((name, multiple) for multiple in (4, 10) for name in ("best", "last")),
    ]
    assert all(score.evaluation.examples == 37 for score in scores)
    assert set(scores[-1].evaluation.by_length) <= {28, 29, 30}
    assert [score.source for score in final_scores(trained)] == [1, 2, 1, 2]


def test_fewer_problems_where_they_are_long():
    copy, sort = lantm.TASKS["copy"], lantm.TASKS["priority_sort"]
    assert [usual_examples(copy, multiple) for multiple in (1, 2, 4, 10)] == [3200, 3200, 3200, 640]
    assert [usual_examples(sort, multiple) for multiple in (2, 4, 10)] == [3200, 1280, 160]
    assert usual_examples(sort, 100, most=64) == 64


def test_a_task_without_problems_of_that_size_is_not_asked_for_them():
    class Short(type(lantm.TASKS["copy"])):
        def problems(self, rng, size, batch):
            if size > 5 * self.largest:
                raise IndexError
            return super().problems(rng, size, batch)

    assert far_multiples(lantm.TASKS["copy"]) == [4, 10]
    assert far_multiples(Short()) == [4]
