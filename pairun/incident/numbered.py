"""A log that is a part of a file and keeps the file's line numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pairun.diagnose.lines import Log


class NumberedLog(Log):
    """The bytes of a log, taken from several places of a file.

    Args:
        data: the bytes.
        name: the name for people.
        runs: pairs of a line's index in `data` and its number in the file, ascending; the lines after it
            follow each other in the file.
    """

    def __init__(self, data: bytes, name: str, runs: Sequence[tuple[int, int]]) -> None:
        super().__init__(data, name)
        self.runs = runs or [(0, 1)]

    def number(self, at: int) -> int:
        """The number of the line at an offset, in its file."""
        index = self.data.count(b"\n", 0, at)
        start, number = self.runs[bisect_right(self.runs, (index, 1 << 62)) - 1]
        return number + index - start

    def offset(self, number: int) -> int:
        """The offset of the file's line with a number; 0 if the log does not hold it."""
        for start, first in reversed(self.runs):
            if first <= number:
                at = 0
                for _ in range(start + number - first):
                    at = self.data.find(b"\n", at) + 1
                    if not at:
                        return 0
                return at
        return 0

    def since(self, at: int) -> NumberedLog:
        """The log from the line at an offset on."""
        index = self.data.count(b"\n", 0, at)
        later = [(start - index, number) for start, number in self.runs if start > index]
        return NumberedLog(self.data[at:], self.name, [(0, self.number(at)), *later])


class Runs:
    """Collects the line numbers of a log that keeps parts of a file.

    Attributes:
        runs: see `NumberedLog`.
    """

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self._index = 0
        self._next = 0

    def add(self, number: int, count: int = 1) -> None:
        """Append consecutive lines.

        Args:
            number: of the first one in the file.
            count: number of lines.
        """
        if number != self._next or not self.runs:
            self.runs.append((self._index, number))
        self._index += count
        self._next = number + count

    def repeat(self, number: int, count: int) -> None:
        """Append lines that are one line in the file, such as a traceback in a JSON string."""
        for _ in range(count):
            self.add(number)
            self._next = number
