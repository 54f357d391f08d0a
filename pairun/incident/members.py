"""The members of a job: its ranks, Pods or processes, each with the findings of its logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classes import CLASSES, NONE
from pairun.diagnose.diagnosis import Diagnosis
from pairun.incident.findings import Finding
from pairun.incident.progress import Progress
from pairun.incident.stacks import Stack
from pairun.incident.testimony import Testimony
from pairun.incident.times import Moment

_NO_LOG = Diagnosis(
    NONE, CLASSES[NONE].fault, None, 0.3, "no log of it is known", "", (), {}, (), ""
)  # fmt: skip


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
        mine = mine or [m for m in members if m.host == said.name and not m.launcher]
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
        return self.diagnosis.klass == NONE

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


def _decisive(finding: Finding) -> tuple[bool, bool, float]:
    return finding.is_cause, finding.is_waiting, finding.diagnosis.confidence
