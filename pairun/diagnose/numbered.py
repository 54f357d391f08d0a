"""A log that is a part of a file and keeps the file's line numbers."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from pairun.diagnose.lines import Log, without_escapes

_WORD = re.compile(r"\S+")
_LEAST_SHARE = 0.2
"""The least share of a shown line that is worth showing alone."""

_ADDED = re.compile(r"(?:\[pod/[^\]]*\] |\[rank\d+\]: )+")
_MAX_TEXT = 1 << 20


class NumberedLog(Log):
    """The bytes of a log, taken from several places of a file.

    Args:
        data: the bytes.
        name: the name for people.
        runs: pairs of a line's index in `data`, ascending, and its number in the file; the lines after it
            follow each other in the file.
        source: the lines of the file from which these were rewritten; None if they are the file's.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        runs: Sequence[tuple[int, int]],
        source: NumberedLog | None = None,
    ) -> None:
        super().__init__(data, name)
        self.runs = runs or [(0, 1)]
        self.source: NumberedLog | None = source and (source.source or source)

    def written(self, at: int, shown: str) -> str:
        """The part of a shown line that its file has, without what rewriting added.

        That is the longest end of it that the file's line has, in JSON with its escapes.
        """
        if self.source is None:
            return shown
        text = self.source.text_of(self.number(at))
        for word in _WORD.finditer(shown):
            part = shown[word.start() :]
            if len(part) < _LEAST_SHARE * len(shown):
                break
            if any(form in text for form in (part, json.dumps(part)[1:-1])):
                return part
        return _ADDED.sub("", shown)

    def text_of(self, number: int) -> str:
        """The text of the file's line with a number, without colours."""
        last = bisect_right(self._numbers, number) - 1
        first = max(0, last)
        while first and self._numbers[first] == number:
            first -= 1
        lines = self._lines
        start = self.runs[first][0] + max(0, number - self.runs[first][1])
        end = self.runs[last][0] + number - self.runs[last][1] + 1
        raw = b"\n".join(lines[start:end])[:_MAX_TEXT]
        return without_escapes(raw.decode("utf-8", "replace"))

    @cached_property
    def _numbers(self) -> list[int]:
        return [number for _, number in self.runs]

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.data.split(b"\n")

    def number(self, at: int) -> int:
        """The number of the line at an offset, in its file."""
        index = self.data.count(b"\n", 0, at)
        start, number = self.runs[bisect_right(self.runs, (index, 1 << 62)) - 1]
        return number + index - start

    def offset(self, number: int) -> int:
        """The offset of the file's line with a number; 0 if the log does not hold it."""
        before = [(first, start) for start, first in self.runs if first <= number]
        if not before:
            return 0
        first, start = max(before)
        at = 0
        for _ in range(start + number - first):
            at = self.data.find(b"\n", at) + 1
            if not at:
                return 0
        return at

    def since(self, at: int) -> NumberedLog:
        """The log from the line at an offset on."""
        index = self.data.count(b"\n", 0, at)
        later = [(start - index, number) for start, number in self.runs if start > index]
        return NumberedLog(self.data[at:], self.name, [(0, self.number(at)), *later], self.source)


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
