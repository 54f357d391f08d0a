"""The members of a job: its ranks, Pods or processes, each with the findings of its logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, of_class
from pairun.diagnose.progress import Progress
from pairun.diagnose.stacks import Stack
from pairun.diagnose.testimony import Testimony
from pairun.diagnose.times import SKEW_S, Moment, seconds_between
from pairun.diagnose.weighing import BY_CODE
from pairun.diagnose.writerlog import CHILD_FAILED, LOSSES, Finding

_NO_LOG = of_class(NONE, 0.3)._replace(headline="no log of it is known")

NO_OTHER_FAILURE = "no other log shows a failure"
"""The deciding fact if one member shows a cause and no other log shows anything."""

NO_OTHER_RANK = "no other rank's log shows a failure"
"""The same, if a launcher's log reports one."""

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


class Member(NamedTuple):
    """A rank, Pod or process of a job.

    Attributes:
        label: its name for people.
        rank: its number; None if unknown.
        host: where it ran; empty if unknown.
        launcher: whether it starts the ranks, and is not one of them.
        findings: of its logs, the deciding one first; empty if it has no known log.
    """

    label: str
    rank: int | None
    host: str
    launcher: bool
    findings: tuple[Finding, ...]

    @classmethod
    def unseen(cls, rank: int) -> Member:
        """A rank that others name, and that has no known log."""
        return cls(f"rank {rank}", rank, "", False, ())

    @classmethod
    def named(cls, said: Testimony, members: Sequence[Member]) -> Member:
        """The member that a report names; one without a known log if it is none of the members."""
        if said.rank is not None:
            mine = [m for m in members if m.rank == said.rank]
            return mine[0] if mine else cls.unseen(said.rank)
        mine = [m for m in members if m.label == said.name or m.label.endswith(f"-{said.name}")]
        return mine[0] if len(mine) == 1 else cls(said.name, None, "", False, ())

    @property
    def diagnosis(self) -> Diagnosis:
        """Why it failed, from its own logs."""
        return self.findings[0].diagnosis if self.findings else _NO_LOG

    @property
    def at(self) -> Moment | None:
        """When its failure was logged; for a silent log, when the log ends."""
        if not self.findings:
            return None
        return self.findings[0].at or (self.last if self.is_silent else None)

    @property
    def last(self) -> Moment | None:
        """When its logs end."""
        return max((f.last for f in self.findings if f.last is not None), default=None)

    @property
    def is_cause(self) -> bool:
        """Whether its logs show a failure that another member did not cause."""
        return bool(self.findings) and self.findings[0].is_cause

    @property
    def is_waiting(self) -> bool:
        """Whether it failed because it waited for, or lost, another member."""
        return bool(self.findings) and self.findings[0].is_waiting

    @property
    def is_healthy(self) -> bool:
        """Whether its own logs show no failure."""
        return self.diagnosis.is_clean

    @property
    def is_silent(self) -> bool:
        """Whether its logs show neither a failure nor a success."""
        return bool(self.findings) and all(f.is_silent for f in self.findings)

    @property
    def stack(self) -> Stack | None:
        """Where its main thread was, by a dump of its stacks."""
        return next((f.stack for f in self.findings if f.stack is not None), None)

    @property
    def progress(self) -> Progress:
        """How far it got."""
        return next((f.progress for f in self.findings if f.progress != Progress()), Progress())


def members_of(findings: Sequence[Finding]) -> list[Member]:
    """Group findings by writer; a rank's two streams belong to one member."""
    ranked = [f.writer for f in findings if f.writer.rank is not None or f.writer.has_ranks]
    ranks = {writer.rank if writer.rank is not None else writer.label for writer in ranked}
    groups: dict[tuple[int | None, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.writer.rank, finding.writer.label), []).append(finding)
    members = []
    for (rank, label), group in groups.items():
        group.sort(key=_decisive, reverse=True)
        writer = group[0].writer
        host = next((f.writer.host for f in group if f.writer.host), "")
        # next to logs of ranks, a log without a rank is the launcher's
        is_beside = rank is None and len(ranks) > 1 and not writer.has_ranks
        members.append(Member(label, rank, host, writer.launcher or is_beside, tuple(group)))
    return sorted(members, key=lambda m: (m.rank is None, m.rank or 0, m.label))


def _decisive(finding: Finding) -> tuple[bool, bool, bool, float]:
    diagnosis = finding.diagnosis
    return finding.is_cause, finding.is_waiting, not diagnosis.is_clean, diagnosis.confidence


def against_others(first: Member, members: Sequence[Member]) -> str:
    """Why a member with a cause is the first: what the other members' logs show.

    Args:
        first: the only member with a cause that another rank's end does not explain.
        members: of the job.
    """
    others = [m for m in members if m is not first]
    ranks = [m for m in others if not m.launcher]
    failed = [m for m in ranks if not m.is_healthy]
    if not failed:
        is_reported = any(not m.is_healthy for m in others)
        return NO_OTHER_RANK if is_reported else NO_OTHER_FAILURE
    reported = reports_of(failed)
    if not reported:
        return "no other log shows a cause"
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
    ranks = [int(each[5:]) for each in labels if each.startswith("rank ") and each[5:].isdigit()]
    if len(ranks) == len(labels):
        return f"{'rank' if len(ranks) == 1 else 'ranks'} {_ranges(ranks)}"
    if len(labels) <= 4:
        return ", ".join(labels)
    return f"{', '.join(labels[:3])} and {len(labels) - 3} more"


def _ranges(numbers: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def delay(first: Member, then: Member) -> float | None:
    """Seconds from one member's failure to another's, by their clocks; None if unknown."""
    if first.at is None or then.at is None:
        return None
    return seconds_between(first.at, then.at)


def earliest_of(members: Sequence[Member]) -> tuple[Member | None, list[Member]]:
    """The member that failed first, and all that may have; None unless the times of all are known.

    The clocks of two hosts may differ by `SKEW_S`.
    """
    if any(m.at is None for m in members):
        return None, list(members)
    first = members[0]
    for member in members[1:]:
        if (delay(first, member) or 0) < 0:
            first = member
    return first, [
        m
        for m in members
        if m is first or (delay(first, m) or 0) <= (0 if m.host == first.host else SKEW_S)
    ]
