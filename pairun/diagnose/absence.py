"""Finds the member that the others lost or waited for, if none shows a cause.

It has no log, its log ends without a reason, or it came when the others had stopped waiting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classes import UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.members import Clocks, Member, named, reports_of
from pairun.diagnose.signals import KUBERNETES
from pairun.diagnose.writerlog import CHILD_FAILED, Finding

_TIMEOUTS = frozenset(("nccl_timeout", "rendezvous_timeout"))
_NETWORK = frozenset(("network_unreachable", "nccl_system_error"))
"""Classes of connections that fail: the network's failure, or the end of the rank at the other end."""

_LATE_S = 5.0
"""How much later than all others a rank must fail to be the one that they waited for."""


_GOODBYE = re.compile(
    r"(?i)\b(?:bye|good-?bye|leaving|exit(?:s|ing|ed)?|finish(?:ed|ing)|complete[d]?|done|shut(?:ting)? ?down|stop(?:s|ping|ped)"
    r"|exhausted|limit reached|no more|nothing (?:left|more))\b"
)
"""How programs say that they end."""


class Choice(NamedTuple):
    """The member that failed first.

    Attributes:
        first: the member; None if none failed first.
        why: its diagnosis, or the job's, if its own log has none.
        decided_by: the fact that names it, for people.
    """

    first: Member | None = None
    why: Diagnosis | None = None
    decided_by: str = ""


def without_log(members: Sequence[Member]) -> Choice | None:
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
    return Choice(Member.unseen(rank), None, f"rank {rank} {what}")


def ended_quietly(members: Sequence[Member]) -> Choice | None:
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
        return Choice(quiet[0], None, words)
    if len(quiet) == 1:
        return Choice(quiet[0], None, f"the log of {quiet[0].label} ends {end}")
    hosts = {m.host for m in quiet}
    if len(hosts) == 1 and hosts.isdisjoint({"", *(m.host for m in waiting)}):
        logs = f"the logs of {named([m.label for m in quiet])}, all on {hosts.pop()},"
        return Choice(quiet[0], None, f"{logs} end {end}")
    return None


def left_early(members: Sequence[Member]) -> Choice | None:
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
    return Choice(
        left[0], None, f"{left[0].label} ended by itself while others report {reports_of(waiting)}"
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
    is_unclear = member.diagnosis.klass in (UNKNOWN, CHILD_FAILED) and not member.is_healthy
    return member.is_silent or is_unclear


def came_late(waiting: Sequence[Member], clocks: Clocks) -> Choice | None:
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
        return _late(lost[0]) if all(d is None or d >= 0 for d in delays) else None
    if any(m.diagnosis.klass not in _TIMEOUTS for m in waiting):
        return None
    for member in waiting:
        delays = [clocks.delay(m, member) for m in waiting if m is not member]
        if all(d is not None and d > _LATE_S for d in delays):
            return _late(member)
    return None


def _late(member: Member) -> Choice:
    return Choice(member, None, f"{member.label} came when the others had stopped waiting")
