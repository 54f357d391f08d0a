"""Where a program that appends to a log starts again: the log's first lines repeat.

A job script that runs again prints the same lines first, apart from times, numbers and paths with
numbers. One such line may be a coincidence, a block of them is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pairun.diagnose.lines import Line, Log
from pairun.diagnose.segments import Mark
from pairun.diagnose.surroundings import is_progress

_HEAD_LINES = 12
_BLOCK_LINES = 16
_MIN_BLOCK = 3
_MIN_TEXT = 8
_MIN_SINGLE = 16
_ANCHORS = 5
_MAX_RECURRENCES = 64
_DIGITS = re.compile(r"\d+")
_HEX = re.compile(r"\b(?=[a-f]*\d)[\da-f]{6,}\b")
_VARIES = re.compile(r"[Tt]raceback|^\W+$|\b[A-Z]\w*Error\b|^ ")
"""Lines that do not distinguish a program's start from its failure."""

_RISKY = re.compile(r"\d|[Ee]rror|[Ww]arning")
"""Parts of a line that, if it recurs alone, is no program's start."""


def recurrences(log: Log, marks: Iterable[Mark]) -> list[Mark]:
    """Marks where the first lines of the log repeat.

    Args:
        log: the log.
        marks: of its lines; the first end among them ends the log's first lines.
    """
    ends = [mark.at for mark in marks if mark.kind in ("end", "raised", "header")]
    lines = [log.first(), *log.after(0, _HEAD_LINES)]
    head = _distinct(each for each in lines if each.at < min(ends, default=len(log.data)))
    shapes = set(head)
    out = []
    for first in list(head.values())[:_ANCHORS]:
        text = first.text.strip()
        why = f"it begins again: {text[:80]}"
        is_telling = len(text) >= _MIN_SINGLE and not _RISKY.search(text)
        for line in _later(log, first):
            block = {_shape(each) for each in [line, *log.after(line.at, _BLOCK_LINES)]}
            if len(block & shapes) >= _MIN_BLOCK and line.source == first.source:
                out.append(Mark(line.at, "launch", why))
            elif is_telling and line.at > min(ends, default=len(log.data)):
                out.append(Mark(line.at, "begin", why))
    return out


def _distinct(lines: Iterable[Line]) -> dict[str, Line]:
    """The lines that can distinguish a program's start, by shape."""
    out: dict[str, Line] = {}
    for line in lines:
        text = line.text.strip()
        if len(text) >= _MIN_TEXT and not _VARIES.search(line.text) and not is_progress(line):
            out.setdefault(_shape(line), line)
    return out


def _shape(line: Line) -> str:
    """A line's text without its numbers."""
    return _DIGITS.sub("0", _HEX.sub("0", line.text.strip()))


def _later(log: Log, like: Line) -> Iterator[Line]:
    """The last lines of the same shape after a line."""
    piece = max(_DIGITS.split(like.text.strip()), key=len).encode()
    at = len(log.data)
    if len(piece) < _MIN_TEXT:
        return
    for _ in range(_MAX_RECURRENCES):
        at = log.data.rfind(piece, 0, at)
        start = log.data.rfind(b"\n", 0, max(at, 0)) + 1
        if start <= like.at:
            return
        line = next(iter(log.after(start - 1, 1)), None)
        if line is not None and _shape(line) == _shape(like):
            yield line
