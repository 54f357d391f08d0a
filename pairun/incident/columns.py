"""Chooses the column of a log that names the writer of each line, by comparison of the lines.

A column is a place in the lines or a key of the records; its values are what the lines have there. The
column of a writer has some values that come back while others write, and different writers print the
same texts. Counters (steps, epochs) go up and do not come back; modules and levels have texts of
their own. So no list of tools and loggers is needed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

_MAX_NAMES = 4096
_LINES_EACH = 2
_MAX_SHAPES = 3
"""How many shapes the names of one job have: such as ``bert-master-0`` and ``bert-worker-0``."""

_MAX_BARE = 1
"""How many names of a job may lack a number: such as ``learner`` beside ``actor-3``."""

_MAX_PLAIN = 64
"""How many writers may have names without numbers."""

_SHARE, _SHARE_OF_KEYS = 0.8, 0.6
"""The least share of lines that have a column; of one whose key says what it is."""

_NEARLY_ALL, _ALL = 0.9, 0.97

_COVERAGE = 0.25
"""The least part of a log through which the middle one of the writers writes."""

_COMMON, _COMMON_PLAIN = 0.4, 0.6
"""The least share of lines whose texts several writers print."""

_RANK = re.compile(
    r"(?i)(?:global|world|process)?[_ ]?rank|r|proc(?:ess)?(?:[_ ]?(?:id|index))?|rank[_ ]?id"
)
_WORKER = re.compile(
    r"(?i)worker(?:[_ ]?(?:id|index))?|replica|trainer|task(?:[_ ]?(?:id|index))?|actor|pe|w|member|peer|client"
    r"|executor|shard_?rank"
)
_LOCAL = re.compile(
    r"(?i)local[_ ]?(?:rank|process|worker)(?:[_ ]?(?:id|index))?|lrank|gpu(?:[_ ]?id)?|g|cuda|dev(?:ice)?|local|slot|[te]p"
)
_HOST = re.compile(
    r"(?i)(?:node|host|machine|server|n|[dp]p)(?:[_ ]?(?:id|index|rank|name))?|instance|pod(?:_?name)?|hostname"
)
_PID = re.compile(r"(?i)pid|process_?id")
_COUNTED = re.compile(
    r"(?:epoch|step|iter|iteration|batch|layer|layers|block|fold|attempt|retry|try|v|version|phase|thread|mainthread"
    r"|loss|lr|line|seed|size|port|id)[._-]?$",
    re.IGNORECASE,
)
"""What a word has before a number that counts progress or parts of a model, and no writers."""

_DIGITS = re.compile(r"\d+")
_RANDOM = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The random ending of a Pod's name (k8s.io/apimachinery, ``util/rand``)."""

_NAME = re.compile(r"[A-Za-z][\w.]{0,60}(?:-[\w.]{1,60}){0,8}|\d{1,3}(?:[.-]\d{1,3}){3}")
_OF_TRACEBACK = re.compile(r"[\])>}|: ]{1,5}(?: +File \"|Traceback \(most)")
"""What follows the name that a tool puts before any line: no counter stands before a traceback."""

_NO_NAMES = frozenset(("stdout", "stderr", "main", "true", "false", "none", "null"))


class Column(NamedTuple):
    """A column of lines, or a field of records.

    Attributes:
        place: how many words, or fields, stand before it.
        key: what stands before its values, such as ``rank``; may be empty.
    """

    place: int
    key: str = ""


class Entry(NamedTuple):
    """What a line has in a column.

    Attributes:
        line: the index of the line.
        value: what it has.
        text: of the line, without the column and with ``#`` for numbers.
        in_prose: whether it may be a word of the program's own text.
    """

    line: int
    value: str
    text: str = ""
    in_prose: bool = False


class Writers(NamedTuple):
    """The column that names the writers of lines.

    Attributes:
        column: of the names or numbers.
        kind: ``rank``, ``name`` or ``pid``.
        local: of the number on the node, if only both together name a writer; else None.
        shapes: of the names, with ``#`` for numbers.
        most: the highest number, if the column has numbers.
    """

    column: Column
    kind: str
    local: Column | None = None
    shapes: frozenset[str] = frozenset()
    most: int = 0

    def has(self, value: str) -> bool:
        """Whether a value of the column is a writer, and not a word of another line."""
        if value.isdigit():
            return int(value) <= self.most
        return shape_of(value) in self.shapes

    @property
    def last_place(self) -> int:
        """The place of the last column that is needed."""
        return max(c.place for c in (self.column, self.local) if c is not None)


