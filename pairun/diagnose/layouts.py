"""Recognises who wrote each line of a shared log, whatever tool or logger put the name there, and splits it.

The prefixes of launchers are a table. One rule serves all other layouts: of the first words of a line,
without times and levels, the one whose values come back and differ only in numbers names the writer.
Such lines get the form of ``kubectl logs --prefix`` or of torchrun, which the table has.

The lines of a traceback have no name of a logger. They belong to the line before them if a logger
printed them with it, as an error; after any other line, nothing says whose they are.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pairun.diagnose.lines import Log, names_in
from pairun.diagnose.writers import Writer, own_rank

_SAMPLE_BYTES, _SAMPLE_LINES = 1 << 18, 3000
_BLOCKS, _BLOCK_LINES = 5, 100
_HEAD_BYTES, _LINE_BYTES = 200, 600
_MAX_WORDS, _MIN_LINES, _MAX_NAMES, _MAX_SHAPES = 4, 4, 4096, 3
_ALL, _MOST, _SHARE, _SHARE_OF_KEYS = 0.97, 0.9, 0.8, 0.6
"""The share of lines with a tool's names; with a clear name; with any name; with a key such as ``rank``."""

_KEYS = (
    rb"(?:global|local|world|process|node)?[_-]?(?:rank|worker|process|proc|replica|trainer|task|host|node|machine|member|peer"
    rb"|client|gpu|device)(?:[_-]?(?:id|index))?"
)
_WORD = re.compile(
    rb"(?P<time>(?:(?<![\w.-])[\w@]{1,20}=\"?)?\d{4}[-/.]\d\d[-/.]\d\d(?:[T _-]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?(?!\w)"
    rb"|\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?(?![\w:])|(?<!\w)[EWIFDC]\d{4}(?= )"
    rb"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d(?= )"
    rb"|\d{9,10}\.\d{1,9}(?!\w)|\d{13,19}(?!\w)|UTC\b)"
    rb"|(?<![\w.-])(?P<level>(?i:trace|debug|info|notice|success|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|severe)"
    rb"|[DIWEFC](?=[ \]|]))(?![\w.-])"
    rb"|(?:(?P<key>[A-Za-z_][\w.-]{0,40}=[\"']?|(?i:\b" + _KEYS + rb")(?:: |[ :#])(?=\d))|(?<!=))"
    rb"(?P<word>[^\s\[\](){}<>|,;:\"'/=#*@!?&%$+~\x80-\xff]+)"
)
_RANK = re.compile(r"(?i)(?:(?:global|world|process)?[_-]?rank|process[_-]?index|r)")
_HOST = re.compile(
    r"(?i)(?:node|_?host|machine|pod)_?(?:name|id|index|rank)?|instance|log_?stream(?:_?name)?|\d"
)
"""Keys of names of Pods and hosts; a number is a part of a path in a field."""

_RANKED = re.compile(r"(?i)r(?:ank)?[_.-]?(\d{1,6})(?:\.(?:log|txt|out|err))?")
_COUNTED = re.compile(
    r"(?i)(?:epoch|step|iter|iteration|batch|layers?|block|fold|attempt|retry|try|v|version|phase|thread|loss|lr|line"
    r"|seed|size|port|id|pid)[._-]?$"
)
"""What stands before a number that counts progress or parts of a model, and no writers."""

_NUMBERS = re.compile(r"\d+")
_RANDOM = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The random ending of a Pod's name (k8s.io/apimachinery, ``util/rand``)."""

_CONTINUED = re.compile(
    rb"[ \t]|$|(?:Original )?Traceback \(most|During handling of|The above exception was|> File"
    rb"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b[:\s]?"
)
"""A line that follows from the one before it, without a name: of a traceback, or indented."""

