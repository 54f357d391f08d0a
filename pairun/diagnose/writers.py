"""Finds who wrote a log: rank, host and Pod, from file names, prefixes or the text."""

from __future__ import annotations

import os
import re
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
    host = host_in(path, log)
    name = _STREAMS.sub("", _STREAMS.sub("", os.path.basename(path)))
    inside = own_rank(log)
    for pattern in _RANK_IN_NAME:
        match = pattern.search(name) or pattern.search(os.path.basename(path))
        if match and not _is_pid(match["rank"], log):
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
    is_launcher = _LAUNCHER.search(name) is not None or _OF_SCHEDULER.match(log.data) is not None
    if not is_launcher and (match := _INSTANCE.search(name)):
        if _is_pid(match["index"], log):
            return Writer(None, name, host or match["role"])
        return Writer.of_pod(name, host or match["label"])
    if not is_launcher and numbered is not None:
        return Writer(numbered, f"rank {numbered}", host)
    return Writer(None, name or os.path.basename(path), host, is_launcher)


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
        seen = {match[1] for match in pattern.finditer(naming)}
        if len(seen) == 1:
            is_glued = is_part and pattern is _PREFIX and len(pattern.findall(naming)) < 2
            return None if is_glued else int(seen.pop())
        if seen:
            return None
    return None


def host_in(path: str, log: Log) -> str:
    """The machine that a log or its path names; empty if neither does.

    Args:
        path: the file, relative to the folder that the user named.
        log: its contents.
    """
    if match := _OWN_HOST.search(log.data[:_HEAD_BYTES]):
        return (match[1] or match[2]).decode("ascii", "replace")
    for part in reversed(path.split("/")):
        if match_ := _HOST.search(part):
            return str(match_["host"]).rstrip(".-")
    return ""
