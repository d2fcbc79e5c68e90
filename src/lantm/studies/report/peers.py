"""Models side by side: the settings that validation selects, over all seeds, with the spread."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from lantm.studies.entries import EMPTY, SOLVED, Result
from lantm.studies.report.table import CHECKPOINT, Table
from lantm.studies.results import LEARNED
from lantm.tasks import TASKS
from lantm.training.evaluation import percent

MULTIPLES = (1, 2, 4, 10)
SELECTION = (
    "Of the settings that were tried, those are shown, with all their seeds, whose run with the "
    "first seed has the best accuracy on validation problems (twice the training size, coarse "
    "before fine). Where only one was tried, none was selected here."
)


@dataclass(frozen=True)
class Entry:
    """A model on a task: the runs with the settings that validation selects. With several starts
    it is a competitor of its own.
    """

    task: str
    model: str
    starts: int
    runs: tuple[Result, ...]
    tried: int
    """How many settings there were."""

    @property
    def name(self) -> str:
        return self.model if self.starts == 1 else f"{self.model}, {self.starts} starts"

    @property
    def command(self) -> str:
        """Trains each of the runs, with `--seed`."""
        return self.runs[0].settings

    def coarse(self, multiple: int) -> list[float]:
        """Of every run that was scored there; one that failed has none right."""
        scores = [run.accuracy[multiple] for run in self.runs if multiple in run.accuracy]
        failed = [0.0 for run in self.runs if run.error is not None]
        measured = scores or len(failed) == len(self.runs)
        return [float(part.coarse) for part in scores] + failed if measured else []

    def beyond(self) -> list[float]:
        """Of every run with such scores: the symbols right, on average over the sizes that are
        larger than those of training.
        """
        largest = TASKS[self.task].largest if self.task in TASKS else 0
        runs = [[s.fine for s in run.lengths if s.size > largest] for run in self.runs]
        return [fmean(scores) for scores in runs if scores]

    def curve(self) -> dict[int, list[float]]:
        """By size, the share of symbols that each run has right."""
        sizes = sorted({score.size for run in self.runs for score in run.lengths})
        return {
            size: [s.fine for run in self.runs for s in run.lengths if s.size == size]
            for size in sizes
        }


def entries(results: Iterable[Result]) -> list[Entry]:
    """Every task and model, by task; of a task the best model at twice the training size first."""
    places: dict[tuple[str, str, int], dict[str, list[Result]]] = {}
    for result in results:
        where = (result.cell.task, result.cell.model, result.starts)
        place = places.setdefault(where, {})
        place.setdefault(result.settings, []).append(result)
    found = [Entry(*where, tuple(select(tried)), len(tried)) for where, tried in places.items()]

    def order(entry: Entry) -> tuple[object, ...]:
        scores = [entry.coarse(multiple) for multiple in (2, 1)]
        return entry.task, *(-fmean(shares) if shares else 1.0 for shares in scores), entry.name

    return sorted(found, key=order)


def select(tried: Mapping[str, Sequence[Result]]) -> Sequence[Result]:
    """The runs of the settings that are best with the first seed; others may have no more."""

    def score(runs: Sequence[Result]) -> tuple[float, float]:
        return min(runs, key=lambda run: run.seed).promise

    return max(tried.values(), key=score)


def peers_table(results: Sequence[Result], checkpoint: str) -> Table:
    """What every model learns, how fast, and how far it carries."""
    rows = []
    for entry in entries(results):
        runs = entry.runs
        learned = [run for run in runs if run.accuracy.get(1) and run.accuracy[1].coarse >= LEARNED]
        solved = [run for run in runs if run.solved]
        rows.append(
            [
                *(entry.task, entry.name, entry.command, str(runs[0].parameters or EMPTY)),
                *(str(entry.tried), *(f"{len(part)} of {len(runs)}" for part in (learned, solved))),
                middle([run.learned for run in learned]),
                middle([run.learned_seconds for run in learned]),
                *(spread(entry.coarse(multiple)) for multiple in MULTIPLES),
            ]
        )
    header = ["task", "model", "command", "parameters", "settings", "learned", "solved"]
    header += ["batches", "seconds", *(f"coarse {multiple}x" for multiple in MULTIPLES)]
    caption = (
        f"{len(results)} runs. {SELECTION} Learned: at least {LEARNED:.0%} of the test answers of "
        f"the training sizes are right; solved: {SOLVED:.0%} of those of twice the size. Batches "
        "and seconds: when training came there (95 % of the last 100 batches' training problems), "
        "the median of the runs that learned. Coarse: percent of whole answers right on test "
        "problems of so many times the training size, the mean of the seeds and their range. "
        f"{CHECKPOINT[checkpoint]} {EMPTY} was not measured."
    )
    return Table("Models side by side", caption, header, rows, labels=3)


def lengths_table(results: Sequence[Result], checkpoint: str) -> Table:
    """The score of "Neural Networks and the Chomsky Hierarchy"."""
    rows = []
    for entry in entries(results):
        scores = entry.beyond()
        if scores:
            sizes = [size for size in entry.curve() if size > TASKS[entry.task].largest]
            covered = f"{sizes[0]} to {sizes[-1]} ({len(sizes)})"
            shares = [percent(share) for share in (max(scores), fmean(scores))]
            labels = [entry.task, entry.name, entry.command, covered]
            rows.append([*labels, *shares, str(len(scores))])
    caption = (
        "Percent of the symbols of an answer right, without its end symbol, on average over the "
        "sizes, in brackets how many; of the best seed, and on average over the seeds. "
        f"{SELECTION} {CHECKPOINT[checkpoint]}"
    )
    header = ["task", "model", "command", "sizes", "best", "mean", "n"]
    return Table("Beyond the sizes of training", caption, header, rows, labels=4)


def spread(shares: Sequence[float]) -> str:
    """The mean in percent, and the range where there is one.

    >>> spread([0.5, 1.0]), spread([1.0, 1.0]), spread([])
    ('75.00 (50.00 to 100)', '100', '·')
    """
    if not shares:
        return EMPTY
    low, high = min(shares), max(shares)
    mean = percent(fmean(shares))
    return mean if low == high else f"{mean} ({percent(low)} to {percent(high)})"


def middle(numbers: Iterable[float | int | None]) -> str:
    """The median of those that are there."""
    known = [number for number in numbers if number is not None]
    return f"{median(known):.0f}" if known else EMPTY
