"""The symbols of a task."""

from dataclasses import dataclass

from lantm.errors import require_positive


@dataclass(frozen=True)
class Vocabulary:
    """The symbols 0 to n - 1 and, after them, three marks.

    >>> Vocabulary(10).show([10, 4, 2, 11, 12])
    '^ 4 2 # $'
    """

    symbols: int
    """n, the symbols a task speaks of."""

    def __post_init__(self) -> None:
        require_positive(symbols=self.symbols)

    @property
    def start(self) -> int:
        """`^`, before the input; also the unary mark."""
        return self.symbols

    @property
    def separator(self) -> int:
        """`#`, the decoder's input at every step."""
        return self.symbols + 1

    @property
    def end(self) -> int:
        """`$`, with which every answer ends."""
        return self.symbols + 2

    @property
    def size(self) -> int:
        return self.symbols + 3

    def show(self, tokens: list[int]) -> str:
        """Tokens as text."""
        marks = {self.start: "^", self.separator: "#", self.end: "$"}
        return " ".join(marks.get(token, str(token)) for token in tokens)