_ERRORS = frozenset((b"E", b"ERR", b"ERROR", b"CRIT", b"CRITICAL", b"FATAL", b"SEVERE", b"F"))
_AFTER = re.compile(rb"[\])>}\"':=,;]*(?:[ \t]*(?:\||\xe2\x80\xba|[\])>}]+:?|[:-](?= )))*[ \t]?")

_NOBODY = Writer(None, "lines without a rank", launcher=True)

Column = tuple[int, str]
"""The number of words before a name, or of fields; and its key, such as ``rank``, or nothing."""


class _Head(NamedTuple):
    """The first words of a line: by column with their ends, its times and levels, and its level."""

    words: Mapping[Column, tuple[str, int]]
    marks: Sequence[tuple[int, int]]
    level: bytes


def prefixes_by_name(
    columns: Mapping[Column, Mapping[int, str]], lines: int
) -> tuple[Column, Mapping[str, bytes]] | None:
    """The column that names the writers, with what the lines of each get; None if none does.

    Args:
        columns: the value of each line that has one, by the number of the line.
        lines: number of lines.
    """
    known: dict[Column, tuple[bool, frozenset[str]]] = {}
    for column, values in columns.items():
        least = (_SHARE_OF_KEYS if column[1] else _SHARE) * lines
        if len(values) >= least and (names := _names(column[1], list(values.values()))):
            known[column] = sum(v in names for v in values.values()) >= _MOST * lines, names
    if not known:
        return None
    best = max(known, key=lambda c: (known[c][0], bool(_RANK.fullmatch(c[1])), -c[0]))
    return best, {name: _prefix(best[1], name) for name in known[best][1]}


def _names(key: str, values: Sequence[str]) -> frozenset[str]:
    """The values of a column that name writers: they come back, and differ only in small numbers."""
    is_sure = bool(_RANK.fullmatch(key) or _HOST.fullmatch(key) or key.startswith("local"))
    shapes: dict[str, set[str]] = defaultdict(set)
    for value in values:
        shapes[_NUMBERS.sub("#", _RANDOM.sub("?", value))].add(value)
    counts = Counter(values)
    series = [names for names in shapes.values() if len(names) > 1]
    names = {name for each in series for name in each if is_sure or counts[name] > 1}
    kept = [value for value in values if value in names]
    runs = sum(1 for _ in itertools.groupby(kept))
    numbers = [int(name) for name in names if name.isdigit()]
    before = [n[: m.start()] for n in names for m in _NUMBERS.finditer(n)]
    is_series = (
        1 < len(names) <= _MAX_NAMES
        and len(series) <= _MAX_SHAPES
        and len(kept) >= _SHARE * len(values)
        and (is_sure or runs >= 2 * len(names))
        and (not numbers or (max(numbers) <= 2 * len(numbers) and min(numbers) <= 1))
        and not any(map(_COUNTED.search, [key, *before]))
    )
    return frozenset(names if is_series else ())


def _prefix(key: str, name: str) -> bytes:
    ranked = _RANKED.fullmatch(name)
    if ranked or (name.isdigit() and not _HOST.fullmatch(key)):
        return b"[rank%d]: " % int(ranked[1] if ranked else name)
    name = f"{key}-{name}" if name.isdigit() else name
    return b"[pod/%s/main] " % re.sub(r"[^\w.-]", "-", name).encode()


