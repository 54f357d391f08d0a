"""Recognises who wrote each line of a shared log, whatever layout a tool gives to the name.

Tools that print the logs of several Pods, hosts or processes put a name before each line: pdsh,
stern, ``docker compose``, logcli, Fluentd, ``aws logs tail``, launchers. No list of tools is
complete, so the lines are compared: one of the first words of nearly all lines is a name, the names
have one shape and differ in a number or a random ending, each comes back, and only times and words
that never change stand before it. Such lines get the form of ``kubectl logs --prefix``, which the
rest reads.

A program's own logger may print the rank in a column of its lines instead: see
`pairun.incident.rankcolumns`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pairun.incident.numbered import NumberedLog
from pairun.incident.rankcolumns import column_of, with_ranks

_SAMPLE_BYTES = 1 << 16
_SHARE = 0.9
"""The share of a log's lines that must show a name."""

_LINES_EACH = 2
_MAX_NAMES = 4096
_MAX_SHAPES = 3
"""How many shapes the names of one job have: such as ``bert-master-0`` and ``bert-worker-0``."""

_MAX_BEFORE, _MAX_AFTER = 4, 3
"""How many words stand before a name, and between it and the program's own text."""

_WORD = re.compile(rb"(\S+)(?:[ \t]|$)|[ \t]")
_OF_TIME = re.compile(rb"[\[(]?[\d:/.,TZ+-]{1,40}[\])]?|[A-Z][a-z]{2}|UTC")
_OF_LEVEL = re.compile(
    rb"(?i)[\[(|]?(?:trace|debug|info|notice|warn(?:ing)?|error|critical|fatal)[\])|:]?"
)
"""A program's logger printed what follows a level: its own words, which may mention a worker."""

_LOCAL = re.compile(rb"\[(\d{1,4})\]:?")
_ENDS = b"[](){}<>|:,;\"'"
_NAME = re.compile(rb"[A-Za-z][\w.]{0,60}(?:-[\w.]{1,60}){0,8}|\d{1,3}(?:[.-]\d{1,3}){3}")
_KNOWN = re.compile(
    rb"\[pod/|\[?[Rr]ank:? ?\d+\]?:|\[[a-z]{2,12}\d+\]:|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ \S+\[\d+\]: "
)
"""Layouts that `pairun.incident.prefixes` reads itself."""

_COUNTED = re.compile(
    r"(?:epoch|step|iter|iteration|batch|layer|layers|block|fold|attempt|retry|try|v|version|phase)[._-]?$",
    re.IGNORECASE,
)
"""What a word has before a number that counts progress or parts of a model, and no writers."""

_DIGITS = re.compile(r"\d+")
_RANDOM = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The random ending of a Pod's name (k8s.io/apimachinery, ``util/rand``)."""

_NUMBER = re.compile(rb"(\d{1,5})(?:\t|\|[\w.-]{1,40} *\| ?)")
_NUMBER_OF_LINE = re.compile(rb"(?m)^" + _NUMBER.pattern)
"""The number of a process before a line: GNU parallel's ``--tag``, PM2."""


class _Layout(NamedTuple):
    """Where the lines of a log have names.

    Attributes:
        word: the index of the word that has the name.
        part: which part of it, between slashes, counted from its end; 0 for all of it.
        after: how many words follow that never change, such as the container's name.
        has_local: whether the number of a process on its host follows.
    """

    word: int
    part: int
    after: int = 0
    has_local: bool = False


class _Named(NamedTuple):
    """A line with a name.

    Attributes:
        name: of its writer.
        local: the number of the process on its host; None if the layout has none.
        rest: the line without the name, with its time.
    """

    name: str
    local: int | None
    rest: bytes


def with_names(log: NumberedLog) -> NumberedLog:
    """A log whose lines name their writers as ``kubectl logs --prefix`` does; itself if they do not."""
    sample = _sample(log.data)
    if len(sample) < 2 * _LINES_EACH or sum(map(bool, map(_KNOWN.match, sample))) * 2 > len(sample):
        return log
    if (layout := _layout_of(sample)) is not None:
        return _rewritten(log, layout)
    if _are_numbered(sample):
        return _with_numbers(log)
    column = column_of(sample)
    return log if column is None else with_ranks(log, column)


def are_names(counts: Mapping[str, int]) -> bool:
    """Whether words that come back name the writers of one job.

    They differ only in numbers and random endings, and the numbers do not count progress.

    Args:
        counts: how often each word is there.
    """
    if not 1 < len(counts) <= _MAX_NAMES or sum(counts.values()) < _LINES_EACH * len(counts):
        return False
    if not all(_DIGITS.search(name) or _RANDOM.search(name) for name in counts):
        return False
    shapes = {_DIGITS.sub("#", _RANDOM.sub("?", name)) for name in counts}
    if len(shapes) > _MAX_SHAPES or len(shapes) == len(counts):
        return False
    return not any(_COUNTED.search(n[: m.start()]) for n in counts for m in _DIGITS.finditer(n))


