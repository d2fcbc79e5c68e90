"""A table: every cell as text, whatever it is then shown on."""

from collections.abc import Sequence
from typing import NamedTuple

CHECKPOINT = {
    "best": "The checkpoint of a run was selected on validation problems.",
    "last": "The checkpoint of a run is its last.",
}


class Table(NamedTuple):
    """What all formats show."""

    title: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    """How many columns, from the left, are words; the others are numbers."""

    @property
    def numeric(self) -> list[bool]:
        return [column >= self.labels for column in range(len(self.header))]
