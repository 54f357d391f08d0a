"""Recognises who wrote each line of a shared log, whatever layout a tool or a logger gives to the name.

Tools that print the logs of several Pods, hosts or processes put a name before each line: pdsh, stern,
``docker compose``, logcli, Fluentd, ``aws logs tail``, launchers. A program's own logger may print its
rank in a column. Both are found as a column of the lines' first words (`pairun.incident.columns`). Such
lines get the form of ``kubectl logs --prefix`` or of torchrun, which the rest reads.

The lines of a traceback have no column of a logger. They belong to the line before them if a logger
printed them with it, as an error; after any other line, nothing says whose they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pairun.incident.columns import Column, Entry, Writers, writers_of
from pairun.incident.numbered import NumberedLog

_SAMPLE_BYTES = 1 << 16
_BLOCKS, _BLOCK_LINES = 5, 100
_MIN_LINES = 4
_HEAD_BYTES = 200
_MAX_WORDS = 9
"""How many words of a line are looked at."""

_ALL = 0.97
"""The share of lines that have the names which a tool puts before all lines."""

_MAX_AFTER = 3
"""How many words that never change stand between a tool's name and the program's own text."""

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
_KEYED = re.compile(rb"[=:#] ?\"?'?| |-(?=\d)|")
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
_BETWEEN = re.compile(rb"[\s|:-]{0,4}")
_OPENS, _CLOSES = b"[(<{|", b"])>}|:"
_CONTINUED = re.compile(
    rb"[ \t]|$|(?:Original )?Traceback \(most|During handling of|The above exception was|> File"
    rb"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b[:\s]?"
)
"""A line that follows from the one before it, without a column: of a traceback, or indented."""

_FAILURE = re.compile(
    rb"(?m)^(?:(?:Original )?Traceback|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b)"
)
_KNOWN = re.compile(
    rb"\((?:[\w.<>=/-]+ )+pid=\d|\[pod/|\[?[Rr]ank:? ?\d+\]?:|\[[a-z]{2,12}\d+\]:|\[\d+,\d+\]<std\w+>:"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ \S+\[\d+\]: "
)
"""Layouts that `pairun.incident.prefixes` reads itself."""

_ERRORS = {b"E", b"ERR", b"ERROR", b"CRIT", b"CRITICAL", b"FATAL", b"EXCEPTION", b"SEVERE", b"F"}
_DIGITS = re.compile(r"\d+")
_NUMBERS = re.compile(rb"\d+")
_RANKED = re.compile(r"(?i)r(?:ank)?[_.-]?(\d{1,6})")


class _Word(NamedTuple):
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


class _Head(NamedTuple):
    """The first words of a line: the words, and the times and levels between them."""

    words: Sequence[_Word]
    marks: Sequence[tuple[int, int]]
    level: bytes


def with_names(log: NumberedLog) -> NumberedLog:
    """A log whose lines name their writers in a form that is known; itself if they do not."""
    sample = _sample(log.data)
    if len(sample) < _MIN_LINES or sum(map(bool, map(_KNOWN.match, sample))) * 2 > len(sample):
        return log
    heads = {n: _head(line) for n, line in enumerate(sample) if not _CONTINUED.match(line)}
    columns: dict[Column, list[Entry]] = {}
    for n, head in heads.items():
        for word in head.words:
            entry = Entry(n, word.value, _text(sample[n][word.end :]), word.in_prose)
            columns.setdefault(word.column, []).append(entry)
    writers = writers_of(dict(sorted(columns.items())), len(heads))
    if writers is None:
        return log
    return _rewritten(log, writers, sample)


def _sample(data: bytes) -> list[bytes]:
    pieces = [data]
    if len(data) > 2 * _SAMPLE_BYTES:
        pieces = [data[:_SAMPLE_BYTES], data[-_SAMPLE_BYTES:]]
    lines = [line for piece in pieces for line in piece.split(b"\n") if line.strip()]
    if len(lines) <= _BLOCKS * _BLOCK_LINES:
        return lines
    # lines that follow each other: those of ranks may alternate in a fixed order
    gap = (len(lines) - _BLOCK_LINES) // (_BLOCKS - 1)
    return [line for n in range(_BLOCKS) for line in lines[n * gap : n * gap + _BLOCK_LINES]]


def _text(rest: bytes) -> str:
    """The text after a word, with ``#`` for numbers."""
    return _NUMBERS.sub(b"#", rest[:80]).decode("utf-8", "replace")


