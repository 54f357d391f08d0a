"""The members of a job: its ranks, Pods or processes, each with the findings of its logs; their clocks.

Ranks that train together reach a step at nearly the same time. The median time difference of
their common steps is therefore the difference of the hosts' clocks, wrong time zones included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, of_class
from pairun.diagnose.progress import Progress
from pairun.diagnose.stacks import Stack
from pairun.diagnose.testimony import Testimony
from pairun.diagnose.times import Moment, seconds_between
from pairun.diagnose.weighing import BY_CODE
from pairun.diagnose.writerlog import CHILD_FAILED, Finding

_NO_LOG = of_class(NONE, 0.3)._replace(headline="no log of it is known")


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
        ends = [f.last for f in self.findings if f.last is not None]
        return max(ends, default=None)

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

    @property
    def steps(self) -> dict[int, Moment]:
        """The times of its last steps."""
        return next((f.steps for f in self.findings if f.steps), {})


def members_of(findings: Sequence[Finding]) -> list[Member]:
    """Group findings by writer; a rank's two streams belong to one member."""
    ranked = [f.writer for f in findings if f.writer.rank is not None or f.writer.has_ranks]
    ranks = {writer.rank if writer.rank is not None else writer.label for writer in ranked}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        writer = finding.writer
        groups.setdefault((writer.rank, writer.label), []).append(finding)
    members = []
    for group in groups.values():
        group.sort(key=_decisive, reverse=True)
        writer = group[0].writer
        host = next((f.writer.host for f in group if f.writer.host), "")
        # next to logs of ranks, a log without a rank is the launcher's
        is_beside = writer.rank is None and len(ranks) > 1 and not writer.has_ranks
        launcher = writer.launcher or is_beside
        members.append(Member(writer.label, writer.rank, host, launcher, tuple(group)))
    return sorted(members, key=lambda m: (m.rank is None, m.rank or 0, m.label))


def _decisive(finding: Finding) -> tuple[bool, bool, bool, float]:
    diagnosis = finding.diagnosis
    return finding.is_cause, finding.is_waiting, not diagnosis.is_clean, diagnosis.confidence


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
    failed = [m for m in ranks if not m.is_healthy]
    if not failed:
        is_reported = any(not m.is_healthy for m in others)
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


_MIN_STEPS = 3
_RESIDUE_S = 0.5


class Clocks:
    """Compares the times of members.

    Args:
        members: of the job.
        skew_s: assumed clock difference of two hosts without common steps, in seconds.
    """

    def __init__(self, members: Sequence[Member], skew_s: float) -> None:
        self._skew_s = skew_s
        self._offsets: dict[str, float] = {}
        self._reference = max(
            (m for m in members if m.steps), key=lambda m: len(m.steps), default=None
        )
        for member in members:
            offset = self._measured(member)
            if offset is not None:
                self._offsets[member.label] = offset

    def delay(self, first: Member, then: Member) -> float | None:
        """Seconds from one member's failure to another's; None if unknown."""
        if first.at is None or then.at is None:
            return None
        correction = 0.0
        if first.label in self._offsets and then.label in self._offsets:
            correction = self._offsets[then.label] - self._offsets[first.label]
            if first.host == then.host and first.host:
                correction = 0.0
        return seconds_between(first.at, then.at) - correction

    def earliest(self, members: Sequence[Member]) -> Member | None:
        """The member that failed first; None unless the times of all are known."""
        if not members or any(m.at is None for m in members):
            return None
        first = members[0]
        for member in members[1:]:
            delay = self.delay(first, member)
            if delay is not None and delay < 0:
                first = member
        return first

    def unordered_with(self, first: Member, members: Sequence[Member]) -> list[Member]:
        """The members that may have failed before or together with another one, itself included."""
        return [m for m in members if m is first or not self._is_after(first, m)]

    def is_ordered(self, first: Member, members: Sequence[Member]) -> bool:
        """Whether the members' clocks compare exactly: all run on one host."""
        return len({m.host for m in members}) == 1 or all(m.label in self._offsets for m in members)

    def _is_after(self, first: Member, then: Member) -> bool:
        delay = self.delay(first, then)
        return delay is not None and delay > self._bound(first, then)

    def _bound(self, a: Member, b: Member) -> float:
        if a.host == b.host:
            return 0.0
        if a.label in self._offsets and b.label in self._offsets:
            return _RESIDUE_S
        return self._skew_s

    def _measured(self, member: Member) -> float | None:
        """How far a member's clock is ahead of the reference clock, in seconds."""
        reference = self._reference
        if reference is None:
            return None
        common = member.steps.keys() & reference.steps.keys()
        if len(common) < _MIN_STEPS:
            return None
        differences = sorted(
            seconds_between(reference.steps[step], member.steps[step]) for step in common
        )
        return differences[len(differences) // 2]
