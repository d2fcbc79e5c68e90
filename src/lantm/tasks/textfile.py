"""The authors' data files: one batch a line, `^ input # answer $` after `^ input # answer $`.

Symbols are separated by commas, or are single characters in the arithmetic tasks; spaces, as in
our own notation, will do too. Numbers have their least significant digit first, except in the
authors' files of the double task.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from lantm.tasks import Batch, Double, InterleavedAdd, Task
from lantm.tasks.arithmetic import add
from lantm.tasks.streams import longest, one_of_each_size
from lantm.tasks.vocabulary import Vocabulary

Example = tuple[np.ndarray, np.ndarray]
"""Input and answer, marks included."""


class DataError(ValueError):
    """A file that cannot be read as data of a task: file, line, reason."""


class FileStream:
    """The batches of a file, as a stream; neighbours of one size on one line are one batch."""

    def __init__(self, path: str | Path, task: Task):
        self.task, self.batches = task, read_batches(path, task)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return self.batches[index % len(self.batches)]

    def size(self, index: int) -> int:
        return self[index].inputs.shape[1]

    def longest(self) -> tuple[int, int]:
        """Of the task's own sizes too, so that all runs of a task share compiled programs."""
        return longest([*self.batches, *one_of_each_size(self.task)])


def read_batches(path: str | Path, task: Task) -> list[Batch]:
    """Every problem of a file, for a machine of the task."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not a text file of symbols") from None
    examples: list[tuple[int, Example]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                examples += [(number, example) for example in parse_line(line, task)]
            except DataError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
    if not examples:
        raise DataError(f"{path}: holds no problem")
    if isinstance(task, Double):
        examples = least_significant_first(str(path), examples)
    groups = groupby(examples, key=lambda e: (e[0], len(e[1][0]), len(e[1][1])))
    return [stack([example for _, example in group]) for _, group in groups]


def parse_line(line: str, task: Task) -> Iterator[Example]:
    """The problems of one line."""
    words = split_words(line.strip())
    vocabulary = task.vocabulary
    marks = {"^": vocabulary.start, "#": vocabulary.separator, "$": vocabulary.end}
    tokens = [marks[word] if word in marks else parse_symbol(word, vocabulary) for word in words]
    while tokens:
        if vocabulary.end not in tokens:
            raise DataError("the last problem does not end with $")
        stop = tokens.index(vocabulary.end)
        yield parse_example(tokens[: stop + 1], task)
        tokens = tokens[stop + 1 :]


def split_words(line: str) -> list[str]:
    """At commas, else at spaces, else into single characters.

    >>> split_words("^,60,#,60,$,"), split_words("^ 60 # 60 $"), split_words("^6#6$")
    (['^', '60', '#', '60', '$'], ['^', '60', '#', '60', '$'], ['^', '6', '#', '6', '$'])
    """
    if "," in line:
        return [word.strip() for word in line.removesuffix(",").split(",")]
    return line.split() if " " in line else list(line)


def parse_symbol(word: str, vocabulary: Vocabulary) -> int:
    if not word.isdigit() or len(word) > 9 or int(word) >= vocabulary.symbols:
        top = vocabulary.symbols - 1
        raise DataError(f"symbol {word[:20]!r} is not in the vocabulary: 0 to {top} and ^ # $")
    return int(word)


def parse_example(tokens: list[int], task: Task) -> Example:
    """The tokens from `^` to `$` of one problem."""
    vocabulary = task.vocabulary
    if tokens[0] != vocabulary.start:
        raise DataError("a problem does not begin with ^")
    if tokens.count(vocabulary.separator) != 1:
        raise DataError("a problem needs exactly one #")
    middle = tokens.index(vocabulary.separator)
    question, answer = tokens[:middle], tokens[middle + 1 :]
    if len(question) == 1 or len(answer) == 1:
        raise DataError("a problem has an empty input or answer")
    if vocabulary.start in answer:
        raise DataError("an answer has a ^ in it")
    if isinstance(task, InterleavedAdd) and len(question) % 2 == 0:
        raise DataError("two interleaved numbers need an even number of digits")
    return np.array(question, np.int32), np.array(answer, np.int32)


def least_significant_first(
    path: str, examples: list[tuple[int, Example]]
) -> list[tuple[int, Example]]:
    """Problems of the double task with their digits turned, if that is how they come out right.

    Answers are filled up with zeros to the task's k + 1 digits.
    """
    for turn in (False, True):
        turned = [(number, oriented(*example, turn=turn)) for number, example in examples]
        if all(is_double(example) for _, example in turned):
            return turned
    for number, example in examples:
        if not any(is_double(oriented(*example, turn=turn)) for turn in (False, True)):
            raise DataError(f"{path}, line {number}: an answer is not twice its number")
    raise DataError(f"{path}: the order of digits differs from problem to problem")


def oriented(question: np.ndarray, answer: np.ndarray, *, turn: bool) -> Example:
    digits, double = question[1:], answer[:-1]
    if turn:
        digits, double = digits[::-1], double[::-1]
    missing = max(0, len(digits) + 1 - len(double))
    double = np.concatenate([double, np.zeros(missing, np.int32)])
    return np.concatenate([question[:1], digits]), np.concatenate([double, answer[-1:]])


def is_double(example: Example) -> bool:
    digits, double = example[0][1:], example[1][:-1]
    return bool(np.array_equal(add(digits[None], digits[None])[0], double))


def stack(examples: list[Example]) -> Batch:
    return Batch(*(np.stack(parts) for parts in zip(*examples, strict=True)))


def write_batches(path: str | Path, task: Task, batches: Iterable[Batch]) -> None:
    """Write problems as the authors' files have them."""
    lines = "".join(format_line(batch, task) + "\n" for batch in batches)
    Path(path).write_text(lines, encoding="ascii")


def format_line(batch: Batch, task: Task) -> str:
    comma = "," if task.symbols > 10 else ""
    vocabulary = task.vocabulary
    examples = []
    for example in zip(*batch, strict=True):
        question, answer = oriented(*example, turn=True) if isinstance(task, Double) else example
        tokens = [*question.tolist(), vocabulary.separator, *answer.tolist()]
        examples.append(vocabulary.show(tokens).replace(" ", comma))
    return comma.join(examples)
