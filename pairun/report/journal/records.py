"""Reads a journal; skips and counts records that are cut off, foreign, or from a later version.

The file may come from another machine, and its writer may have been killed at any byte. Therefore
every field is checked before use.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO, Annotated, Any, NamedTuple

import attrs

from pairun.base.fields import between, field_of
from pairun.base.foreignjson import parse_json
from pairun.base.sizes import format_size
from pairun.errors import PairunError, Problem
from pairun.volume.journal import JOURNAL_SCHEMA, Record

READ_BYTES = 16 << 20
"""How many bytes to read, half from each end; a job of one day writes less than 1 MB."""

JUMP_S = 0.05
"""Times of two processes may differ by this much; more means that the clock was set back."""

_CHUNK_BYTES = 1 << 20
_HEAD = b'{"schema"'
"""The beginning of every record; an incomplete line with it was cut off."""


class JournalEntry(NamedTuple):
    """A record.

    Attributes:
        data: its checked fields, with every field that its type requires.
        at: seconds since the first record, corrected for clocks that were set back.
    """

    data: Record
    at: float

    @property
    def type(self) -> str:
        """The record's type."""
        return str(self.data["type"])


@attrs.define
class JournalReading:
    """The contents of a journal.

    Attributes:
        entries: the records, in their order.
        lines: the number of lines, without empty ones.
        torn: the numbers of the lines that were cut off.
        foreign: the numbers of the lines that are not records.
        ignored: how many records there are of each unknown type.
        jumps: the numbers of the lines where the clock was set back, and by how many seconds.
        skipped_bytes: how many bytes in the middle were skipped, because the journal is too long.
    """

    entries: list[JournalEntry] = attrs.field(factory=list)
    lines: int = 0
    torn: list[int] = attrs.field(factory=list)
    foreign: list[int] = attrs.field(factory=list)
    ignored: Counter[str] = attrs.field(factory=Counter)
    jumps: list[tuple[int, float]] = attrs.field(factory=list)
    skipped_bytes: int = 0


_COUNT = Annotated[int, between(0, (1 << 31) - 1)]
_DURATION = Annotated[float, between(0, 10**12)]
_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "type", "phase", "pairun", "task", "name", "module", "outcome", "kind", "fault",
            "message", "hint", "trace", "because", "event", "class", "retry", "headline", "advice",
            "layer", "where", "signal", "sender", "command", "reason",
        ),
        str,
    ),
    **dict.fromkeys(("tasks", "attempt", "attempts", "of", "count", "exit_code", "pid", "uid"), _COUNT),
    **dict.fromkeys(("time", "seconds"), _DURATION),
    "handler": bool, "output": list[str], "confidence": Annotated[float, between(0, 1)],
    **dict.fromkeys(("evidence", "set"), list[Mapping[str, Any]]),
}  # fmt: skip

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "phase_begin": ("phase",),
    "settings": ("phase", "task", "layer", "where", "set"),
    "attempt_begin": ("task", "attempt"),
    "attempt_end": ("task", "attempt", "outcome", "seconds"),
    "wait": ("task", "seconds"),
    "task_end": ("task", "outcome", "seconds"),
    "handlers_begin": ("event",),
    "command_begin": (),
    "command_end": ("exit_code", "seconds"),
    "diagnosis": ("class", "headline"),
    "stop": ("signal",),
    "retry_coming": ("file",),
    "event": ("reason", "message"),
    "phase_end": ("phase", "outcome", "exit_code", "seconds"),
}
"""The known types of records, and the fields that each requires."""


def read_entries(stream: IO[bytes], name: str) -> JournalReading:
    """Read a journal; if it exceeds `READ_BYTES`, only the first and the last half of that.

    Args:
        stream: the journal.
        name: its name for people.

    Raises:
        PairunError: its schema is unknown, or it contains no record.
        OSError: the journal cannot be read.
    """
    reading = JournalReading()
    last: float | None = None
    at = 0.0
    for number, line in _lines(stream, reading):
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
        reading.entries.append(JournalEntry(data, at))
    if reading.foreign and not (reading.entries or reading.torn or reading.ignored):
        message = f"{name} is not a journal: none of its {reading.lines} lines is a record"
        raise PairunError(Problem("PR810", message, hint="a journal is named journal.jsonl"))
    return reading


