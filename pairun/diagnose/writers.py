"""Finds who wrote a log: rank, host and Pod, from the names of all files, or the text.

One name with a number proves nothing: it may be a date, a job, an attempt or a rotated file. So the names
of all files of a job are compared. Numbers that start at 0 and have few gaps are ranks. The number of a
Pod counts only within its role, and a launcher's number is none of the ranks'.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pairun.diagnose.lines import Log

_HEAD_BYTES = 1 << 18

_LEAST_PID = 100
"""A lower number may be a rank's and a process's by chance, as the first processes of a container have."""

_LAUNCHER = re.compile(
    r"(?i)^slurm[._-]\d+$|launch|torchrun|mpirun|mpiexec|srun|sbatch|elastic|agent|driver|scheduler|slurmstepd|head"
    r"|^raylet$|^gcs_server$|^monitor$|^dashboard$|^log_monitor$"
)
_OF_SCHEDULER = re.compile(
    rb"(?i)\A(?:[^\n]{0,200}\n){0,2}?(?=[^\n]{0,400}\bjob_?id(?:raw)?\b)[^\n]{0,400}\b(?:state|st)\b[^\n]*\n"
    rb"|\A(?:[^\n]{0,200}\n){0,2}?(?:Job ID: \d+\nCluster: |JobId=\d+ JobName=)"
)
"""The beginning of what ``sacct``, ``squeue``, ``seff`` and ``scontrol show job`` print of a whole job."""

_RAY_WORKER = re.compile(r"^(?:python-core-)?worker-[0-9a-f]{20,60}[-_](?:[0-9a-f]{8}[-_])?(\d+)$")
"""Ray's logs of a worker: its id, the job's id, and the process id."""

_STREAMS = re.compile(r"(?i)(?:(?:^|[._-])(?:(?:std_?)?(?:out|err)|log|txt|jsonl?)){1,2}$")
_RANK_IN_NAME = (
    re.compile(r"(?i)(?<![a-z])rank[._-]?(\d{1,6})(?!\d)"),
    re.compile(r"^slurm[._-]\d+(?:\.\d+)?[._-](\d{1,6})$"),  # --output=slurm-%j_%t.out
    re.compile(r"(?i)(?<![a-z])(?:task|proc|process)[._-]?(\d{1,6})(?!\d)"),
    re.compile(r"^(?:log|out|stdout|stderr|err)[._-](\d{1,6})$"),
)
_RANK_IN_PATH = re.compile(
    r"(?:^|/)(?:attempt_\d+/(\d+)/(?:stdout|stderr|error)\b|(\d{1,5})/(?:stdout|stderr)(?:\.\w+)?$"
    r"|rank[._-]?(\d{1,6})/)"
)
"""How torchrun and mpirun name the folders of ranks."""

_HOST = re.compile(
    r"(?i)(?<![a-z])(?P<host>(?:node|host|gpu|worker|trainer|master|server|ip)[\w.]*-?[\w.-]*\d)"
)
_GENERIC = re.compile(
    r"(?i)^(?:current|@[0-9a-f]+\.s|user-all|logs?|pai|output|main|std_?(?:out|err)|out|err|app|0|previous|init|runtime|journal)$"
)
"""Names of files and folders that do not identify the writer."""

_INSTANCE = re.compile(
    r"(?<![A-Za-z0-9])(?P<label>(?P<role>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)-(?P<index>\d{1,5}))"
    r"(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?$"
)
"""A Pod's name with its index; the Pods of an indexed Job end with five random characters."""

_ADDRESS = re.compile(r"(?:^|-)\d{1,3}-\d{1,3}-\d{1,3}$")
"""How the name of a host begins whose last number is that of its address, such as ``ip-10-0-3-117``."""

_PREFIX = re.compile(rb"\[[Rr]ank:? ?(\d{1,6})\]")
_OWN_RANK = (
    re.compile(
        rb"(?i)\b(?:global[ _]?rank|(?<!local[ _])(?<!local)rank)['\" =:]{1,5}(\d{1,6})\b(?=[ ,/]+(?:of|in world|world|local|nprocs|nranks|/)|/\d)"
    ),
    re.compile(rb"\[PG [^\]\n]{0,80}Rank (\d{1,6})\]"),
    _PREFIX,
    re.compile(rb"(?m)^RANK=(\d{1,6})$"),
    re.compile(rb"(?m)^(?:[\d:.,TZ -]{8,32} )?\[?r(?:ank)?[ =]?(\d{1,6})(?=\]?[: |]+\w)"),
)
_OWN_HOST = re.compile(
    rb"(?m)^(?:HOSTNAME=|host(?:name)? ?[:=] ?)([\w.-]{1,64})$|^([\w.-]{1,64}):\d+:\d+ \[\d+\] NCCL "
)

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,5}(?![0-9])")
_NOT_RANKS = re.compile(
    r"(?i)(?:attempt|restart|retry|try|run|epoch|step|iter|iteration|version|v|trial|fold|part|phase|stage|seed|job|id"
    r"|checkpoint|ckpt|exp|experiment|test|lr|bs|gpus|nodes|cuda|py|python|node|host|machine|server)[._-]?$"
)
"""What a name has before a number that is no rank, or a host's."""