class _Rated(NamedTuple):
    """A column that may name the writers: how good it is, and what its values are."""

    rating: int
    kind: str


def writers_of(columns: Mapping[Column, Sequence[Entry]], lines: int) -> Writers | None:
    """The column that names the writers; None if no column does.

    Args:
        columns: the entries of each column, in the order of the lines; the first columns are preferred.
        lines: number of lines.
    """
    rated = {
        column: found
        for column, entries in columns.items()
        if (found := _rated(column.key, entries, lines)) is not None
    }
    if not rated:
        return None
    # a rank that only some lines show comes after a name that nearly all have
    best = max(rated, key=lambda c: (len(columns[c]) >= _NEARLY_ALL * lines, rated[c].rating))
    sizes = {c: len({e.value for e in _alike(columns[c])}) for c in rated}
    full = [c for c in rated if len(columns[c]) >= _ALL * lines and sizes[c] >= sizes[best]]
    if full and len(columns[best]) < _ALL * lines:
        best = max(full, key=lambda c: rated[c].rating)
    node, local, kind = best, None, rated[best].kind
    if rated[best].rating < _CLEAR:
        pairs = (pair for other in columns for pair in ((best, other), (other, best)))
        both = next((p for p in pairs if _is_local(p[1], p[0], columns, lines)), None)
        if both is not None:
            node, local, kind = *both, "rank"
        elif best.key and (whole := Column(best.place)) in rated:
            node, kind = whole, rated[whole].kind  # gpu3 without a node is a host's name
    names = {e.value for e in _alike(columns[node])}
    numbers = [int(name) for name in names if name.isdigit()]
    most = max([-1, 2 * len(numbers) - 1, *numbers]) if numbers else -1
    return Writers(node, kind, local, frozenset(map(shape_of, names)), most)


_CLEAR = 5


def shape_of(name: str) -> str:
    """A name with ``#`` for numbers."""
    return _DIGITS.sub("#", name)


def are_names(counts: Mapping[str, int]) -> bool:
    """Whether words that come back name the writers of one job.

    They differ only in numbers and random endings, and the numbers do not count progress.

    Args:
        counts: how often each word is there.
    """
    if not 1 < len(counts) <= _MAX_NAMES or sum(counts.values()) < _LINES_EACH * len(counts):
        return False
    bare = [name for name in counts if not _DIGITS.search(name) and not _RANDOM.search(name)]
    if len(bare) > _MAX_BARE or 3 * len(bare) > len(counts):
        return False
    shapes = {_DIGITS.sub("#", _RANDOM.sub("?", name)) for name in counts}
    if len(shapes) > _MAX_SHAPES or len(shapes) == len(counts):
        return False
    return not any(_COUNTED.search(n[: m.start()]) for n in counts for m in _DIGITS.finditer(n))


def _rated(key: str, entries: Sequence[Entry], lines: int) -> _Rated | None:
    """How well a column may name the writers; None if it does not."""
    entries = _alike(entries)
    counts = Counter(e.value for e in entries)
    if not 1 < len(counts) <= _MAX_NAMES or len(entries) < _LINES_EACH * len(counts):
        return None
    is_key = bool(_RANK.fullmatch(key) or _WORKER.fullmatch(key) or _HOST.fullmatch(key))
    if len(entries) < (_SHARE_OF_KEYS if is_key else _SHARE) * lines:
        return None
    if any(e.in_prose for e in entries) and not _speak(entries):
        return None
    if all(value.isdigit() for value in counts):
        return _rated_number(key, counts, entries)
    if not all(_NAME.fullmatch(value) for value in counts) or _COUNTED.search(key):
        return None
    if are_names(counts):
        return _Rated(4 if is_key else 3, "name")
    shapes = {shape_of(value) for value in counts}
    is_word = len(shapes) == len(counts) <= _MAX_PLAIN and not _NO_NAMES & {
        v.lower() for v in counts
    }
    if (is_word or is_key) and _come_back(entries) and _common(entries) >= _COMMON_PLAIN:
        return _Rated(3 if is_key else 2, "name")
    return None