def _lines(stream: IO[bytes], reading: JournalReading) -> Iterator[tuple[int, bytes]]:
    data = stream.read(READ_BYTES // 2)
    tail, skipped = _last_half(stream)
    if skipped:
        # The lines at the gap are incomplete.
        kept, cut = data.rfind(b"\n") + 1, tail.find(b"\n") + 1 or len(tail)
        skipped += len(data) - kept + cut
        data, tail = data[:kept], tail[cut:]
    reading.skipped_bytes = skipped
    for number, line in enumerate((data + tail).split(b"\n"), 1):
        if line := line.strip():
            yield number, line


def _last_half(stream: IO[bytes]) -> tuple[bytearray, int]:
    """The rest of a journal, at most half of `READ_BYTES`, and how many bytes it skips."""
    tail, skipped = bytearray(), 0
    if stream.seekable():
        at = stream.tell()
        skipped = max(0, stream.seek(0, os.SEEK_END) - READ_BYTES // 2 - at)
        stream.seek(at + skipped)
    while chunk := stream.read(_CHUNK_BYTES):
        tail += chunk
        excess = max(0, len(tail) - READ_BYTES // 2)
        del tail[:excess]
        skipped += excess
    return tail, skipped


def _record(line: bytes, number: int, name: str, reading: JournalReading) -> Record | None:
    try:
        data = parse_json(line, strict=True)
    except ValueError:
        begun = line.startswith(_HEAD) or _HEAD.startswith(line)
        (reading.torn if begun else reading.foreign).append(number)
        return None
    if not isinstance(data, dict) or not isinstance(kind := data.get("type"), str):
        reading.foreign.append(number)
        return None
    if type(schema := data.get("schema")) is int and schema != JOURNAL_SCHEMA:
        raise PairunError(
            Problem(
                "PR810",
                f"{name}, line {number}: schema {schema}; this version reads schema {JOURNAL_SCHEMA}",
                hint="read it with the version of pairun that wrote it, or with a newer one",
            )
        )
    if schema == JOURNAL_SCHEMA and kind not in _REQUIRED:
        reading.ignored[kind] += 1
        return None
    known = {k: field_of(data, k, _KINDS[k]) for k in data if k in _KINDS}
    fields = {k: v for k, v in known.items() if v is not None}
    if schema != JOURNAL_SCHEMA or not all(k in fields for k in _REQUIRED.get(kind, ())):
        reading.foreign.append(number)
        return None
    return fields


def notes(reading: JournalReading) -> list[str]:
    """Describe problems with reading a journal, in sentences for people."""
    sentences = []
    if not reading.lines:
        sentences.append("the journal is empty")
    if reading.skipped_bytes:
        sentences.append(
            f"the journal is too long: {format_size(reading.skipped_bytes)} in its middle were not read"
        )
    if reading.torn:
        sentences.append(
            f"{_at(reading.torn)} cut off: the writer was killed, or the disk was full"
        )
    if reading.foreign:
        sentences.append(f"{_at(reading.foreign)} not a record, and skipped")
    for number, seconds in reading.jumps[:3]:
        sentences.append(
            f"the clock was set back by {seconds:.1f} s before line {number}; "
            "measured durations are not affected"
        )
    if len(reading.jumps) > 3:
        sentences.append(f"the clock was set back {len(reading.jumps)} times")
    return sentences


def _at(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    if len(numbers) == 1:
        return f"line {shown} is"
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"lines {shown}{more} are"


def describe(value: Any) -> str:
    """A foreign text on one line, with its control characters escaped."""
    text = " ".join(str(value).replace("\r\n", "\n").split("\n")).strip()
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c == "\t" else c.encode("unicode_escape").decode()
        for c in text
    )