_NUMBERED_HOST = re.compile(r"(?P<before>.*?)(?P<number>\d{1,5})(?P<after>\D*)")
_ROTATED = re.compile(r"(?P<live>.+)\.[1-9]\d{0,2}(?:\.(?:gz|xz|bz2|zst))?")
_OF_SYSTEM = re.compile(r"(?:.*/)?(?:kern|syslog|messages|dmesg|journal)[^/]*")
"""Logs that are rotated by date or size, whatever runs: their older parts are of the same job."""

_MAX_GAPS = 2
"""A series may lack this share of its members: it may have twice as many numbers as files."""


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
        has_ranks: whether it is a Pod with several ranks.
    """

    rank: int | None
    label: str
    host: str = ""
    launcher: bool = False
    role: str = ""
    number: int | None = None
    is_stated: bool = False
    has_ranks: bool = False

    @classmethod
    def of_pod(cls, name: str, host: str) -> Writer:
        """The Pod with a name; the number in the name is its rank until the logs show another."""
        match = _INSTANCE.search(name)
        if match is None or _ADDRESS.search(match["role"]):
            return cls(None, name, host)
        number = int(match["index"])
        return cls(number, match["label"], host, role=match["role"], number=number)

    @classmethod
    def of_rank(cls, rank: int, host: str = "") -> Writer:
        """The rank with a number."""
        return cls(rank, f"rank {rank}", host)

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
    stated = _OWN_HOST.search(log.data[:_HEAD_BYTES])
    named = [found["host"].rstrip(".-") for found in map(_HOST.search, path.split("/")) if found]
    host = (stated[1] or stated[2]).decode("ascii", "replace") if stated else (["", *named])[-1]
    base = os.path.basename(path)
    name = _STREAMS.sub("", base)
    for pattern in _RANK_IN_NAME:
        match = pattern.search(name) or pattern.search(base)
        if match and not _is_pid(match[1], log):
            return Writer.of_rank(int(match[1]), host)
    if (own := own_rank(log)) is not None:
        writer = Writer.of_pod(name, host)
        return writer._replace(rank=own, label=f"rank {own}", host=host, is_stated=True)
    if match := _RANK_IN_PATH.search(path):
        return Writer.of_rank(int(match[match.lastindex or 0]), host)
    if ray := _RAY_WORKER.match(name):
        return Writer(None, f"pid {ray[1]}", host)
    parts = [_STREAMS.sub("", part) for part in reversed(path.split("/"))]
    instance = next(filter(None, map(_INSTANCE.search, parts)), None)
    specific = (part for part in parts if part and not _GENERIC.match(part))
    name = instance.string if instance else next(specific, name)
    if _LAUNCHER.search(name) or _OF_SCHEDULER.match(log.data):
        return Writer(None, name, host, launcher=True)
    if instance and _is_pid(instance["index"], log):
        return Writer(None, name, host or instance["role"])
    if instance:
        return Writer.of_pod(name, host or instance["label"])
    return Writer(None, name or base, host) if numbered is None else Writer.of_rank(numbered, host)


def _is_pid(number: str, log: Log) -> bool:
    """Whether a log states that a number in its name is that of its process."""
    stated = rb"(?im)^Process %s: |\bpid[ =:#]{1,3}%s\b" % (2 * (number.encode(),))
    return int(number) >= _LEAST_PID and re.search(stated, log.data[:_HEAD_BYTES]) is not None


def own_rank(log: Log, *, is_part: bool = False) -> int | None:
    """The rank that a log names as its own; None if it names several or none.

    Args:
        log: the log.
        is_part: whether it is a part of a shared file, in which a line may end with another writer's.
    """
    ends = (log.data[:_HEAD_BYTES], log.data[-_HEAD_BYTES:])
    lines = {line for end in ends for line in end.split(b"\n") if b"ank" in line or b"RANK" in line}
    naming = b"\n".join(lines)
    for pattern in _OWN_RANK:
        seen = pattern.findall(naming)
        if seen:
            is_glued = is_part and pattern is _PREFIX and len(seen) < 2
            return int(seen[0]) if len(set(seen)) == 1 and not is_glued else None
    return None


def ranks_by_name(paths: Iterable[str]) -> Mapping[str, int]:
    """The rank of each file whose name shows it only in comparison with the others.

    Args:
        paths: of all files of the job, relative to one folder.

    Returns:
        Nothing for a file whose number may mean something else.
    """
    names = frozenset(paths)
    series: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for path in names:
        for match in _NUMBER.finditer(path):
            series[path[: match.start()], path[match.end() :]][path] = int(match[0])
    found: dict[str, list[int]] = defaultdict(list)
    for (before, after), numbers in series.items():
        distinct = set(numbers.values())
        # train.log beside train.log.0: the number counts rotated files
        is_rotated = before.rstrip("._-") + after in names
        is_dense = len(distinct) > 1 and 0 in distinct and max(distinct) < _MAX_GAPS * len(distinct)
        if is_dense and not is_rotated and not _NOT_RANKS.search(before):
            for path, number in numbers.items():
                # the same number in two forms, 1 and 01, is unclear, as are two numbers that vary
                found[path] += [number] * (1 if len(distinct) == len(numbers) else 2)
    return {path: ranks[0] for path, ranks in found.items() if len(ranks) == 1}


def rotated(paths: Iterable[str]) -> Mapping[str, str]:
    """The older parts of logs, such as ``train.log.1`` or ``train.log.2.gz``, each with its live file.

    Args:
        paths: of all files of the job, relative to one folder.

    Returns:
        Nothing for files beside ``train.log.0``, which may be ranks', and for logs of the system.
    """
    names = frozenset(paths)
    lives = {path: match["live"] for path in names if (match := _ROTATED.fullmatch(path))}
    return {
        path: live
        for path, live in lives.items()
        if live in names and f"{live}.0" not in names and not _OF_SYSTEM.fullmatch(live)
    }


def in_job(writers: Sequence[tuple[Writer, str]], reported: Sequence[set[int]]) -> list[Writer]:
    """The writers with their ranks in the job, where they have only a number in a role.

    A launcher's log names the ranks that it started: the number of its Pod or node is that of none of
    them. The ranks that some logs of a role print show how far the others' ranks are from their numbers;
    without them Kubeflow's names do (Trainer 1, ``pkg/controller.v1/pytorch/envvar.go``): rank 0 of a
    PyTorchJob is ``NAME-master-0``, so rank 1 is ``NAME-worker-0``. If no log of a job names a rank, the
    numbers of the hosts count the processes, one on each.

    Args:
        writers: of all files of a job, each with its file.
        reported: the ranks whose end the log of each reports as a launcher.
    """
    roles: dict[str, list[Writer]] = defaultdict(list)
    launching = set()
    for (writer, file), ranks in zip(writers, reported, strict=True):
        roles[writer.role or file].append(writer)
        if writer.number is not None and not writer.is_stated and ranks - {writer.number}:
            launching.add(writer.role or file)
    placed = []
    for writer, file in writers:
        role = writer.role or file
        if writer.is_stated or writer.number is None:
            placed.append(writer)
        elif role in launching:
            placed.append(writer._replace(rank=None, number=None, has_ranks=True))
        else:
            placed.append(writer.ranked(writer.number + _offset(role, roles, launching)))
    if launching or any(reported) or any(each.rank is not None for each in placed):
        return placed
    labels = {each.label for each in placed if not each.launcher}
    hosts = [match for label in labels if (match := _NUMBERED_HOST.fullmatch(label))]
    is_alike = len({(host["before"], host["after"]) for host in hosts}) == 1 < len(hosts)
    numbers = {host[0]: int(host["number"]) for host in hosts}
    if is_alike and sorted(numbers.values()) == list(range(len(labels))):
        return [each._replace(rank=numbers.get(each.label)) for each in placed]
    return placed


def _offset(role: str, roles: Mapping[str, Sequence[Writer]], launching: Collection[str]) -> int:
    """How far the ranks of a role are from the numbers in it; 0 if unknown."""
    stated = {
        each.rank - each.number
        for each in roles[role]
        if each.is_stated and each.rank is not None and each.number is not None
    }
    if stated:
        return stated.pop() if len(stated) == 1 else 0
    if not role.endswith("worker"):
        return 0
    leads = [role.removesuffix("worker") + lead for lead in ("master", "chief")]
    return len({w.label for lead in leads if lead not in launching for w in roles.get(lead, ())})