def _alike(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries without the words of a few other lines: of libraries, which have no column."""
    lines = Counter(e.value for e in entries)
    values: dict[str, set[str]] = defaultdict(set)
    for value in lines:
        values[shape_of(value)].add(value)
    series = {shape for shape, each in values.items() if len(each) > 1 or shape == "#"}
    members = [n for value, n in lines.items() if shape_of(value) in series and n > 1]
    usual = max(_LINES_EACH, sum(members) // (2 * len(members) or 1))
    kept = [
        e
        for e in entries
        if (shape_of(e.value) in series and lines[e.value] > 1) or lines[e.value] > usual
    ]
    return kept if len(kept) >= _SHARE * len(entries) else entries


def _rated_number(key: str, counts: Mapping[str, int], entries: Sequence[Entry]) -> _Rated | None:
    numbers = sorted(int(value) for value in counts)
    if _COUNTED.search(key):
        return None
    if not _PID.fullmatch(key) and numbers[-1] < 2 * len(numbers) + 1:
        if _RANK.fullmatch(key):
            return _Rated(_CLEAR, "rank")
        if _WORKER.fullmatch(key) or _LOCAL.fullmatch(key):
            return _Rated(4, "rank")
        if _HOST.fullmatch(key):
            return _Rated(4, "name")
        is_prefix = _is_prefix(entries)
        if numbers[0] > 1 or not (_return(entries) if is_prefix else _come_back(entries)):
            return None
        return _Rated(3, "rank") if is_prefix or _common(entries) >= _COMMON else None
    is_pid = _PID.fullmatch(key) and _come_back(entries) and _common(entries) >= _COMMON
    return _Rated(1, "pid") if is_pid else None


def _is_prefix(entries: Sequence[Entry]) -> bool:
    """Whether a tool put the column before lines of any text."""
    return any(_OF_TRACEBACK.match(e.text) for e in entries)


def _return(entries: Sequence[Entry]) -> bool:
    """Whether values return after others at all, as those before lines of tracebacks do."""
    values = [e.value for e in entries]
    runs = 1 + sum(a != b for a, b in pairwise(values))
    return runs > len(set(values))


def _come_back(entries: Sequence[Entry]) -> bool:
    """Whether values return after others, as those of writers do, and counters do not."""
    spans: dict[str, list[int]] = {}
    runs, before = 0, None
    for n, entry in enumerate(entries):
        runs += entry.value != before
        before = entry.value
        spans.setdefault(entry.value, [n, n])[1] = n
    lengths = sorted(last - first for first, last in spans.values())
    middle = lengths[len(lengths) // 2]
    return runs >= _LINES_EACH * len(spans) and middle >= _COVERAGE * len(entries)


def _common(entries: Sequence[Entry]) -> float:
    """The share of lines whose texts several writers print."""
    writers = defaultdict(set)
    for entry in entries:
        writers[entry.text].add(entry.value)
    return sum(len(writers[e.text]) > 1 for e in entries) / len(entries)


def _speak(entries: Sequence[Entry]) -> bool:
    """Whether different texts follow names that stand where prose may: those of which it is no subject."""
    writers = defaultdict(set)
    for entry in entries:
        writers[entry.text].add(entry.value)
    return sum(len(each) > 1 for each in writers.values()) > 2 and _come_back(entries)


def _is_local(
    local: Column,
    node: Column,
    columns: Mapping[Column, Sequence[Entry]],
    lines: int,
) -> bool:
    """Whether a column has the number of a process on the node that another one names."""
    entries = [e for e in columns[local] if e.value.isdigit()]
    nodes = _alike(columns[node])
    key, key_of_node = local.key, node.key
    if min(len(entries), len(nodes)) < _SHARE * lines or _LOCAL.fullmatch(key_of_node):
        return False
    if key and not _LOCAL.fullmatch(key):
        return False
    if not key and any(e.in_prose for e in entries):
        return False
    if not all(e.value.isdigit() and len(e.value) < 4 for e in entries):
        return False
    names = {e.line: e.value for e in nodes}
    numbers = {int(e.value) for e in entries}
    pairs = {(names[e.line], int(e.value)) for e in entries if e.line in names}
    count = len(set(names.values()))
    is_full = (
        2 * len(pairs) > count * len(numbers) > 0
        and len(pairs) > max(count, len(numbers))
        and local != node
    )
    is_dense = len(numbers) > 1 and max(numbers) < 2 * len(numbers) and min(numbers) < 2
    are_keys = bool(key) and _HOST.fullmatch(key_of_node) is not None
    is_sure = are_keys or _is_prefix(entries)
    if not (is_full and is_dense and (is_sure or _come_back(entries))):
        return False
    are_numbers = any(name.isdigit() for name in names.values())
    is_node = bool(_HOST.fullmatch(key_of_node)) or (
        not are_numbers and are_names(Counter(names.values()))
    )
    return is_node and (bool(key) or _common(entries) >= _COMMON)