def _sample(data: bytes) -> list[bytes]:
    pieces = [data]
    if len(data) > 2 * _SAMPLE_BYTES:
        pieces = [data[:_SAMPLE_BYTES], data[-_SAMPLE_BYTES:]]
    return [line for piece in pieces for line in piece.split(b"\n") if line.strip()]


def _words(line: bytes, count: int) -> list[tuple[bytes, int]]:
    """The first words of a line, each with the offset of what follows it."""
    words: list[tuple[bytes, int]] = []
    for match in _WORD.finditer(line):
        if match[1] is not None:
            words.append((match[1], match.end()))
            if len(words) == count:
                break
    return words


def _layout_of(sample: Sequence[bytes]) -> _Layout | None:
    """Where the lines have names; None if there is no such place."""
    rows = [_words(line, _MAX_BEFORE + 1 + _MAX_AFTER) for line in sample]
    for word in range(_MAX_BEFORE + 1):
        column = [row[word][0] for row in rows if len(row) > word]
        if len(column) < _SHARE * len(rows):
            return None
        for part in (0, 1, 2):
            names = Counter(n for each in column if (n := _name_in(each, part)))
            if sum(names.values()) >= _SHARE * len(rows) and are_names(names):
                return _with_words_after(_Layout(word, part), rows)
        if not _is_passed(column) or any(map(_OF_LEVEL.fullmatch, column)):
            return None
    return None


def _is_passed(column: Sequence[bytes]) -> bool:
    """Whether a name may follow words: times, or words that hardly change."""
    return len(set(column)) <= 2 or all(map(_OF_TIME.fullmatch, column))


def _name_in(word: bytes, part: int) -> str:
    """The name in a word; empty if it has none."""
    parts = word.strip(_ENDS).rpartition(b"=")[2].strip(_ENDS).split(b"/")
    if part and part >= len(parts) + (part == 1):
        return ""
    name = parts[-part] if part else b"/".join(parts)
    return name.decode("ascii", "replace") if _NAME.fullmatch(name) else ""


def _with_words_after(layout: _Layout, rows: Sequence[Sequence[tuple[bytes, int]]]) -> _Layout:
    """A layout with the words between the name and the program's text."""
    for at in range(layout.word + 1, layout.word + 1 + _MAX_AFTER):
        column = [row[at][0] for row in rows if len(row) > at]
        if len(column) < _SHARE * len(rows):
            break
        if sum(_LOCAL.fullmatch(each) is not None for each in column) >= _SHARE * len(rows):
            return layout._replace(has_local=True)
        if len(set(column)) > 2:
            break
        layout = layout._replace(after=layout.after + 1)
    return layout


def _named(layout: _Layout, line: bytes) -> _Named | None:
    """The name of a line and the rest; None if it has no name."""
    last = layout.word + layout.after + layout.has_local
    words = _words(line, last + 1)
    if len(words) <= layout.word or not (name := _name_in(words[layout.word][0], layout.part)):
        return None
    times = b" ".join(word for word, _ in words[: layout.word] if _OF_TIME.fullmatch(word))
    local = None
    if layout.has_local and len(words) > last and (match := _LOCAL.fullmatch(words[last][0])):
        local = int(match[1])
    rest = line[words[min(last, len(words) - 1)][1] :]
    return _Named(name, local, times + b" " + rest if times else rest)


def _rewritten(log: NumberedLog, layout: _Layout) -> NumberedLog:
    lines = log.data.split(b"\n")
    named = [_named(layout, line) for line in lines]
    own = without_replica({n.name for n in named if n is not None})
    ranks = _global_ranks(
        {(n.name, n.local) for n in named if n is not None and n.local is not None}
    )
    shown = []
    for line, each in zip(lines, named, strict=True):
        if each is None:
            shown.append(line)
        elif each.local is not None:
            shown.append(b"[rank%d]: %s" % (ranks[each.name, each.local], each.rest))
        else:
            shown.append(b"[pod/%s/main] %s" % (own[each.name].encode(), each.rest))
    return NumberedLog(b"\n".join(shown), log.name, log.runs, log)


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


def _are_numbered(sample: Sequence[bytes]) -> bool:
    """Whether nearly all lines begin with the number of a writer, as those of GNU parallel do."""
    numbers = Counter(int(m[1]) for line in sample if (m := _NUMBER.match(line)))
    return (
        sum(numbers.values()) >= _SHARE * len(sample)
        and len(numbers) > 1
        and sorted(numbers) == list(range(len(numbers)))
        and min(numbers.values()) >= _LINES_EACH
    )


def _with_numbers(log: NumberedLog) -> NumberedLog:
    """A log with the rank before each line instead of the bare number."""
    shown = _NUMBER_OF_LINE.sub(rb"[rank\1]: ", log.data)
    return NumberedLog(shown, log.name, log.runs, log)
