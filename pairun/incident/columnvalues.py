"""Rates whether the values of a column of lines, or of a field of records, are the names of writers."""

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

SHARE, _SHARE_OF_KEYS = 0.8, 0.6
"""The least share of lines that have a column; of one whose key says what it is."""

_COVERAGE = 0.25
"""The least part of a log through which the middle one of the writers writes."""

COMMON, _COMMON_PLAIN = 0.4, 0.6
"""The least share of lines whose texts several writers print."""

CLEAR = 5
"""The rating of a column whose key says that it has ranks: the highest, and no second column can help it."""

_RANK = re.compile(
    r"(?i)(?:global|world|process)?[_ ]?rank|r|proc(?:ess)?(?:[_ ]?(?:id|index))?|rank[_ ]?id"
)

_WORKER = re.compile(
    r"(?i)worker(?:[_ ]?(?:id|index))?|replica|trainer|task(?:[_ ]?(?:id|index))?|actor|pe|w|member|peer|client"
    r"|executor|shard_?rank"
)

LOCAL = re.compile(
    r"(?i)local[_ ]?(?:rank|process|worker)(?:[_ ]?(?:id|index))?|lrank|gpu(?:[_ ]?id)?|g|cuda|dev(?:ice)?|local|slot|[te]p"
)

HOST = re.compile(
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


class _Rated(NamedTuple):
    """A column that may name the writers: how good it is, and what its values are."""

    rating: int
    kind: str


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


def rated_as(key: str, entries: Sequence[Entry], lines: int) -> _Rated | None:
    """How well a column may name the writers; None if it does not."""
    entries = alike(entries)
    counts = Counter(e.value for e in entries)
    if not 1 < len(counts) <= _MAX_NAMES or len(entries) < _LINES_EACH * len(counts):
        return None
    is_key = bool(_RANK.fullmatch(key) or _WORKER.fullmatch(key) or HOST.fullmatch(key))
    if len(entries) < (_SHARE_OF_KEYS if is_key else SHARE) * lines:
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
    if (is_word or is_key) and come_back(entries) and common(entries) >= _COMMON_PLAIN:
        return _Rated(3 if is_key else 2, "name")
    return None


def alike(entries: Sequence[Entry]) -> Sequence[Entry]:
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
    return kept if len(kept) >= SHARE * len(entries) else entries


def _rated_number(key: str, counts: Mapping[str, int], entries: Sequence[Entry]) -> _Rated | None:
    numbers = sorted(int(value) for value in counts)
    if _COUNTED.search(key):
        return None
    if not _PID.fullmatch(key) and numbers[-1] < 2 * len(numbers) + 1:
        if _RANK.fullmatch(key):
            return _Rated(CLEAR, "rank")
        if _WORKER.fullmatch(key) or LOCAL.fullmatch(key):
            return _Rated(4, "rank")
        if HOST.fullmatch(key):
            return _Rated(4, "name")
        is_before_any = is_prefix(entries)
        if numbers[0] > 1 or not (_return(entries) if is_before_any else come_back(entries)):
            return None
        return _Rated(3, "rank") if is_before_any or common(entries) >= COMMON else None
    is_pid = _PID.fullmatch(key) and come_back(entries) and common(entries) >= COMMON
    return _Rated(1, "pid") if is_pid else None


def is_prefix(entries: Sequence[Entry]) -> bool:
    """Whether a tool put the column before lines of any text."""
    return any(_OF_TRACEBACK.match(e.text) for e in entries)


def _return(entries: Sequence[Entry]) -> bool:
    """Whether values return after others at all, as those before lines of tracebacks do."""
    values = [e.value for e in entries]
    runs = 1 + sum(a != b for a, b in pairwise(values))
    return runs > len(set(values))


def come_back(entries: Sequence[Entry]) -> bool:
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


def common(entries: Sequence[Entry]) -> float:
    """The share of lines whose texts several writers print."""
    writers = _writers_of_texts(entries)
    return sum(len(writers[e.text]) > 1 for e in entries) / len(entries)


def _speak(entries: Sequence[Entry]) -> bool:
    """Whether different texts follow names that stand where prose may: those of which it is no subject."""
    shared = [each for each in _writers_of_texts(entries).values() if len(each) > 1]
    return len(shared) > 2 and come_back(entries)


def _writers_of_texts(entries: Sequence[Entry]) -> Mapping[str, set[str]]:
    """Which values stand before each text."""
    writers: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        writers[entry.text].add(entry.value)
    return writers