def with_names(log: Log) -> Log:
    """A log whose lines name their writers in a form that is known; itself if they do not."""
    lines = _ends(log.data)
    if len(lines) > _BLOCKS * _BLOCK_LINES:
        step = (len(lines) - _BLOCK_LINES) // (_BLOCKS - 1)
        lines = [each for n in range(_BLOCKS) for each in lines[n * step : n * step + _BLOCK_LINES]]
    known = sum(_writer_in(line, frozenset()) is not None for line in lines)
    if len(lines) < _MIN_LINES or 2 * known > len(lines):
        return log
    heads = [(line, _head(line)) for line in lines]
    columns: dict[Column, dict[int, str]] = defaultdict(dict)
    own = [head for line, head in heads if not _CONTINUED.match(line)]
    for n, head in enumerate(own):
        for each, (value, _) in head.words.items():
            columns[each][n] = value
    found = prefixes_by_name(dict(sorted(columns.items())), len(own))
    if found is None:
        return log
    column, prefixes = found
    having = [h for _, h in heads if h.words.get(column, ("",))[0] in prefixes]
    last = -1
    if len(having) >= _ALL * len(lines):
        last = column[0]
        # cut off what a tool put before each line, such as the container after its Pod
        while len({_word(h, last + 1) for h in having}) in (1, 2) and all(
            _word(h, last + 1) for h in having
        ):
            last += 1
    renamed = _renamed(log.data, column, prefixes, last)
    return Log(b"\n".join(renamed), log.name, log.numbers, is_rewritten=True)


def _word(head: _Head, place: int) -> str:
    return next((word for (at, _), (word, _) in head.words.items() if at == place), "")


def _renamed(
    data: bytes, column: Column, prefixes: Mapping[str, bytes], last: int
) -> Iterator[bytes]:
    """The lines with the names in front, without the words up to the last one of a tool."""
    before, prefix = b"", b""
    for line in data.split(b"\n"):
        head = _head(line)
        name = head.words.get(column, ("",))[0]
        if name in prefixes:
            before, prefix = line, prefixes[name]
            end = max([end for (at, _), (_, end) in head.words.items() if at <= last], default=0)
            skipped = _AFTER.match(line, end) if end else None
            marks = [line[a:b] for a, b in head.marks if b <= end]
            yield prefix + b" ".join([*marks, line[skipped.end() if skipped else end :]])
        elif is_continued(line, before):
            yield prefix + line
        else:
            yield line
            before = before if not line.strip() else b""


def is_continued(line: bytes, before: bytes) -> bool:
    """Whether a line without a name is a part of a traceback that a logger printed with an error.

    Args:
        line: the line.
        before: the last line with a name, if only such lines are between them.
    """
    is_part = bool(before) and bool(line.strip()) and _CONTINUED.match(line) is not None
    return is_part and _head(before).level in _ERRORS


def _head(line: bytes) -> _Head:
    """The first words of a line that may name its writer, before the program's own text."""
    words: dict[Column, tuple[str, int]] = {}
    marks: list[tuple[int, int]] = []
    level = b""
    for match in _WORD.finditer(line, 0, _HEAD_BYTES):
        start, end = match.span()
        if match["time"] or match["level"]:
            marks.append((start, end))
            raw = match[0].upper()
            level = level or (raw if match["level"] else raw[:1] if raw[:1] in b"EF" else b"")
            continue
        value = match["word"].decode("ascii", "replace").strip(".-_")
        key = re.sub(r"\W+$", "", (match["key"] or b"").decode("ascii", "replace")).lower()
        opened, closed = line[:start].rstrip()[-1:], line[end : end + 2].lstrip()[:1]
        is_closed = bool(opened) and opened in b"[(<{|" and bool(closed) and closed in b"])>}|:"
        is_prose = not key and value.isalpha() and line[end : end + 1] in (b" ", b",", b"")
        is_text = bool(level) and not is_closed and not _RANKED.fullmatch(value)
        if value and not is_text:
            words[len(words), key] = value, end
        if len(words) == _MAX_WORDS or (is_prose and not is_closed):
            break
    return _Head(words, marks, level)


def _ends(data: bytes) -> list[bytes]:
    """The first and the last lines of a log that are not empty; each line once."""
    pieces = [data[:_SAMPLE_BYTES], data[_SAMPLE_BYTES:][-_SAMPLE_BYTES:]]
    lines = (each for piece in pieces for each in piece.split(b"\n", _SAMPLE_LINES)[:_SAMPLE_LINES])
    return [raw for raw in lines if raw.strip()]


