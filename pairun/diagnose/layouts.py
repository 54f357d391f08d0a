"""Recognises who wrote each line of a shared log, whatever tool or logger put the name there.

One rule serves all tools and loggers: of the first words of a line, without times and levels, the one
whose values come back and differ only in numbers names the writer. Such lines get the form of
``kubectl logs --prefix`` or of torchrun, which `pairun.diagnose.prefixes` splits.

The lines of a traceback have no name of a logger. They belong to the line before them if a logger
printed them with it, as an error; after any other line, nothing says whose they are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from pairun.diagnose.numbered import NumberedLog

_SAMPLE_BYTES, _BLOCKS, _BLOCK_LINES = 1 << 16, 5, 100
_HEAD_BYTES = 200
_MAX_WORDS = 4
_MIN_LINES = 4
_ALL, _MOST, _SHARE, _SHARE_OF_KEYS = 0.97, 0.9, 0.8, 0.6
"""The share of lines with a tool's names; with a clear name; with any name; with a key such as ``rank``."""

_MAX_NAMES, _MAX_SHAPES = 4096, 3
_COVERAGE = 0.25
"""The least part of a log through which the middle one of the writers writes."""

_KEYS = (
    rb"(?:global|local|world|process|node)?[_-]?(?:rank|worker|process|proc|replica|trainer|task|host|node|machine|member|peer"
    rb"|client|gpu|device)(?:[_-]?(?:id|index))?"
)
_WORD = re.compile(
    rb"(?P<time>\d{4}[-/.]\d\d[-/.]\d\d(?:[T _-]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?(?!\w)"
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
_LOCAL = re.compile(r"(?i)(?:local[_ ]?(?:rank|process|worker)|gpu|cuda|device|tp)?[_-]?(\d{1,3})")
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

_KNOWN = re.compile(
    rb"\((?:[\w.<>=/-]+ )+pid=\d|\[pod/|\[?[Rr]ank:? ?\d+\]?:|\[[a-z]{2,12}\d+\]:|\[\d+,\d+\]<std\w+>:"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ \S+\[\d+\]: "
)
"""Layouts that `pairun.diagnose.prefixes` reads itself."""

_PDSH = re.compile(
    rb"(?m)^pdsh@[\w.-]{1,60}: ([\w.-]{1,60}): |\bpdsh [^\n]{0,80}?-w ([\w.,-]{0,4000}\w)"
)
"""How pdsh reports the end of the ssh to a host, and is started."""

_ERRORS = frozenset((b"E", b"ERR", b"ERROR", b"CRIT", b"CRITICAL", b"FATAL", b"SEVERE", b"F"))
_AFTER = re.compile(rb"[\])>}\"':=,;]*(?:[ \t]*(?:\||\xe2\x80\xba|[\])>}]+:?|[:-](?= )))*[ \t]?")


class Column(NamedTuple):
    """A place among the first words of a line, or a field of records.

    Attributes:
        place: number of words before it, or of fields.
        key: such as ``rank``; may be empty.
    """

    place: int
    key: str = ""


class _Word(NamedTuple):
    column: Column
    value: str
    end: int


class _Head(NamedTuple):
    words: Sequence[_Word]
    marks: Sequence[tuple[int, int]]
    level: bytes


class Writers(NamedTuple):
    """The columns that name the writers of lines or records.

    Attributes:
        columns: one; or two, of a node and of the number of a process on it.
        prefixes: what the lines of each writer get, by the values of the columns.
    """

    columns: tuple[Column, ...]
    prefixes: Mapping[tuple[str, ...], bytes]


def writers_of(columns: Mapping[Column, Mapping[int, str]], lines: int) -> Writers | None:
    """The columns that name the writers; None if none does.

    Args:
        columns: the value of each line that has one, by the number of the line.
        lines: number of lines.
    """
    known: dict[Column, Mapping[int, str]] = {}
    for column, values in columns.items():
        names = _names(column.key, list(values.values()))
        if len(values) >= (_SHARE_OF_KEYS if column.key else _SHARE) * lines and names:
            known[column] = {n: value for n, value in values.items() if value in names}
    if not known:
        return None
    best = max(
        known,
        key=lambda c: (len(known[c]) >= _MOST * lines, bool(_RANK.fullmatch(c.key)), -c.place),
    )
    chosen: tuple[Column, ...] = (best,)
    if not _RANK.fullmatch(best.key):
        both = ((a, b) for a in known for b in known if a.place < b.place and best in (a, b))
        chosen = next((pair for pair in both if _is_grid(known[pair[0]], known[pair[1]])), chosen)
    ids = {
        tuple(known[column][n] for column in chosen)
        for n in known[best]
        if all(n in known[column] for column in chosen)
    }
    return Writers(chosen, _prefixes(chosen, ids))


def _names(key: str, values: Sequence[str]) -> frozenset[str]:
    """The values of a column that name writers: they come back, and differ only in numbers."""
    is_sure = bool(_RANK.fullmatch(key) or _HOST.fullmatch(key) or key.startswith("local"))
    shapes: dict[str, set[str]] = defaultdict(set)
    for value in values:
        shapes[_NUMBERS.sub("#", _RANDOM.sub("?", value))].add(value)
    counts = Counter(values)
    series = {name for each in shapes.values() if len(each) > 1 for name in each}
    names = {name for name in series if is_sure or counts[name] > 1}
    kept = [value for value in values if value in names]
    spans: dict[str, list[int]] = {}
    for n, value in enumerate(kept):
        spans.setdefault(value, [n, n])[1] = n
    lengths = sorted(last - first for first, last in spans.values())
    runs = 1 + sum(a != b for a, b in pairwise(kept))
    numbers = [int(name) for name in names if name.isdigit()]
    if (
        not 1 < len(names) <= _MAX_NAMES
        or len({_NUMBERS.sub("#", _RANDOM.sub("?", name)) for name in names}) > _MAX_SHAPES
        or len(kept) < _SHARE * len(values)
        or (not is_sure and runs < 2 * len(names))
        or (not is_sure and lengths[len(lengths) // 2] < _COVERAGE * len(kept))
        or (numbers and (max(numbers) > 2 * len(numbers) or min(numbers) > 1))
        or _COUNTED.search(key)
        or any(_COUNTED.search(n[: m.start()]) for n in names for m in _NUMBERS.finditer(n))
    ):
        return frozenset()
    return frozenset(names)


def _is_grid(nodes: Mapping[int, str], locals_: Mapping[int, str]) -> bool:
    """Whether a column has the numbers of the processes on the nodes that another one names."""
    if not all(_LOCAL.fullmatch(value) for value in locals_.values()):
        return False
    pairs = {(node, locals_[n]) for n, node in nodes.items() if n in locals_}
    sizes = len(set(nodes.values())), len(set(locals_.values()))
    return 2 * len(pairs) > sizes[0] * sizes[1] and len(pairs) > max(sizes)


def _prefixes(
    columns: Sequence[Column], values: Iterable[tuple[str, ...]]
) -> Mapping[tuple[str, ...], bytes]:
    """What the lines of each writer get, in a form that `pairun.diagnose.prefixes` knows."""
    known = sorted(values, key=lambda v: [int(n) for each in v for n in _NUMBERS.findall(each)])
    if len(columns) == 2:
        ranks = [int(_NUMBERS.findall(local)[-1]) for _, local in known]
        # hosts have their ranks one after the other; numbers that no two hosts share are ranks already
        if len(set(ranks)) < len(ranks):
            size, hosts = max(ranks) + 1, list(dict.fromkeys(host for host, _ in known))
            ranks = [
                hosts.index(host) * size + rank
                for (host, _), rank in zip(known, ranks, strict=True)
            ]
        return {value: b"[rank%d]: " % rank for value, rank in zip(known, ranks, strict=True)}
    key = columns[0].key
    names = [name for (name,) in known]
    # docker compose calls the one container of the service worker-3 worker-3-1
    if len({name.rpartition("-")[2] for name in names}) == 1:
        shorter = [name.rpartition("-")[0] for name in names]
        names = shorter if all(name[-1:].isdigit() for name in shorter) else names
    return {value: _prefix(key, name) for value, name in zip(known, names, strict=True)}


def _prefix(key: str, name: str) -> bytes:
    ranked = _RANKED.fullmatch(name)
    if name.isdigit() and not _HOST.fullmatch(key):
        return b"[rank%d]: " % int(name)
    if ranked:
        return b"[rank%d]: " % int(ranked[1])
    name = f"{key}-{name}" if name.isdigit() else name
    return b"[pod/%s/main] " % re.sub(r"[^\w.-]", "-", name).encode()


def with_names(log: NumberedLog) -> NumberedLog:
    """A log whose lines name their writers in a form that is known; itself if they do not."""
    sample = _sample(log.data)
    if len(sample) < _MIN_LINES or sum(map(bool, map(_KNOWN.match, sample))) * 2 > len(sample):
        return log
    heads = {n: _head(line) for n, line in enumerate(sample) if not _CONTINUED.match(line)}
    columns: dict[Column, dict[int, str]] = {}
    for n, head in heads.items():
        for word in head.words:
            columns.setdefault(word.column, {})[n] = word.value
    writers = writers_of(dict(sorted(columns.items())), len(heads))
    if writers is None:
        return _with_hosts(log)
    last = max(column.place for column in writers.columns)
    having = [h for line in sample if _values(h := _head(line), writers) in writers.prefixes]
    is_tool = len(having) >= _ALL * len(sample)
    after = last
    while is_tool and after < last + 2 and after < _MAX_WORDS - 1:
        common = Counter(
            next((w.value for w in h.words if w.column.place == after + 1), "") for h in having
        )
        if len(common) > 2 or "" in common:
            break
        after += 1
    return _rewritten(log, writers, after if is_tool else None)


def _with_hosts(log: NumberedLog) -> NumberedLog:
    """A log with the hosts that pdsh itself names, of which each may write one line only."""
    hosts = {each for match in _PDSH.findall(log.data) for each in b"".join(match).split(b",")}
    if b"pdsh@" not in log.data:
        return log
    names = b"|".join(map(re.escape, sorted(hosts, key=len, reverse=True)))
    data = re.sub(rb"(?m)^(%s): ?" % names, rb"[pod/\1/main] ", log.data)
    return NumberedLog(data, log.name, log.runs, log)


def _rewritten(log: NumberedLog, writers: Writers, after: int | None) -> NumberedLog:
    """A log with the names in front of its lines.

    Args:
        log: the log.
        writers: the columns that name them.
        after: the place of the last word that a tool put before each line; None for a logger's.
    """
    shown: list[bytes] = []
    before, prefix = b"", b""
    for line in log.data.split(b"\n"):
        head = _head(line)
        if (own := writers.prefixes.get(_values(head, writers))) is not None:
            before, prefix = line, own
            rest = line if after is None else _without_name(line, head, after)
            shown.append(prefix + rest)
        elif is_continued(line, before):
            shown.append(prefix + line)
        else:
            shown.append(line)
            before = before if not line.strip() else b""
    return NumberedLog(b"\n".join(shown), log.name, log.runs, log)


def _values(head: _Head, writers: Writers) -> tuple[str, ...]:
    words = {word.column: word.value for word in head.words}
    return tuple(words.get(column, "") for column in writers.columns)


def _without_name(line: bytes, head: _Head, after: int) -> bytes:
    """A line without what a tool put before it, but for its time."""
    end = max(word.end for word in head.words if word.column.place <= after)
    marks = b" ".join(line[a:b] for a, b in head.marks if b <= end)
    skipped = _AFTER.match(line, end)
    text = line[skipped.end() if skipped else end :]
    return marks + b" " + text if marks else text


def is_continued(line: bytes, before: bytes) -> bool:
    """Whether a line without a name is a part of a traceback that a logger printed with an error.

    Args:
        line: the line.
        before: the last line with a name, if only such lines are between them.
    """
    if not before or not line.strip() or not _CONTINUED.match(line):
        return False
    return _head(before).level in _ERRORS


def _head(line: bytes) -> _Head:
    """The first words of a line that may name its writer, before the program's own text."""
    words: list[_Word] = []
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
            words.append(_Word(Column(len(words), key), value, end))
        if len(words) == _MAX_WORDS or (is_prose and not is_closed):
            break
    return _Head(words, marks, level)


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
