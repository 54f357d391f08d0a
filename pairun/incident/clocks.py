"""The clocks of a job's hosts: which of two events came first.

Ranks that train together reach a step at nearly the same time. The median time difference of
their common steps is therefore the difference of the hosts' clocks, wrong time zones included.
"""

from __future__ import annotations

from collections.abc import Sequence

from pairun.incident.members import Member
from pairun.incident.times import seconds_between

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
