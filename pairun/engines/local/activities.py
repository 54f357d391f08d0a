"""What the instances of a run do now, for the view."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from pairun.engines.local.instance import LocalInstance, PhaseName
from pairun.report.live.instancenow import InstanceNow, TaskLimits
from pairun.report.live.view import Standing, clean, is_progress, is_skipped_by_condition
from pairun.volume.journal import JournalTail

RoleLimits = Mapping[str, Mapping[str, TaskLimits]]
"""The limits of the tasks of each role."""


_COMMAND_STARTS = b"[pairun] starting the command: "
"""What PID 1 says before the command's first line."""


def journal_of(instance: LocalInstance) -> str:
    """The path of an instance's journal."""
    return os.path.join(instance.volume, "logs", instance.pod_uid, "journal.jsonl")


class Activities:
    """Follows the journals of a run's instances.

    Args:
        limits: the time limits of their tasks.
    """

    def __init__(self, instances: Sequence[LocalInstance], limits: RoleLimits) -> None:
        self._instances = instances
        self._began = time.monotonic()
        self._now = {i.label: InstanceNow(i.label, limits.get(i.role, {})) for i in instances}
        self._tails = {i.label: JournalTail(journal_of(i)) for i in instances}
        self._in_command: set[str] = set()

    def begin(self, label: str, phase: PhaseName) -> None:
        """Record that a phase of an instance starts."""
        self._follow(label)
        self._now[label].begin(phase)
        self._in_command.discard(label)

    def standing(self) -> Standing:
        """The state of the run; reads new journal records."""
        running = [i for i in self._instances if i.code is None]
        for each in running:
            self._follow(each.label)
            self._now[each.label].stopping = each.stopped
        failed = sum(bool(i.code) and not i.stopped for i in self._instances)
        return Standing(
            running=[self._now[i.label].activity() for i in running],
            succeeded=sum(i.code == 0 for i in self._instances),
            failed=failed,
            seconds=time.monotonic() - self._began,
            total=len(self._instances),
        )

    def repeats(self, label: str, line: bytes) -> bool:
        """Whether a live view can omit this line.

        The view shows a task's progress itself, and the recap counts skipped tasks. What comes
        after the start of the command is the user's: the order of the lines decides, for the
        journal may be ahead of them or behind.
        """
        if line.startswith(_COMMAND_STARTS):
            self._in_command.add(label)
        if label in self._in_command or not line.startswith((b"progress ", b"skipped ")):
            return False
        text = clean(line)
        return is_progress(text) or is_skipped_by_condition(text)

    def close(self) -> None:
        """Close the journals."""
        for tail in self._tails.values():
            tail.close()

    def _follow(self, label: str) -> None:
        for record in self._tails[label].read():
            self._now[label].take(record)
