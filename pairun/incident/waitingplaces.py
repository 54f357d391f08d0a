"""Finds where in its code each rank waited, and the rank that waited elsewhere.

Ranks that run the same program wait at the same line. A rank that waits at another line entered
another collective, so it and the others wait for each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.tracebacks import Frame

_MAX_LINES = 240
_BETWEEN_TWO = frozenset(
    ("send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list")
)
"""Operations between two ranks: in a pipeline each stage waits at a different line."""

_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')


class WaitingPlace(NamedTuple):
    """Where a rank waited.

    Attributes:
        file: the file of the job's own code.
        line: the line in it.
        function: the innermost function, of a library, such as ``barrier``.
    """

    file: str
    line: int
    function: str

    def words(self) -> str:
        """The place for people."""
        file = self.file.rpartition("/")[2]
        return f"{file}:{self.line} ({self.function})" if self.function else f"{file}:{self.line}"


class OddRank(NamedTuple):
    """The rank that waits elsewhere.

    Attributes:
        label: its label.
        words: the fact for people.
        other_call: whether it also waits in another function.
    """

    label: str
    words: str
    other_call: bool


def waiting_place(log: Log, at: int) -> WaitingPlace | None:
    """Where the exception on an offset's line was raised; None if it has no traceback."""
    exception = next(log.after(at - 1, 1), None) if at else None
    frames: list[Frame] = []
    for line in log.before(at, _MAX_LINES):
        if exception is not None and line.source != exception.source:
            continue
        if HEADER in line.text:
            break
        if frame := _frame(line):
            frames.append(frame)
        elif line.text and not line.text.startswith((" ", "\t")):
            return None
    own = next((f for f in frames if not f.is_library), None)
    return WaitingPlace(own.file, own.line, frames[0].function) if own is not None else None


def odd_rank(places: Mapping[str, WaitingPlace]) -> OddRank | None:
    """The one rank that waits at another line than the others; None unless there is exactly one.

    Args:
        places: where each rank that gave up waited, by label.
    """
    if len(places) < 3 or any(place.function in _BETWEEN_TWO for place in places.values()):
        return None
    (line, count), *others = Counter((p.file, p.line) for p in places.values()).most_common()
    if count != len(places) - 1 or len(others) != 1:
        return None
    label = next(each for each, place in places.items() if (place.file, place.line) != line)
    odd = places[label]
    usual = next(place for place in places.values() if (place.file, place.line) == line)
    words = f"{label} waits at {odd.words()}, the others at {usual.words()}"
    return OddRank(label, words, odd.function != usual.function)


def _frame(line: Line) -> Frame | None:
    match = _FRAME.match(line.text)
    return Frame(match["file"], int(match["line"]), match["function"] or "") if match else None
