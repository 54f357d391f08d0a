"""Reads a journal; skips and counts records that are torn, foreign, or of a later version.

The file comes from another machine, and its writer may have been killed at any byte, so every field is
checked before it is used.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple, NoReturn

import attrs

from pairun.errors import PairunError, Problem
from pairun.handover.journal import SCHEMA, Record

LONGEST_LINE = 8 << 20
"""Of a longer line nothing is kept: no record is near to that."""

JUMP_S = 0.05
"""What two processes' clocks may seem to differ by; more is a clock that was set back."""

_LONGEST_S = 1e12
_HEAD = b'{"schema"'
"""How every record begins; a line that begins so and is not whole is one that was cut off."""


class Entry(NamedTuple):
    """A record.

    Attributes:
        data: its fields; those that are required for its type are there, each of its kind.
        at: seconds since the first record, as if no clock had ever been set back.
    """

    data: Record
    at: float

    @property
    def type(self) -> str:
        """What kind of record it is."""
        return str(self.data["type"])


@attrs.define
class Reading:
    """What a journal holds.

    Attributes:
        entries: the records, in their order.
        lines: how many lines there are, empty ones not counted.
        torn: the numbers of the lines that a writer did not finish.
        foreign: the numbers of the lines that are no record.
        ignored: how many records there are of each type that this version does not know.
        jumps: the numbers of the lines where the clock was set back, and by how much.
    """

    entries: list[Entry] = attrs.Factory(list)
    lines: int = 0
    torn: list[int] = attrs.Factory(list)
    foreign: list[int] = attrs.Factory(list)
    ignored: Counter[str] = attrs.Factory(Counter)
    jumps: list[tuple[int, float]] = attrs.Factory(list)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _is_seconds(value: object) -> bool:
    # what is no number, infinite or absurd compares false
    return type(value) in (int, float) and 0 <= value < _LONGEST_S  # type: ignore[operator]


def _are_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


_KINDS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(
        (
            "type", "phase", "pairun", "task", "name", "module", "outcome", "kind", "fault",
            "message", "hint", "trace", "because", "event", "class", "retry", "headline", "advice",
        ),
        _is_text,
    ),
    **dict.fromkeys(("tasks", "attempt", "attempts", "of", "count", "exit_code"), _is_count),
    **dict.fromkeys(("time", "seconds"), _is_seconds),
    "handler": lambda v: isinstance(v, bool),
    "output": _are_lines,
    "confidence": lambda v: isinstance(v, float) and 0 <= v <= 1,
    "evidence": lambda v: isinstance(v, list) and all(isinstance(e, dict) for e in v),
}  # fmt: skip

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "phase_begin": ("phase",),
    "attempt_begin": ("task", "attempt"),
    "attempt_end": ("task", "attempt", "outcome", "seconds"),
    "wait": ("task", "seconds"),
    "task_end": ("task", "outcome", "seconds"),
    "handlers_begin": ("event",),
    "command_begin": (),
    "command_end": ("exit_code", "seconds"),
    "diagnosis": ("class", "headline"),
    "phase_end": ("phase", "outcome", "exit_code", "seconds"),
}
"""The types that are known, and what a record of each cannot do without."""


def read_entries(stream: IO[bytes], name: str) -> Reading:
    """Read a journal to its end.

    Args:
        stream: the journal.
        name: what people know it by.

    Raises:
        PairunError: it is of a schema that this version does not know, or nothing of it is a
            journal's.
        OSError: it cannot be read.
    """
    reading = Reading()
    last: float | None = None
    at = 0.0
    for number, line in _lines(stream):
        reading.lines += 1
        data = _record(line, number, name, reading)
        if data is None:
            continue
        time = data.get("time")
        if time is not None:
            step = 0.0 if last is None else time - last
            if step < -JUMP_S:
                reading.jumps.append((number, -step))
            at += max(0.0, step)
            last = time
        reading.entries.append(Entry(data, at))
    if reading.foreign and not (reading.entries or reading.torn or reading.ignored):
        message = f"{name} is no journal: none of its {reading.lines} lines is a record"
        raise PairunError(Problem("PR810", message, hint="a journal is named journal.jsonl"))
    return reading


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            line = b"?"
        if line := line.strip():
            yield number, line


def _record(line: bytes, number: int, name: str, reading: Reading) -> Record | None:
    try:
        data = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        begun = line.startswith(_HEAD) or _HEAD.startswith(line)
        (reading.torn if begun else reading.foreign).append(number)
        return None
    if not isinstance(data, dict) or not isinstance(kind := data.get("type"), str):
        reading.foreign.append(number)
        return None
    if type(schema := data.get("schema")) is int and schema != SCHEMA:
        raise PairunError(
            Problem(
                "PR810",
                f"{name}, line {number}: schema {schema}; this version reads schema {SCHEMA}",
                hint="read it with the version of pairun that wrote it, or with a newer one",
            )
        )
    if schema == SCHEMA and kind not in _REQUIRED:
        reading.ignored[kind] += 1
        return None
    kept = {k: v for k, v in data.items() if (fits := _KINDS.get(k)) is not None and fits(v)}
    if schema != SCHEMA or not all(k in kept for k in _REQUIRED.get(kind, ())):
        reading.foreign.append(number)
        return None
    return kept


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def notes(reading: Reading) -> list[str]:
    """What is to be said of how a journal could be read, in sentences."""
    said = []
    if not reading.lines:
        said.append("the journal is empty")
    if reading.torn:
        said.append(f"{_at(reading.torn)} cut off: its writer was killed, or the disk was full")
    if reading.foreign:
        said.append(f"{_at(reading.foreign)} no record, and left out")
    for number, seconds in reading.jumps[:3]:
        said.append(
            f"the clock was set back by {seconds:.1f} s before line {number}; "
            "what was measured does not depend on it"
        )
    if len(reading.jumps) > 3:
        said.append(f"the clock was set back {len(reading.jumps)} times")
    return said


def _at(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    if len(numbers) == 1:
        return f"line {shown} is"
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"lines {shown}{more} are"


def describe(value: Any) -> str:
    """A text of somebody else's on one line; what a terminal would obey is written out."""
    text = " ".join(str(value).replace("\r\n", "\n").split("\n")).strip()
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c == "\t" else c.encode("unicode_escape").decode()
        for c in text
    )
