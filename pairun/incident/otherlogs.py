"""Describes what the logs of the other ranks show, as the reason for the choice of the first one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.weighing import BY_CODE
from pairun.incident.findings import CHILD_FAILED
from pairun.incident.members import Member

NO_OTHER_FAILURE = "no other log shows a failure"
"""The deciding fact if one member shows a cause and no other log shows anything."""

NO_OTHER_RANK = "no other rank's log shows a failure"
"""The same, if a launcher's log reports one."""

LOSSES = frozenset(("nccl_timeout", "peer_lost", "rendezvous_timeout"))
"""The classes of ranks that waited for, or lost, another one."""

_NO_OTHER_CAUSE = "no other log shows a cause"
_EXIT_CODES = ("exit codes",)
_NOUNS = {
    **dict.fromkeys(LOSSES, ("timeouts", "closed connections")),
    CHILD_FAILED: _EXIT_CODES,
    "native_abort": ("aborts",),
    "nccl_system_error": ("network errors",),
    "network_unreachable": ("network errors",),
    "terminated_sigterm": ("stop signals",),
}
"""What a log of a class reports."""


def against_others(first: Member, members: Sequence[Member]) -> str:
    """Why a member with a cause is the first: what the other members' logs show.

    Args:
        first: the only member with a cause that another rank's end does not explain.
        members: of the job.
    """
    others = [m for m in members if m is not first]
    ranks = [m for m in others if not m.launcher]
    failed = [m for m in ranks if m.diagnosis.klass != NONE]
    if not failed:
        is_reported = any(m.diagnosis.klass != NONE for m in others)
        return NO_OTHER_RANK if is_reported else NO_OTHER_FAILURE
    reported = reports_of(failed)
    if not reported:
        return _NO_OTHER_CAUSE
    verb = "reports" if len(failed) == 1 else "report"
    if len(failed) < len(ranks):
        return f"{named([m.label for m in failed])} only {verb} {reported}"
    return f"the other rank{'s' if len(failed) > 1 else ''} only {verb} {reported}"


def reports_of(members: Iterable[Member]) -> str:
    """What members without a cause report, in words; empty if the logs of one are unclear."""
    nouns: dict[str, None] = {}
    for member in members:
        diagnosis = member.diagnosis
        by_code = diagnosis.source == BY_CODE
        if diagnosis.klass == UNKNOWN or not (by_code or diagnosis.klass in _NOUNS):
            return ""
        nouns.update(dict.fromkeys(_EXIT_CODES if by_code else _NOUNS[diagnosis.klass]))
    *most, last = nouns
    return f"{', '.join(most)} or {last}" if most else last


def named(labels: Sequence[str]) -> str:
    """Labels for a sentence: ranks as ranges, of others the first few."""
    ranks = [
        int(label[5:]) for label in labels if label.startswith("rank ") and label[5:].isdigit()
    ]
    if len(ranks) == len(labels):
        word = "rank" if len(ranks) == 1 else "ranks"
        return f"{word} {_ranges(ranks)}"
    if len(labels) <= 4:
        return ", ".join(labels)
    return f"{', '.join(labels[:3])} and {len(labels) - 3} more"


def _ranges(numbers: Sequence[int]) -> str:
    ordered = sorted(numbers)
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
