"""Reads the first words of a log's line that may name its writer, between times and levels.

A word that follows a level or other words may be the program's own text, which may mention a worker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.incident.columnvalues import Column

_HEAD_BYTES = 200

MAX_WORDS = 9
"""How many words of a line are looked at."""

_LEVEL = rb"(?i:trace|debug|info|notice|success|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|exception|severe)"

_WORD = re.compile(
    rb"(?P<time>\d{4}[-/.]\d\d[-/.]\d\d(?:[T _-]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?(?![\w])"
    rb"|\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?(?![\w:])|(?<![\w])[EWIFDC]\d{4}(?= )"
    rb"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d(?= )"
    rb"|\d\d-\d\d(?= \d\d:)|\d{9,10}\.\d{1,9}(?![\w])|\d{13,19}(?![\w])|UTC\b|\b[AP]M\b)"
    rb"|(?<![\w.-])(?P<level>" + _LEVEL + rb"|[DIWEFC](?=[ \]|]))(?![\w.-])"
    rb"|(?P<path>(?<!\S)[\w.-]*(?:/[\w.-]+)*\.(?:log|txt|out|err))(?=[:\s])"
    rb"|(?P<word>[^\s\[\](){}<>|,;:\"'/=#\xe2\x80\xba*@!?&%$+~]+)"
)

_GLUED = re.compile(rb"([A-Za-z][A-Za-z_]*?)[_.-]?(\d{1,6})")

_GLUED_KEYS = re.compile(
    rb"(?i)(?:global_?|world_?|local_?)?rank|r|gpu|g|cuda|device|[dtpe]p|lr|local"
)
"""Words before a number without a space whose number is that of a rank, not only a part of a name."""

_RANK_WORDS = (b"r", b"rank")

_KEY_WORDS = re.compile(
    rb"(?i)(?:global|local|world|process|node|shard|machine)?[_-]?"
    rb"(?:rank|worker|process|proc|replica|trainer|task|actor|pe|host|node|machine|member|peer|client|executor|gpu"
    rb"|cuda|device|slot|pid)(?:[_-]?(?:id|index))?|r|[dtpe]p"
)

_PROSE = re.compile(rb"[A-Za-z][a-z]+")

_OPENS, _CLOSES = b"[(<{|", b"])>}|:"

_AT_END = re.compile(
    rb"(?<![\w.-])((?i:(?:global_?|world_?)?rank|process_index|worker(?:_id)?))=[\"']?(\d{1,6})\b(?=(?:[ \t]+[\w.]+=\S+)*\s*$)"
)

LAST = 99
"""The place of a field that a logger appends to its text."""

_LAST_WORD = re.compile(rb"[#@|<(\[] ?([A-Za-z][\w.-]{0,60}\d)[\])>]?\s*$")
"""A name that a logger appends to its text, after a sign."""

_NEXT_NUMBER = re.compile(rb"(?:[=:#]|: | |_|-)\d{1,8}(?![\w.])")


class Word(NamedTuple):
    """A word in a line that may be a name.

    Attributes:
        column: how many words that are no times and no levels stand before it, and the word before a
            number or before ``=``.
        value: the name or the number.
        start: its offset, with the key.
        end: the offset of what follows it.
        in_prose: whether it may be a word of the program's own text.
    """

    column: Column
    value: str
    start: int
    end: int
    in_prose: bool


class Head(NamedTuple):
    """The first words of a line.

    Attributes:
        words: those that may be names.
        marks: start and end of each time and level between them.
        level: the first level, in capitals; empty if there is none.
    """

    words: Sequence[Word]
    marks: Sequence[tuple[int, int]]
    level: bytes


def head_of(line: bytes, last: int = MAX_WORDS) -> Head:
    """The first words of a line.

    Args:
        line: the line.
        last: the place of the last word that is needed.
    """
    words: list[Word] = []
    marks: list[tuple[int, int]] = []
    level = b""
    place = prose = 0
    key, key_at = "", 0
    for match in _WORD.finditer(line, 0, _HEAD_BYTES):
        kind, start, end = match.lastgroup, match.start(), match.end()
        if kind in ("time", "level"):
            marks.append((start, end))
            raw = match[0].upper()
            if kind == "level" or raw[:1] in b"EF":
                level = level or (raw if kind == "level" else raw[:1])
            key = ""
            continue
        raw = match[0].strip(b".-_") if kind == "word" else _stem(match[0])
        if not raw:
            continue
        after = line[end : end + 1]
        opened = line[: key_at if key else start].rstrip()[-1:]
        is_closed = (
            bool(opened) and opened in _OPENS and line[end : end + 2].lstrip()[:1] in _CLOSES
        )
        in_prose = bool((level and not (is_closed and line[end : end + 2].strip())) or prose)
        if key:
            is_value = raw.isdigit() or line[start - 1 : start] in b"=\"'"
            if is_value:
                value = raw.decode("ascii", "replace")
                words.append(Word(Column(place, key), value, key_at, end, in_prose))
            place += 1
            key = ""
            if is_value and place <= last:
                continue
            if is_value or place > last:
                break
        if after == b"=" or (_KEY_WORDS.fullmatch(raw) and _number_follows(line, end)):
            key, key_at = raw.decode("ascii", "replace"), start
            continue
        text = raw.decode("ascii", "replace")
        words.append(Word(Column(place), text, start, end, in_prose))
        if (glued := _GLUED.fullmatch(raw)) and _GLUED_KEYS.fullmatch(glued[1]):
            is_rank = glued[1].lower() in _RANK_WORDS and not prose
            part = Column(place, glued[1].decode())
            words.append(Word(part, glued[2].decode(), start, end, in_prose and not is_rank))
        place += 1
        if place > last:
            break
        if line[start - 1 : start] in b" \t" and after in b" \t," and _PROSE.fullmatch(raw):
            prose += 1
            if prose > 1:
                break
    if last == MAX_WORDS and (tail := _AT_END.search(line)):
        value = tail[2].decode()
        column = Column(LAST, tail[1].decode())
        words.append(Word(column, value, tail.start(), tail.end(), in_prose=False))
    if last == MAX_WORDS and (name := _LAST_WORD.search(line)):
        value = name[1].decode("ascii", "replace")
        words.append(Word(Column(LAST), value, name.start(), name.end(), in_prose=False))
    return Head(words, marks, level)


def _number_follows(line: bytes, end: int) -> bool:
    return _NEXT_NUMBER.match(line, end) is not None


def _stem(path: bytes) -> bytes:
    """The name of a file without folder and ending."""
    return path.rpartition(b"/")[2].rpartition(b".")[0]


def word_of(head: Head, column: Column) -> Word | None:
    """The word that a line has in a column; None if it has none."""
    return next((w for w in head.words if w.column == column), None)