def split(log: Log) -> list[tuple[Writer, Log]]:
    """Split a log of several ranks or Pods by the prefixes of its lines.

    Returns:
        Each writer's part; lines without a prefix form another part. Empty for a single writer.
    """
    sample = _ends(log.data)
    pods = _pods_of_ranks(sample)
    writers = [writer for raw in sample if (writer := _writer_in(raw, pods)) is not None]
    sure = {each.label for each in writers if each.host != _BARE}
    # a bare number before a colon is a prefix only if most lines have one
    is_most = 2 * len(writers) > len(sample) and len({each.label for each in writers}) > 1
    if len(sure) < 2 and not is_most:
        return []
    parts: dict[str, tuple[Writer, list[tuple[int, bytes]]]] = {}
    last, before = _NOBODY, b""
    for number, raw in log.numbered():
        writer = _writer_in(raw, pods)
        if writer is not None:
            last, before = writer, raw
        elif is_continued(raw, before):
            writer = last
        else:
            writer, before = _NOBODY, before if not raw.strip() else b""
        parts.setdefault(writer.label, (writer, []))[1].append((number, raw))
    if not any(raw.strip() for _, raw in parts.get(_NOBODY.label, (_NOBODY, []))[1]):
        parts.pop(_NOBODY.label, None)
    return [_stated(writer, log.part(lines), pods) for writer, lines in parts.values()]


def _stated(writer: Writer, text: Log, pods: frozenset[str]) -> tuple[Writer, Log]:
    """A part with its writer, whose rank the part itself may state."""
    if writer.number is not None or (writer.rank is None and not writer.launcher):
        own = own_rank(text, is_part=True)
        writer = writer if own is None else writer.ranked(own)._replace(is_stated=True)
    host = "" if writer.host == _BARE else writer.host
    # beside Pods in which ranks write, one without a rank is no launcher: its ranks wrote nothing
    is_empty = bool(pods) and bool(host) and writer.rank is None and not writer.launcher
    return writer._replace(host=host, has_ranks=is_empty), text


def _pods_of_ranks(sample: Sequence[bytes]) -> frozenset[str]:
    """The Pods or containers in which several ranks write.

    Numbers that come back in another Pod count the processes there, so none of them is a rank.
    """
    inner: dict[str, set[str]] = defaultdict(set)
    for raw in sample:
        pod, rank = _named(raw[:_LINE_BYTES])
        if pod is not None and rank is not None:
            inner[pod.host].add(rank.label)
    several = frozenset(pod for pod, labels in inner.items() if len(labels) > 1)
    counts = Counter(label for pod in several for label in inner[pod])
    return several if max(counts.values(), default=1) == 1 else frozenset()


def _writer_in(raw: bytes, pods: frozenset[str]) -> Writer | None:
    """The writer that a line's prefix names.

    Args:
        raw: the line.
        pods: those in which several ranks write; their other lines are a launcher's.
    """
    writer, inner = _named(raw[:_LINE_BYTES])
    if writer is None or writer.host not in pods:
        return writer
    if inner is not None:
        return inner._replace(host=writer.host)
    return Writer(None, writer.host, writer.host, launcher=True)


_BARE = "?"
"""The host of a writer whose prefix is a bare number."""


@lru_cache(1 << 13)
def _named(raw: bytes) -> tuple[Writer | None, Writer | None]:
    """The writer that a line's prefix names; if that is a Pod, also the rank or process after it."""
    (kind, name), *others = names_in(raw) or [("", "")]
    inner = [each for each in others[:1] if kind == "pod" and each[0] in ("rank", "pid")]
    return _writer(kind, name), _writer(*inner[0]) if inner else None


def _writer(kind: str, name: str) -> Writer | None:
    if kind == "pod":
        return Writer.of_pod(name, name)
    if kind == "pid":
        return Writer(None, f"pid {name}")
    if not kind:
        return None
    rank = int(name)
    host = _BARE if kind == "bare" else ""
    return Writer(rank, f"rank {rank}", host, number=rank if kind == "local" else None)
