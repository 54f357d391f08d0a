"""Recognises who wrote each line of a shared log, whatever layout a tool gives to the name.

Tools that print the logs of several Pods, hosts or processes put a name before each line: ``pdsh``
and DeepSpeed's launcher (``host-1: ``), stern (``pod container ``), ``docker compose``
(``service-1  | ``), Loki's logcli (``{pod="..."} ``), launchers of nodes (``host-1: [0] ``). No list
of tools is complete, so the lines are compared: nearly all begin with names of one shape that differ
in a number or a random ending, and each name comes back. Such lines get the form of
``kubectl logs --prefix``, which the rest reads.

A program's own logger may print the rank in a column of its lines instead (``... E r1 failed``). The
lines of a traceback have no column; they belong to the line before them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pairun.incident.numbered import NumberedLog
from pairun.incident.numberednames import is_counted

_SAMPLE_BYTES = 1 << 16
_SHARE = 0.9
"""The share of a log's lines that must begin with a name."""

_LINES_EACH = 2
_MAX_NAMES = 4096
_MAX_SHAPES = 3
"""How many shapes the names of one job have: such as ``bert-master-0`` and ``bert-worker-0``."""

_TIME = rb"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,16} )?"
_NAME = rb"(?P<name>[A-Za-z][\w.]{0,60}(?:-[\w.]{1,60}){0,8})"
_LAYOUTS = tuple(
    re.compile(b"^" + _TIME + form)
    for form in (
        rb"\{[^}\n]{0,300}\b(?:pod|pod_name|instance|host|hostname)=\"(?P<name>[\w.-]{1,253})\"[^}\n]{0,300}\} ?",
        _NAME + rb": ?\[(?P<local>\d{1,4})\]:? ",
        _NAME + rb": ",
        _NAME + rb" +\| ?",
        rb"\[" + _NAME + rb"\]:? ",
        rb"<" + _NAME + rb">:? ",
        _NAME + rb"> ",
        _NAME + rb" (?P<container>[a-z][a-z0-9-]{1,40}) (?:\xe2\x80\xba |\| )?",
    )
)
_BARE = re.compile(
    b"^(?:" + _TIME + _NAME + rb"(?:: | +\|)|" + rb"\[[A-Za-z][\w.-]{1,60}\])[ \t]*$"
)
"""A line of which only the name is left, as of an empty line."""

_KNOWN = re.compile(rb"^\[pod/")
_DIGITS = re.compile(r"\d+")
_RANDOM = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The random ending of a Pod's name (k8s.io/apimachinery, ``util/rand``)."""


_STAMPED = re.compile(rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d")
_COLUMN = re.compile(
    rb"(?i)(?:^|[\s\[(|,])(?:global[_ ]?)?r(?:ank)?[ =:_]{0,2}(\d{1,6})(?=[\s\]),|:/]|$)"
)
_CONTINUES = re.compile(
    rb"[ \t]|$|(?:Original )?Traceback \(most|During handling of|The above exception was|> File "
    rb"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b"
)
"""How a line of a traceback begins."""

_MIN_STAMPED = 6


class _Named(NamedTuple):
    """A line with a name.

    Attributes:
        name: of its writer.
        local: the number of the process on its host; empty if the layout has none.
        rest: the line without the name, with its time.
    """

    name: str
    local: str
    rest: bytes


def with_names(log: NumberedLog) -> NumberedLog:
    """A log whose lines name their writers as ``kubectl logs --prefix`` does; itself if they do not."""
    sample = _sample(log.data)
    if not sample or any(map(_KNOWN.match, sample)):
        return log
    for layout in _LAYOUTS:
        if _fits(layout, sample):
            return _rewritten(log, layout)
    if _has_column(sample):
        return _with_ranks(log)
    return log


def _sample(data: bytes) -> list[bytes]:
    pieces = (
        [data] if len(data) <= 2 * _SAMPLE_BYTES else [data[:_SAMPLE_BYTES], data[-_SAMPLE_BYTES:]]
    )
    return [line for piece in pieces for line in piece.split(b"\n") if line.strip()]


def _has_column(sample: Sequence[bytes]) -> bool:
    """Whether nearly all lines of a program's logger show a rank, and not all the same."""
    stamped = [line for line in sample if _STAMPED.match(line)]
    ranks = [match[1] for line in stamped if (match := _COLUMN.search(line, 0, 400))]
    return (
        len(stamped) >= _MIN_STAMPED
        and len(ranks) >= _SHARE * len(stamped)
        and 1 < len(set(ranks)) <= len(ranks) // _LINES_EACH
    )


def _with_ranks(log: NumberedLog) -> NumberedLog:
    """A log with the rank of its logger's column before each line, also of tracebacks."""
    shown = []
    prefix = b""
    for line in log.data.split(b"\n"):
        if _STAMPED.match(line):
            match = _COLUMN.search(line, 0, 400)
            prefix = b"[rank%s]: " % match[1] if match else b""
        elif not _CONTINUES.match(line):
            prefix = b""
        shown.append(prefix + line)
    return NumberedLog(b"\n".join(shown), log.name, log.runs)


def _fits(layout: re.Pattern[bytes], sample: Sequence[bytes]) -> bool:
    """Whether nearly all lines begin with a name in a layout."""
    names = Counter(n.name for line in sample if (n := _named(layout, line)) is not None)
    bare = sum(_BARE.match(line) is not None for line in sample)
    count = sum(names.values())
    if count < _SHARE * (len(sample) - bare) or not 1 < len(names) <= _MAX_NAMES:
        return False
    return count >= _LINES_EACH * len(names) and _are_of_one_job(names)


def _are_of_one_job(names: Iterable[str]) -> bool:
    """Whether names differ only in numbers and random endings, and the numbers count writers."""
    names = list(names)
    if not all(_DIGITS.search(name) or _RANDOM.search(name) for name in names):
        return False
    shapes = {_DIGITS.sub("#", _RANDOM.sub("?", name)) for name in names}
    return len(shapes) <= _MAX_SHAPES and len(shapes) < len(names) and not is_counted(names)


def _named(layout: re.Pattern[bytes], line: bytes) -> _Named | None:
    if (match := layout.match(line)) is None:
        return None
    groups = match.groupdict()
    rest = (match["time"] or b"") + line[match.end() :]
    local = groups.get("local") or b""
    return _Named(match["name"].decode("ascii", "replace"), local.decode("ascii"), rest)


def _rewritten(log: NumberedLog, layout: re.Pattern[bytes]) -> NumberedLog:
    lines = log.data.split(b"\n")
    named = [_named(layout, line) for line in lines]
    own = _without_replica({n.name for n in named if n is not None})
    ranks = _global_ranks({(n.name, int(n.local)) for n in named if n is not None and n.local})
    shown = []
    for line, each in zip(lines, named, strict=True):
        if each is None:
            shown.append(line)
        elif each.local:
            shown.append(b"[rank%d]: %s" % (ranks[each.name, int(each.local)], each.rest))
        else:
            shown.append(b"[pod/%s/main] %s" % (own[each.name].encode(), each.rest))
    return NumberedLog(b"\n".join(shown), log.name, log.runs)


def _without_replica(names: Iterable[str]) -> Mapping[str, str]:
    """Names without the number of their replica, if that is the same for all.

    ``docker compose`` calls the one container of the service ``worker-3`` ``worker-3-1``.
    """
    names = list(names)
    if len({name.rpartition("-")[2] for name in names}) == 1:
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