def _head(line: bytes, last: int = _MAX_WORDS) -> _Head:
    """The first words of a line.

    Args:
        line: the line.
        last: the place of the last word that is needed.
    """
    words: list[_Word] = []
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
                words.append(_Word(Column(place, key), value, key_at, end, in_prose))
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
        words.append(_Word(Column(place), text, start, end, in_prose))
        if (glued := _GLUED.fullmatch(raw)) and _GLUED_KEYS.fullmatch(glued[1]):
            is_rank = glued[1].lower() in _RANK_WORDS and not prose
            part = Column(place, glued[1].decode())
            words.append(_Word(part, glued[2].decode(), start, end, in_prose and not is_rank))
        place += 1
        if place > last:
            break
        if line[start - 1 : start] in b" \t" and after in b" \t," and _PROSE.fullmatch(raw):
            prose += 1
            if prose > 1:
                break
    if last == _MAX_WORDS and (tail := _AT_END.search(line)):
        value = tail[2].decode()
        column = Column(_LAST, tail[1].decode())
        words.append(_Word(column, value, tail.start(), tail.end(), in_prose=False))
    if last == _MAX_WORDS and (name := _LAST_WORD.search(line)):
        value = name[1].decode("ascii", "replace")
        words.append(_Word(Column(_LAST), value, name.start(), name.end(), in_prose=False))
    return _Head(words, marks, level)


_LAST = 99
"""The place of a field that a logger appends to its text."""

_AT_END = re.compile(
    rb"(?<![\w.-])((?i:(?:global_?|world_?)?rank|process_index|worker(?:_id)?))=[\"']?(\d{1,6})\b(?=(?:[ \t]+[\w.]+=\S+)*\s*$)"
)
_LAST_WORD = re.compile(rb"[#@|<(\[] ?([A-Za-z][\w.-]{0,60}\d)[\])>]?\s*$")
"""A name that a logger appends to its text, after a sign."""

_NEXT_NUMBER = re.compile(rb"(?:[=:#]|: | |_|-)\d{1,8}(?![\w.])")


def _number_follows(line: bytes, end: int) -> bool:
    return _NEXT_NUMBER.match(line, end) is not None


def _stem(path: bytes) -> bytes:
    """The name of a file without folder and ending."""
    return path.rpartition(b"/")[2].rpartition(b".")[0]


def _word_of(head: _Head, column: Column) -> _Word | None:
    return next((w for w in head.words if w.column == column), None)


class _Form(NamedTuple):
    """How the lines of a log are rewritten.

    Attributes:
        writers: the columns that name the writers.
        is_tool: whether a tool put the names before lines of any text.
        after: number of words between the name and the text.
    """

    writers: Writers
    is_tool: bool
    after: int

    @property
    def last(self) -> int:
        """The place of the last word that is needed."""
        place = self.writers.last_place
        return _MAX_WORDS if place == _LAST else place + self.after


def _rewritten(log: NumberedLog, writers: Writers, sample: Sequence[bytes]) -> NumberedLog:
    form = _form(writers, sample)
    lines = log.data.split(b"\n")
    named = [_named(form, line) for line in lines]
    prefixes = prefixes_of(writers, {n[0] for n in named if n is not None})
    shown: list[bytes] = []
    before, prefix = b"", b""
    for line, each in zip(lines, named, strict=True):
        if each is not None:
            before, prefix = line, prefixes[each[0]]
            shown.append(prefix + each[1])
        elif is_continued(line, before):
            shown.append(prefix + line)
        else:
            shown.append(line)
            before = before if not line.strip() else b""
    return NumberedLog(b"\n".join(shown), log.name, log.runs, log)


def is_continued(line: bytes, before: bytes) -> bool:
    """Whether a line without a name is a part of a traceback that a logger printed with an error.

    Args:
        line: the line.
        before: the last line with a name, if only such lines are between them.
    """
    if not before or not line.strip() or not _CONTINUED.match(line):
        return False
    return _head(before).level in _ERRORS


