"""Finds the member that the others lost or waited for, if none shows a cause.

It has no log, its log ends without a reason, or it came when the others had stopped waiting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classes import UNKNOWN
from pairun.diagnose.facts.fact import KUBERNETES
from pairun.incident.clocks import Clocks
from pairun.incident.findings import CHILD_FAILED, Finding
from pairun.incident.members import Member
from pairun.incident.otherlogs import named, reports_of

_TIMEOUTS = frozenset(("nccl_timeout", "rendezvous_timeout"))
_NETWORK = frozenset(("network_unreachable", "nccl_system_error"))
"""Classes of connections that fail: the network's failure, or the end of the rank at the other end."""

_MIN_OTHERS = 2
"""How many ranks must go on for the one that does not to be the one that failed."""

_LATE_S = 5.0
"""How much later than all others a rank must fail to be the one that they waited for."""


_GOODBYE = re.compile(
    r"(?i)\b(?:bye|good-?bye|leaving|exit(?:s|ing|ed)?|finish(?:ed|ing)|complete[d]?|done|shut(?:ting)? ?down|stop(?:s|ping|ped)"
    r"|exhausted|limit reached|no more|nothing (?:left|more))\b"
)
"""How programs say that they end."""


class Absent(NamedTuple):
    """The member that the others lost or waited for.

    Attributes:
        member: the member; the lowest rank of a lost host.
        words: the fact for people.
    """

    member: Member
    words: str


def without_log(members: Sequence[Member]) -> Absent | None:
    """The one rank that has no log: by the number of expected ranks, or by a gap in the ranks.

    Args:
        members: of the job.
    """
    expected = {f.expected_ranks for m in members for f in m.findings} - {None}
    ranks = [m for m in members if m.rank is not None and not m.launcher]
    known = {m.rank for m in ranks if m.rank is not None}
    if not known:
        return None
    if len(expected) == 1:
        absent = set(range(expected.pop() or 0)) - known
        what = "never joined the others, and has no log"
    elif len(ranks) > 1 and all(m.is_waiting for m in ranks):
        absent = set(range(max(known) + 1)) - known
        what = f"has no log, and all others report {reports_of(ranks)}"
    else:
        return None
    if len(absent) != 1:
        return None
    rank = absent.pop()
    return Absent(Member.unseen(rank), f"rank {rank} {what}")


def ended_quietly(members: Sequence[Member]) -> Absent | None:
    """The one rank, or the ranks of one host, whose logs end without a reason while others wait.

    Args:
        members: of the job.
    """
    ranks = [m for m in members if not m.launcher]
    quiet = [m for m in ranks if is_quiet(m)]
    waiting = [m for m in ranks if is_loss(m) and not is_quiet(m)]
    if not quiet or not waiting:
        return None
    missing = "an error" if all(m.is_silent for m in quiet) else "a reason"
    end = f"without {missing} while others report {reports_of(waiting)}"
    if len(quiet) == 1 and all(f.diagnosis.source == KUBERNETES for f in quiet[0].findings):
        # its log is not known, only its Pod
        words = f"the Pod of {quiet[0].label} failed while others report {reports_of(waiting)}"
        return Absent(quiet[0], words)
    if len(quiet) == 1:
        return Absent(quiet[0], f"the log of {quiet[0].label} ends {end}")
    hosts = {m.host for m in quiet}
    if len(hosts) == 1 and hosts.isdisjoint({"", *(m.host for m in waiting)}):
        logs = f"the logs of {named([m.label for m in quiet])}, all on {hosts.pop()},"
        return Absent(quiet[0], f"{logs} end {end}")
    return None


def fell_silent(members: Sequence[Member]) -> Absent | None:
    """The one rank that writes nothing more after a failure in a shared log that names no rank.

    Args:
        members: of the job.
    """
    nameless = [f for m in members if m.launcher for f in m.findings if f.is_cause]
    failures = [(f.file, e.line) for f in nameless for e in f.diagnosis.evidence[:1] if e.line]
    if len(failures) != 1:
        return None
    file, line = failures[0]
    ends = {
        member.label: (member, finding.lines[1])
        for member in members
        for finding in member.findings
        if finding.file == file and not member.launcher
    }
    silent = [member for member, end in ends.values() if end < line]
    if len(silent) != 1 or len(ends) < _MIN_OTHERS + 1:
        return None
    words = f"{silent[0].label} writes nothing after this failure, all others do"
    return Absent(silent[0], words)


def left_early(members: Sequence[Member]) -> Absent | None:
    """The one rank that ended by itself, as its log says, while all others waited for it.

    Args:
        members: of the job.
    """
    ranks = [m for m in members if not m.launcher]
    quiet = [m for m in ranks if is_quiet(m) or (m.is_healthy and m.findings)]
    waiting = [m for m in ranks if m.is_waiting and m not in quiet]
    left = [m for m in quiet if m.is_healthy and any(_says_goodbye(f) for f in m.findings)]
    if len(left) != 1 or len(waiting) < max(2, len(quiet)):
        return None
    return Absent(
        left[0], f"{left[0].label} ended by itself while others report {reports_of(waiting)}"
    )


def _says_goodbye(finding: Finding) -> bool:
    """Whether a log ends with success, or its last line says that the program ends."""
    last = finding.tail[-1].text if finding.tail else ""
    return finding.finished or _GOODBYE.search(last) is not None


def is_loss(member: Member) -> bool:
    """Whether a member waited for, or lost, another one, or reports what such a loss looks like."""
    return member.is_waiting or member.diagnosis.klass in _NETWORK


def is_quiet(member: Member) -> bool:
    """Whether a member's logs show no reason for its end: at most its exit code, or a cut traceback."""
    return member.is_silent or member.diagnosis.klass in (UNKNOWN, CHILD_FAILED)


def came_late(waiting: Sequence[Member], clocks: Clocks) -> Member | None:
    """The one rank that failed when all others had stopped waiting.

    Args:
        waiting: the members that only report timeouts or closed connections.
        clocks: compares their times.
    """
    lost = [m for m in waiting if m.diagnosis.klass == "peer_lost"]
    if len(waiting) < 3:
        return None
    if len(lost) == 1:
        delays = [clocks.delay(m, lost[0]) for m in waiting if m is not lost[0]]
        return lost[0] if all(d is None or d >= 0 for d in delays) else None
    if any(m.diagnosis.klass not in _TIMEOUTS for m in waiting):
        return None
    for member in waiting:
        delays = [clocks.delay(m, member) for m in waiting if m is not member]
        if all(d is not None and d > _LATE_S for d in delays):
            return member
    return None
