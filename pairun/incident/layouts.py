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

from pairun.incident.columns import Writers, writers_of
from pairun.incident.columnvalues import Column, Entry
from pairun.incident.linehead import LAST, MAX_WORDS, Head, head_of, word_of
from pairun.incident.numbered import NumberedLog

_SAMPLE_BYTES = 1 << 16

_BLOCKS, _BLOCK_LINES = 5, 100

_MIN_LINES = 4

_ALL = 0.97
"""The share of lines that have the names which a tool puts before all lines."""

_MAX_AFTER = 3
"""How many words that never change stand between a tool's name and the program's own text."""

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


def with_names(log: NumberedLog) -> NumberedLog:
    """A log whose lines name their writers in a form that is known; itself if they do not."""
    sample = _sample(log.data)
    if len(sample) < _MIN_LINES or sum(map(bool, map(_KNOWN.match, sample))) * 2 > len(sample):
        return log
    heads = {n: head_of(line) for n, line in enumerate(sample) if not _CONTINUED.match(line)}
    columns: dict[Column, list[Entry]] = {}
    for n, head in heads.items():
        for word in head.words:
            entry = Entry(n, word.value, _text(sample[n][word.end :]), word.in_prose)
            columns.setdefault(word.column, []).append(entry)
    writers = writers_of(dict(sorted(columns.items())), len(heads))
    if writers is None:
        return _with_hosts(log)
    return _rewritten(log, writers, sample)


_PDSH = re.compile(rb"(?m)^pdsh@[\w.-]{1,60}: ([\w.-]{1,60}): ")
"""How pdsh reports the end of the ssh to a host."""

_PDSH_HOSTS = re.compile(rb"\bpdsh [^\n]{0,80}?-w ([\w.,-]{1,4000})")


def _with_hosts(log: NumberedLog) -> NumberedLog:
    """A log with the hosts that pdsh itself names in the form of ``kubectl logs --prefix``."""
    hosts = set(_PDSH.findall(log.data)) if b"pdsh@" in log.data else set()
    if not hosts:
        return log
    hosts.update(
        host for each in _PDSH_HOSTS.findall(log.data) for host in each.split(b",") if host
    )
    names = b"|".join(map(re.escape, sorted(hosts, key=len, reverse=True)))
    data = re.sub(rb"(?m)^(%s): ?" % names, rb"[pod/\1/main] ", log.data)
    return NumberedLog(data, log.name, log.runs, log)


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
        return MAX_WORDS if place == LAST else place + self.after


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
    return head_of(before).level in _ERRORS


def _form(writers: Writers, sample: Sequence[bytes]) -> _Form:
    place = writers.last_place
    heads = [head_of(line) for line in sample]
    named = [n for n, line in enumerate(sample) if not _CONTINUED.match(line)]
    having = [heads[n] for n in named if word_of(heads[n], writers.column) is not None]
    is_tool = place != LAST and len(having) >= _ALL * len(sample)
    after = 0
    while is_tool and after < _MAX_AFTER:
        values = Counter(_value_at(head, place + after + 1) for head in having)
        if len(values) > 2 or "" in values or any(_PROGRESS.fullmatch(v) for v in values):
            break
        after += 1
    return _Form(writers, is_tool, after)


_PROGRESS = re.compile(r"(?i)(?:global_?)?(?:step|iter|iteration|epoch|loss)s?")


def _value_at(head: Head, place: int) -> str:
    """The word at a place before the first level or time after the name; empty if there is none."""
    return next((w.value for w in head.words if w.column.place == place), "")


_SKIPPED = re.compile(rb"[\])>}\"':=,;]*(?:[ \t]*(?:\||\xe2\x80\xba|[\])>}]+:?|[:-](?= )))*[ \t]?")


def _named(form: _Form, line: bytes) -> tuple[tuple[str, str | None], bytes] | None:
    """Name and number of a line's writer, and the line without them; None without a name."""
    head = head_of(line, form.last)
    if (word := word_of(head, form.writers.column)) is None:
        return None
    if not form.writers.has(word.value):
        return None
    local, end = None, word.end
    if form.writers.local is not None:
        second = word_of(head, form.writers.local)
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
