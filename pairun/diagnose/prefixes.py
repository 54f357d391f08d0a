"""Splits a log in which several ranks, Pods or hosts write by the prefixes of its lines."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import lru_cache

from pairun.diagnose.layouts import is_continued
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.numbered import NumberedLog, Runs
from pairun.diagnose.writers import Writer, own_rank

_HEAD_BYTES = 1 << 18
_MAX_LINES = 3000
_LINE_BYTES = 600
_SHARE = 0.5

_PREFIXES = (
    re.compile(r"\[?[Rr]ank:? ?(?P<rank>\d+)\]?: ?"),  # torchrun: [rank3]:
    re.compile(r"\[(?:\d+,)?(?P<rank>\d+)\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(
        r"\((?:[\w.<>-]+ )?(?:[\w./<>=-]+ )*?(?:rank=(?P<rank>\d+)|pid=(?P<pid>\d+))[^()]{0,60}\) ?"
    ),
    re.compile(r"\[[a-z]{2,12}(?P<local>\d+)\]:"),  # torchrun --tee: [default3]:
    re.compile(r"(?P<label>\d{1,5}): "),  # srun --label
    re.compile(r"\[(?:\d+,)?(?P<label>\d+)\]: ?"),
    re.compile(r"\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] "),  # kubectl logs --prefix
    re.compile(r"\[(?P<pod>(?:[a-z][a-z0-9.]{0,40}-){1,4}\d{1,5})\] "),
    re.compile(r"(?P<pod>[\w.-]{1,60}?-\d+) +\| "),  # docker compose, pairun's live view
    re.compile(r"pdsh@[\w.-]{1,60}: (?P<pod>[\w.-]{1,60}): "),  # pdsh: how a host's ssh ended
)
_INNER = _PREFIXES[:3]
"""Prefixes of ranks and processes, which may follow that of a Pod."""

_PLAIN = re.compile(rb"\[(?:rank\d{1,6}\]: |pod/[\w.-]+/[\w.-]+\] )")
_OF_INNER = (b"ank", b"pid=", b"<std")
"""Prefixes whose writer is known without the rest of the line, unless that may begin with another one."""

_JOURNAL = re.compile(
    rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<host>[\w.-]{1,64}) [\w./-]{1,64}\[\d+\]: "
)
_BARE = "?"
"""The host of a writer whose prefix is a bare number."""

_NOBODY = Writer(None, "lines without a rank", launcher=True)


def split(log: NumberedLog) -> list[tuple[Writer, NumberedLog]]:
    """Split a log of several ranks or Pods by the prefixes of its lines.

    Returns:
        Each writer's part; lines without a prefix form another part. Empty for a single writer.
    """
    pods = _pods_of_ranks(log)
    if not _is_shared(log, pods):
        return []
    parts: dict[str, tuple[Writer, list[bytes], Runs]] = {}
    last, before = _NOBODY, b""
    for number, raw in zip(_numbers(log), log.data.split(b"\n"), strict=True):
        writer = _prefix_of(raw, pods)
        if writer is not None:
            last, before = writer, raw
        elif is_continued(raw, before):
            writer = last
        else:
            writer, before = _NOBODY, before if not raw.strip() else b""
        part = parts.get(writer.label)
        if part is None:
            part = parts[writer.label] = (writer, [], Runs())
        part[1].append(raw)
        part[2].add(number)
    if len([p for p in parts.values() if p[0] is not _NOBODY]) < 2:
        return []
    shared = []
    for writer, lines, runs in parts.values():
        if writer is _NOBODY and not any(map(bytes.strip, lines)):
            continue
        text = NumberedLog(b"\n".join(lines), log.name, runs.runs, log.source)
        is_open = writer.number is not None or (writer.rank is None and not writer.launcher)
        own = own_rank(text, is_part=True) if is_open else None
        stated = writer if own is None else writer.ranked(own)._replace(is_stated=True)
        host = "" if stated.host == _BARE else stated.host
        # beside Pods in which ranks write, one without a rank is no launcher: its ranks wrote nothing
        is_empty = bool(pods) and bool(host) and stated.rank is None and not stated.launcher
        shared.append((stated._replace(host=host, has_ranks=is_empty), text))
    return shared


def _numbers(log: NumberedLog) -> list[int]:
    count = log.data.count(b"\n") + 1
    numbers = [0] * count
    ends = [start for start, _ in log.runs[1:]] + [count]
    for (start, number), end in zip(log.runs, ends, strict=True):
        numbers[start:end] = range(number, number + end - start)
    return numbers


def _ends(log: Log) -> list[list[bytes]]:
    """The first and the last lines of a log that are not empty."""
    pieces = (log.data[:_HEAD_BYTES], log.data[-_HEAD_BYTES:])
    return [
        [raw for raw in piece.split(b"\n", _MAX_LINES)[:_MAX_LINES] if raw.strip()]
        for piece in pieces
    ]


def _pods_of_ranks(log: Log) -> frozenset[str]:
    """The Pods or containers in which several ranks write.

    Numbers that come back in another Pod count the processes there, so none of them is a rank.
    """
    inner: dict[str, set[str]] = {}
    for raw in itertools.chain(*_ends(log)):
        pod, rank = _writers_of(raw)
        if pod is not None and rank is not None:
            inner.setdefault(pod.host, set()).add(rank.label)
    several = frozenset(pod for pod, labels in inner.items() if len(labels) > 1)
    counts = Counter(label for pod in several for label in inner[pod])
    return several if max(counts.values(), default=1) == 1 else frozenset()


def _is_shared(log: Log, pods: frozenset[str]) -> bool:
    """Whether lines of several writers alternate in a log.

    Args:
        log: the log.
        pods: those in which several ranks write.
    """
    pieces = [[_prefix_of(raw, pods) for raw in piece] for piece in _ends(log)]
    lines = sum(len(piece) for piece in pieces if any(piece))
    writers = [writer for piece in pieces for writer in piece if writer is not None]
    labels = {writer.label for writer in writers}
    if len({writer.label for writer in writers if writer.host != _BARE}) > 1:
        return True
    # a bare number before a colon is a prefix only if most lines have one
    return len(labels) > 1 and len(writers) > _SHARE * lines


def _prefix_of(raw: bytes, pods: frozenset[str]) -> Writer | None:
    """The writer that a line's prefix names; the host is `_BARE` if it is a bare number.

    Args:
        raw: the line.
        pods: those in which several ranks write; their other lines are a launcher's.
    """
    writer, inner = _writers_of(raw)
    if writer is None or writer.host not in pods:
        return writer
    if inner is not None:
        return inner._replace(host=writer.host)
    return Writer(None, writer.host, writer.host, launcher=True)


def _writers_of(raw: bytes) -> tuple[Writer | None, Writer | None]:
    """The writer that a line's prefix names, and the rank or process after it; see `_named`."""
    head, plain = raw[:_LINE_BYTES], _PLAIN.match(raw)
    if plain and not any(word in head[plain.end() :] for word in _OF_INNER):
        head = plain[0] + b"-"
    return _named(head)


@lru_cache(1 << 13)
def _named(raw: bytes) -> tuple[Writer | None, Writer | None]:
    """The writer that a line's prefix names; if that is a Pod, also the rank or process after it."""
    source = f"{parse(0, raw).source} "
    for pattern in _PREFIXES:
        if match := pattern.match(source) or pattern.match(source.rstrip()):
            rest = source[match.end() :].lstrip()
            inner = next((found for each in _INNER if (found := each.match(rest))), None)
            is_pod = "pod" in pattern.groupindex
            return _writer_of(match), _writer_of(inner) if is_pod and inner else None
    if journal := _JOURNAL.match(raw):
        host = journal["host"].decode("ascii")
        return Writer.of_pod(host, host), None
    return None, None


def _writer_of(match: re.Match[str]) -> Writer | None:
    names = match.groupdict()
    if names.get("pod"):
        return Writer.of_pod(names["pod"], names["pod"])
    number = names.get("rank") or names.get("local") or names.get("label")
    if number is not None and len(number) < 7:
        rank = int(number)
        host = _BARE if names.get("label") else ""
        return Writer(rank, f"rank {rank}", host, number=rank if names.get("local") else None)
    return Writer(None, f"pid {names['pid']}") if names.get("pid") else None
