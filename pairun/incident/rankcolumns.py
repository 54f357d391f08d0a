"""Recognises the column in which a program's logger prints the rank of each line's writer.

Lines such as ``... E r1 failed`` or ``... [worker=3] [INFO] step 8`` name their writers; a text that
mentions a rank or a worker (``... WARNING worker 3: retrying``) may be of any process. So a column
is in brackets, or short (``r1``), or before the level, always at the same word, and no words of a
sentence stand before it.

The lines of a traceback have no column. They belong to the line before them if a logger printed them
with it, as an error. After any other line, nothing says whose they are; the log then stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pairun.incident.numbered import NumberedLog

_SHARE = 0.9
_MIN_LINES, _LINES_EACH = 6, 2
_MAX_WORDS = 7
"""How many words stand before a column."""

_AFTER_COLUMN = 3
"""How many words after a column may hold the level."""

_STAMP = rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d"
_STAMPED = re.compile(_STAMP)
_KEY = rb"(?:(?:global[_ ]?)?r(?:ank)?|worker|proc(?:ess)?|replica|trainer|task)[ =:_#-]{0,2}"
_LEVEL = rb"(?:trace|debug|info|notice|warn(?:ing)?|error|critical|fatal)"
_COLUMN = (
    rb"(?:[\[(|<{,] ?" + _KEY + rb"(?=\d{1,6} ?[\])|>},])"
    rb"|(?<!\S)r(?=\d{1,6}(?:[\s:|]|$))"
    rb"|(?<!\S)" + _KEY + rb"(?=\d{1,6}[ :|-]{1,4}[\[(]?" + _LEVEL + rb"\b))(\d{1,6})"
)
_IN_LINE = re.compile(rb"(?i)" + _COLUMN)
_BEFORE = rb"\S+(?:[ \t]+\])?[ \t]+"
_PROSE = re.compile(rb"(?!(?i:" + _LEVEL + rb"|root|main)\b)[A-Za-z][a-z]+[,;]?")

_BLOCK = re.compile(
    rb"\n((?:(?:[ \t]|(?=\n)|(?:Original )?Traceback \(most|During handling of|The above exception was"
    rb"|> File |(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b)[^\n]*\n)+)"
)
"""The lines of a traceback; the newline before them is quicker to find than the start of a line."""

_FAILURE = re.compile(
    rb"(?m)^(?:(?:Original )?Traceback|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b)"
)
_ERRORS = {b"E", b"ERR", b"ERROR", b"CRIT", b"CRITICAL", b"FATAL", b"EXCEPTION", b"SEVERE"}
_ENDS = b"[](){}<>|:,"


def column_of(sample: Sequence[bytes]) -> int | None:
    """The number of words before the rank in nearly all lines of a logger; None without a column.

    Args:
        sample: lines of the log.
    """
    stamped = [line for line in sample if _STAMPED.match(line)]
    places = [place for line in stamped if (place := _place(line))]
    if not places:
        return None
    words, count = max(Counter(words for words, _ in places).items(), key=lambda item: item[1])
    ranks = Counter(rank for own, rank in places if own == words)
    is_column = (
        len(stamped) >= _MIN_LINES
        and count >= _SHARE * len(stamped)
        and len(ranks) > 1
        and min(ranks.values()) >= _LINES_EACH
    )
    return words if is_column else None


def with_ranks(log: NumberedLog, words: int) -> NumberedLog:
    """A log with the rank of its column before each line; itself if a traceback may be of any rank.

    Args:
        log: the log.
        words: how many words stand before the column.
    """
    data = b"\n" + log.data + b"\n"
    column = re.compile(
        rb"(?i)\n(?=" + _STAMP + rb")(?=(?:" + _BEFORE + rb"){%d}\S*?" % words + _COLUMN + rb")"
    )
    parts: list[bytes] = []
    end = 0
    for block in _BLOCK.finditer(data):
        head = data[data.rfind(b"\n", 0, block.start()) : block.start()]
        if (match := column.match(head)) is None:
            continue
        if not _is_error(head, words):
            if _FAILURE.search(block[1]):
                return log
            continue
        parts.append(column.sub(rb"\n[rank\1]: ", data[end : block.start(1)]))
        parts.append(re.sub(rb"(?m)^", b"[rank%s]: " % match[1], block[1][:-1]))
        end = block.end() - 1
    parts.append(column.sub(rb"\n[rank\1]: ", data[end:]))
    return NumberedLog(b"".join(parts)[1:-1], log.name, log.runs, log)


def _place(line: bytes) -> tuple[int, bytes] | None:
    """The number of words before the rank in a line, and the rank."""
    match = _IN_LINE.search(line, 0, 300)
    if match is None:
        return None
    words = re.findall(_BEFORE, line[: match.start()])
    if len(words) > _MAX_WORDS or any(_PROSE.fullmatch(word.strip()) for word in words):
        return None
    return len(words), match[1]


def _is_error(line: bytes, words: int) -> bool:
    """Whether a logger printed a line as an error."""
    head = line.split(None, words + _AFTER_COLUMN + 1)[: words + _AFTER_COLUMN]
    for word in head:
        level = word.strip(_ENDS).rpartition(b"=")[2]
        if level in _ERRORS or (word[:1] in b"[(|" and level.upper() in _ERRORS):
            return True
    return False