def _form(writers: Writers, sample: Sequence[bytes]) -> _Form:
    place = writers.last_place
    heads = [_head(line) for line in sample]
    named = [n for n, line in enumerate(sample) if not _CONTINUED.match(line)]
    having = [heads[n] for n in named if _word_of(heads[n], writers.column) is not None]
    is_tool = place != _LAST and len(having) >= _ALL * len(sample)
    after = 0
    while is_tool and after < _MAX_AFTER:
        values = Counter(_value_at(head, place + after + 1) for head in having)
        if len(values) > 2 or "" in values or any(_PROGRESS.fullmatch(v) for v in values):
            break
        after += 1
    return _Form(writers, is_tool, after)


_PROGRESS = re.compile(r"(?i)(?:global_?)?(?:step|iter|iteration|epoch|loss)s?")


def _value_at(head: _Head, place: int) -> str:
    """The word at a place before the first level or time after the name; empty if there is none."""
    return next((w.value for w in head.words if w.column.place == place), "")


_SKIPPED = re.compile(rb"[\])>}\"':=,;]*(?:[ \t]*(?:\||\xe2\x80\xba|[\])>}]+:?|[:-](?= )))*[ \t]?")


def _named(form: _Form, line: bytes) -> tuple[tuple[str, str | None], bytes] | None:
    """Name and number of a line's writer, and the line without them; None without a name."""
    head = _head(line, form.last)
    if (word := _word_of(head, form.writers.column)) is None:
        return None
    if not form.writers.has(word.value):
        return None
    local, end = None, word.end
    if form.writers.local is not None:
        second = _word_of(head, form.writers.local)
        if second is None or not second.value.isdigit():
            return None
        local, end = second.value, max(end, second.end)
    rest = line
    if form.is_tool:
        place = form.writers.last_place
        after = [w.end for w in head.words if place < w.column.place <= place + form.after]
        end = max([end, *after])
        marks = b" ".join(line[a:b] for a, b in head.marks if b <= end)
        skipped = _SKIPPED.match(line, end)
        text = line[skipped.end() if skipped else end :]
        rest = marks + b" " + text if marks else text
    return (word.value, local), rest


def prefixes_of(
    writers: Writers, names: Collection[tuple[str, str | None]]
) -> Mapping[tuple[str, str | None], bytes]:
    """What stands before the lines of each writer, in a form that `pairun.incident.prefixes` knows.

    Args:
        writers: the columns that name them.
        names: the values of the column and of that of the number on the node.
    """
    if writers.local is not None:
        pairs = {(name, int(local)) for name, local in names if local is not None}
        ranks = _global_ranks(pairs)
        return {(n, x): b"[rank%d]: " % ranks[n, int(x)] for n, x in names if x is not None}
    if writers.kind == "rank":
        return {(n, x): b"[rank%d]: " % int(n) for n, x in names}
    if writers.kind == "pid":
        return {(n, x): b"(worker pid=%d) " % int(n) for n, x in names}
    own = without_replica({name for name, _ in names})
    key = writers.column.key
    shown = {name: f"{key}-{own[name]}" if name.isdigit() else own[name] for name, _ in names}
    return {(n, x): _prefix(shown[n]) for n, x in names}


def _prefix(name: str) -> bytes:
    """What stands before the lines of a writer with a name."""
    if rank := _RANKED.fullmatch(name):
        return b"[rank%d]: " % int(rank[1])
    return b"[pod/%s/main] " % re.sub(r"[^\w.-]", "-", name).encode()


def without_replica(names: Iterable[str]) -> Mapping[str, str]:
    """Names without the number of their replica, if that is the same for all.

    ``docker compose`` calls the one container of the service ``worker-3`` ``worker-3-1``.
    """
    names = list(names)
    if len(names) > 1 and len({name.rpartition("-")[2] for name in names}) == 1:
        shorter = [name.rpartition("-")[0] for name in names]
        if all(each[-1:].isdigit() for each in shorter):
            return dict(zip(names, shorter, strict=True))
    return dict(zip(names, names, strict=True))


def _global_ranks(processes: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
    """The ranks of processes that have a number on their host.

    Hosts have their ranks one after the other. Numbers that no two hosts share are ranks already.
    """
    known = sorted(processes, key=lambda p: (*map(int, _DIGITS.findall(p[0])), p[1]))
    if len({local for _, local in known}) == len(known):
        return {process: process[1] for process in known}
    size = max((local for _, local in known), default=0) + 1
    hosts = list(dict.fromkeys(host for host, _ in known))
    return {(host, local): hosts.index(host) * size + local for host, local in known}
