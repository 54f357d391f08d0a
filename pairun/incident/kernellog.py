"""Reads what a node's kernel reports about processes: their numbers, cgroups and times.

The time since boot becomes a time of day if the log shows when the clock was set. Sources: ``mm/oom_kill.c``, ``kernel/hung_task.c``, NVIDIA's Xid messages,
the kubelet's cgroup names, Slurm's cgroup plugin.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pairun.diagnose.diagnosis import Diagnosis, of_line, of_reported
from pairun.diagnose.facts.kernel import KERNEL
from pairun.diagnose.lines import Log, parse
from pairun.incident.times import Moment, moment_near

_WORDS = (b"oom-kill:", b"Killed process", b"Xid", b"blocked for more than", b"Memory failure:")
_LINE = re.compile(
    rb"^[^\n]{0,200}(?:oom-kill:|Killed process \d|NVRM: Xid|blocked for more than|Memory failure:)[^\n]*",
    re.MULTILINE,
)
_PID = re.compile(
    rb"\bpid=(\d{1,8})\b|Killed process (\d{1,8}) |INFO: task \S{1,40}:(\d{1,8}) |Killing \S{1,40}:(\d{1,8}) "
)
_POD = re.compile(rb"\bpod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})\b")
_TASK = re.compile(rb"/step_\d+/(?:user/)?task_(\d{1,6})\b")
_UPTIME = re.compile(rb"(?m)^[^\n\[]{0,60}\[ *(\d{1,9}\.\d{1,6})\]")
_CLOCK_SET = re.compile(
    rb"\[ *(?P<up>\d{1,9}\.\d{1,6})\] [^\n]{0,80}(?:setting system clock to [^\n(]{10,40}\((?P<set>\d{9,11})\)"
    rb"|audit\((?P<audit>\d{9,11})\.\d{3}:\d+\))"
)
_RANKS_PID = re.compile(rb"\blocal_rank: (?P<rank>\d{1,6}) \(pid: (?P<pid>\d{1,8})\)")
_OWN_PID = re.compile(
    rb"(?m)^\S{1,64}:(\d{1,8}):\d{1,8} \[\d+\] NCCL |\b[Pp][Ii][Dd][ =:]{1,2}(\d{2,8})\b"
)

_HEAD_BYTES = 1 << 16
_MAX_REPORTS = 64


class KernelReport(NamedTuple):
    """What the kernel reports about one process.

    Attributes:
        pid: its number on the node; None if the line has none.
        pod: the uid of its Pod, by its cgroup; may be empty.
        task: Slurm's number of the task, by its cgroup; None if unknown.
        diagnosis: the fact.
        at: when; None if unknown.
    """

    pid: int | None
    pod: str
    task: int | None
    diagnosis: Diagnosis
    at: Moment | None


def kernel_reports(log: Log) -> tuple[KernelReport, ...]:
    """What a kernel's log reports about processes; each process once."""
    if not any(word in log.data for word in _WORDS):
        return ()
    booted = _booted(log.data)
    reports: dict[object, KernelReport] = {}
    for match in _LINE.finditer(log.data):
        raw = match[0]
        line = parse(match.start(), raw)
        fact = max(KERNEL.read(line, log) or (), key=lambda f: f.weight, default=None)
        pids = [int(each) for groups in _PID.findall(raw) for each in groups if each]
        if fact is None or len(reports) >= _MAX_REPORTS:
            continue
        pod, task = _POD.search(raw), _TASK.search(raw)
        uptime = _UPTIME.match(raw)
        at = moment_near(log.data, match.start())
        if uptime and booted is not None:
            at = Moment(booted + float(uptime[1]), "zone")
        pid = pids[0] if pids else None
        reports.setdefault(
            pid if pid is not None else match.start(),
            KernelReport(
                pid,
                pod[1].decode().replace("_", "-") if pod else "",
                int(task[1]) if task else None,
                of_reported(fact, of_line(log, line)),
                at,
            ),
        )
    return tuple(reports.values())


def pids_in(log: Log, rank: int | None) -> tuple[tuple[int, int], ...]:
    """The process numbers of ranks that a log prints: the number and the rank.

    Args:
        log: of a rank, or of a launcher.
        rank: of its writer; None for a launcher.
    """
    if rank is None:
        if b"local_rank: " not in log.data:
            return ()
        return tuple((int(m["pid"]), int(m["rank"])) for m in _RANKS_PID.finditer(log.data))
    own = {each for pair in _OWN_PID.findall(log.data[:_HEAD_BYTES]) for each in pair if each}
    return ((int(own.pop()), rank),) if len(own) == 1 else ()


def _booted(data: bytes) -> float | None:
    """When the node booted, in seconds since the epoch; None if the log does not show it."""
    match = _CLOCK_SET.search(data)
    if match is None:
        return None
    return float(match["set"] or match["audit"]) - float(match["up"])
