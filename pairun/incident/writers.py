"""Finds who wrote a log: rank, host and Pod, from file names, prefixes or the text."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import NamedTuple

from pairun.diagnose.lines import Log, parse
from pairun.incident.numbered import NumberedLog, Runs

_HEAD_BYTES = 1 << 18
_MAX_LINES = 3000
_SHARE = 0.5

_LAUNCHER = re.compile(
    r"(?i)^slurm[._-]\d+$|launch|torchrun|mpirun|mpiexec|srun|sbatch|elastic|agent|driver|scheduler|slurmstepd|head"
    r"|^raylet$|^gcs_server$|^monitor$|^dashboard$|^log_monitor$"
)
_RAY_WORKER = re.compile(
    r"^(?:python-core-)?worker-[0-9a-f]{20,60}[-_](?:[0-9a-f]{8}[-_])?(?P<pid>\d+)$"
)
"""Ray's logs of a worker: its id, the job's id, and the process id."""

_STREAMS = re.compile(r"(?i)[._-]?(?:stdout|stderr|std_?out|std_?err|out|err|log|txt|json|jsonl)$")
_RANK_IN_NAME = (
    re.compile(r"(?i)(?<![a-z])rank[._-]?(?P<rank>\d{1,6})(?!\d)"),
    re.compile(r"^slurm[._-]\d+(?:\.\d+)?[._-](?P<rank>\d{1,6})$"),  # --output=slurm-%j_%t.out
    re.compile(r"(?i)(?<![a-z])(?:task|proc|process)[._-]?(?P<rank>\d{1,6})(?!\d)"),
    re.compile(r"^(?:log|out|stdout|stderr|err)[._-](?P<rank>\d{1,6})$"),
)
_LOCAL_IN_PATH = re.compile(
    r"(?:^|/)attempt_(?P<attempt>\d+)/(?P<local>\d+)/(?:stdout|stderr|error)\b"
)
_FOLDER = re.compile(r"(?:^|/)(?P<local>\d{1,5})/(?:stdout|stderr)(?:\.\w+)?$")
_HOST = re.compile(
    r"(?i)(?<![a-z])(?P<host>(?:node|host|gpu|worker|trainer|master|server|ip)[\w.]*-?[\w.-]*\d)"
)
_GENERIC = re.compile(
    r"(?i)^(?:current|@[0-9a-f]+\.s|user-all|logs?|pai|output|main|std_?(?:out|err)|out|err|app|0|previous|init|runtime|journal)$"
)
"""Names of files and folders that do not identify the writer."""

_INSTANCE = re.compile(r"(?P<label>(?P<role>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)-(?P<index>\d{1,5}))$")

_RANK_PREFIX = (
    re.compile(r"\[?[Rr]ank:? ?(?P<rank>\d+)\]?: ?"),  # torchrun: [rank3]:
    re.compile(r"\[(?:\d+,)?(?P<rank>\d+)\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(r"\[[a-z]{2,12}(?P<local>\d+)\]:"),  # torchrun --tee: [default3]:
    re.compile(r"(?P<label>\d{1,5}): "),  # srun --label
    re.compile(r"\[(?:\d+,)?(?P<label>\d+)\]: ?"),
    re.compile(r"\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] "),  # kubectl logs --prefix
    re.compile(
        r"\((?:[\w.<>-]+ )?(?:[\w./<>=-]+ )*?(?:rank=(?P<rank>\d+)|pid=(?P<pid>\d+))[^()]{0,60}\) ?"
    ),
    re.compile(r"\[(?P<pod>(?:[a-z][a-z0-9.]{0,40}-){1,4}\d{1,5})\] "),
    re.compile(r"(?P<pod>[\w.-]{1,60}?-\d+) +\| "),  # docker compose, pairun's live view
)
_PREFIXED = re.compile(
    rb"^.{0,40}?(?:\[?[Rr]ank:? ?\d+\]?:|\[[a-z]{2,12}\d+\]:|\[(?:\d+,)?\d+\]<std|\[(?:\d+,)?\d+\]: |\d{1,5}: "
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./-]{1,64}\[\d+\]: "
    rb"|\[pod/|\[(?:[a-z][a-z0-9.]{0,40}-){1,4}\d{1,5}\] |\([\w.<>/= -]{0,80}(?:pid|rank)=\d|[\w.-]{1,60}-\d+ +\| )",
    re.MULTILINE,
)
_JOURNAL = re.compile(
    rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<host>[\w.-]{1,64}) [\w./-]{1,64}\[\d+\]: "
)
_OWN_RANK = (
    re.compile(
        rb"(?i)\b(?:global[ _]?rank|(?<!local[ _])(?<!local)rank)[ =:]{1,3}(\d{1,6})\b(?=[ ,/]+(?:of|world|local|/))"
    ),
    re.compile(rb"\[PG [^\]\n]{0,80}Rank (\d{1,6})\]"),
    re.compile(rb"\[[Rr]ank:? ?(\d{1,6})\]"),
    re.compile(rb"(?m)^RANK=(\d{1,6})$"),
)
_OWN_HOST = re.compile(
    rb"(?m)^(?:HOSTNAME=|host(?:name)? ?[:=] ?)([\w.-]{1,64})$|^([\w.-]{1,64}):\d+:\d+ \[\d+\] NCCL "
)


class Writer(NamedTuple):
    """Who wrote a log.

    Attributes:
        rank: its number in the job; None if unknown.
        label: its name for people: ``rank 3``, ``worker-3``, a file's name.
        host: of the machine; empty if unknown.
        launcher: whether it starts the ranks, and is not one of them.
        role: of the writers among which its index counts, such as ``bert-worker``; may be empty.
        number: its number in the role; None if unknown.
        is_stated: whether the rank is that which its log shows, and not only the number in the role.
    """

    rank: int | None
    label: str
    host: str = ""
    launcher: bool = False
    role: str = ""
    number: int | None = None
    is_stated: bool = False

    @classmethod
    def of_pod(cls, name: str, host: str) -> Writer:
        """The Pod with a name; the number in the name is its rank until the logs show another."""
        if (match := _INSTANCE.search(name)) is None:
            return cls(None, name, host)
        number = int(match["index"])
        return cls(number, match["label"], host, role=match["role"], number=number)

    def ranked(self, rank: int) -> Writer:
        """The writer with its rank in the job."""
        label = f"rank {rank}" if self.label.startswith("rank ") else self.label
        return self._replace(rank=rank, label=label)


def writer_of(path: str, log: Log, numbered: int | None = None) -> Writer:
    """The writer of a whole file.

    Args:
        path: the file, relative to the folder that the user named.
        log: its contents.
        numbered: the rank by comparison with the names of the job's other files; see `ranks_by_name`.
    """
    head = log.data[:_HEAD_BYTES]
    host = _host_in(path, head)
    name = _STREAMS.sub("", _STREAMS.sub("", os.path.basename(path)))
    inside = _own_rank(log)
    for pattern in _RANK_IN_NAME:
        if match := pattern.search(name) or pattern.search(os.path.basename(path)):
            rank = int(match["rank"])
            return Writer(rank, f"rank {rank}", host)
    local = _LOCAL_IN_PATH.search(path) or _FOLDER.search(path)
    if inside is not None:
        writer = Writer.of_pod(name, host)
        return writer._replace(rank=inside, label=f"rank {inside}", host=host, is_stated=True)
    if local is not None:
        rank = int(local["local"])
        return Writer(rank, f"rank {rank}", host)
    for part in reversed(path.split("/")):
        if match := re.search(
            r"(?i)(?<![a-z])rank[._-]?(\d{1,6})(?!\d)", part
        ):  # mpirun: 1/rank.3/stdout
            return Writer(int(match[1]), f"rank {int(match[1])}", host)
    if ray := _RAY_WORKER.match(name):
        return Writer(None, f"pid {ray['pid']}", host)
    parts = [_STREAMS.sub("", part) for part in reversed(path.split("/"))]
    name = next((part for part in parts if part and not _GENERIC.match(part)), name)
    name = next((part for part in parts if _INSTANCE.search(part)), name)
    is_launcher = _LAUNCHER.search(name) is not None
    if not is_launcher and (match := _INSTANCE.search(name)):
        return Writer.of_pod(name, host or match["label"])
    if not is_launcher and numbered is not None:
        return Writer(numbered, f"rank {numbered}", host)
    return Writer(None, name or os.path.basename(path), host, is_launcher)


def split(log: NumberedLog) -> list[tuple[Writer, NumberedLog]]:
    """Split a log of several ranks or Pods by the prefixes of its lines.

    Returns:
        Each writer's part; lines without a prefix form another part. Empty for a single writer.
    """
    if not _is_shared(log):
        return []
    parts: dict[str, tuple[Writer, list[bytes], Runs]] = {}
    for number, raw in zip(_numbers(log), log.data.split(b"\n"), strict=True):
        writer = _prefix_of(raw) or _NOBODY
        part = parts.get(writer.label)
        if part is None:
            part = parts[writer.label] = (writer, [], Runs())
        part[1].append(raw)
        part[2].add(number)
    if len([p for p in parts.values() if p[0] is not _NOBODY]) < 2:
        return []
    shared = []
    for writer, lines, runs in parts.values():
        text = NumberedLog(b"\n".join(lines), log.name, runs.runs)
        own = _own_rank(text) if writer.number is not None else None
        stated = writer if own is None else writer.ranked(own)._replace(is_stated=True)
        shared.append((stated, text))
    return shared


_NOBODY = Writer(None, "lines without a rank", launcher=True)


def _numbers(log: NumberedLog) -> list[int]:
    count = log.data.count(b"\n") + 1
    numbers = [0] * count
    ends = [start for start, _ in log.runs[1:]] + [count]
    for (start, number), end in zip(log.runs, ends, strict=True):
        numbers[start:end] = range(number, number + end - start)
    return numbers


def _is_shared(log: Log) -> bool:
    """Whether lines of several writers alternate in a log."""
    labels: Counter[str] = Counter()
    bare: Counter[str] = Counter()
    lines = 0
    for piece in (log.data[:_HEAD_BYTES], log.data[-_HEAD_BYTES:]):
        in_piece = [raw for raw in piece.split(b"\n", _MAX_LINES)[:_MAX_LINES] if raw.strip()]
        writers = [writer for raw in in_piece if (writer := _prefix_of(raw))]
        lines += len(in_piece) if writers else 0
        for writer in writers:
            labels[writer.label] += 1
            bare[writer.label] += writer.host == _BARE
    firm = [label for label in labels if not bare[label]]
    if len(firm) > 1:
        return True
    # a bare number before a colon is a prefix only if most lines have one
    return len(labels) > 1 and sum(labels.values()) > _SHARE * lines


_BARE = "?"


def _prefix_of(raw: bytes) -> Writer | None:
    """The writer that a line's prefix names; the host is `_BARE` if it is a bare number."""
    if not _PREFIXED.match(raw):
        return None
    line = parse(0, raw[:600])
    source = f"{line.source} "
    for pattern in _RANK_PREFIX:
        match = pattern.match(source) or pattern.match(source.rstrip())
        if match is None:
            continue
        names = match.groupdict()
        if names.get("pod"):
            return Writer.of_pod(names["pod"], names["pod"])
        number = names.get("rank") or names.get("local") or names.get("label")
        if number is not None and len(number) < 7:
            rank = int(number)
            local = rank if names.get("local") else None
            host = _BARE if names.get("label") else ""
            return Writer(rank, f"rank {rank}", host, number=local)
        if names.get("pid"):
            return Writer(None, f"pid {names['pid']}")
    if journal := _JOURNAL.match(raw):
        host = journal["host"].decode("ascii")
        return Writer.of_pod(host, host)
    return None


def _own_rank(log: Log) -> int | None:
    """The rank that a log names as its own; None if it names several or none."""
    ends = (log.data[:_HEAD_BYTES], log.data[-_HEAD_BYTES:])
    lines = {line for end in ends for line in end.split(b"\n") if b"ank" in line or b"RANK" in line}
    naming = b"\n".join(lines)
    for pattern in _OWN_RANK:
        seen = {match[1] for match in pattern.finditer(naming)}
        if len(seen) == 1:
            return int(seen.pop())
        if seen:
            return None
    return None


def _host_in(path: str, head: bytes) -> str:
    if match := _OWN_HOST.search(head):
        return (match[1] or match[2]).decode("ascii", "replace")
    for part in reversed(path.split("/")):
        if match_ := _HOST.search(part):
            return str(match_["host"]).rstrip(".-")
    return ""
