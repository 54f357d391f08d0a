"""The time limits of one task and of each attempt."""

from __future__ import annotations

import time

from pairun.module import format_duration
from pairun.plan import Task

TERM_WAIT_S = 5.0
"""Seconds between TERM and KILL for an attempt that is stopped."""


class Limits:
    """The time limits of one task, with all its attempts and waits.

    Args:
        task: its ``timeout`` and ``deadline`` apply.
        handler: whether the task is an exit handler.
        share_s: for an exit handler: its share of the time of all handlers.

    Attributes:
        started: monotonic time at which the task started.
        deadline: monotonic time at which it must have ended, or None.
        kill_after_s: seconds between TERM and KILL when an attempt reaches its limit.
    """

    def __init__(self, task: Task, *, handler: bool = False, share_s: float | None = None) -> None:
        self._task = task
        self.handler = handler
        self.kill_after_s = TERM_WAIT_S
        self.started = time.monotonic()
        self.deadline: float | None = None
        self._short_since: float | None = None
        for seconds in (task.deadline_s, share_s):
            if seconds is not None:
                self._end_at(self.started + seconds)

    def _end_at(self, end: float) -> None:
        self.deadline = end if self.deadline is None else min(end, self.deadline)

    @property
    def whole(self) -> str:
        """The task's total time, for people."""
        return format_duration(max(0.0, (self.deadline or self.started) - self.started))

    def restart(self) -> None:
        """Restart the task's deadline now."""
        if self._task.deadline_s is not None and not self.handler:
            self.deadline = time.monotonic() + self._task.deadline_s

    def shorten(self, seconds: float) -> None:
        """End the task within so many seconds."""
        self._end_at(time.monotonic() + seconds)

    def retry_until(self, within_s: float) -> float:
        """The monotonic time until which to retry a failure that either ends soon or is permanent.

        Args:
            within_s: seconds since the first such failure of the task.
        """
        if self._short_since is None:
            self._short_since = time.monotonic()
        return self._short_since + within_s

    def of_attempt(self, began: float) -> float | None:
        """The monotonic time at which to stop an attempt that began then, or None."""
        timeout_s = self._task.timeout_s
        limits = (self.deadline, None if timeout_s is None else began + timeout_s)
        limit = min((x for x in limits if x is not None), default=None)
        if self.handler and limit is not None:
            # A handler's share includes the time to stop it.
            self.kill_after_s = min(1.0, 0.2 * max(0.0, limit - time.monotonic()))
            limit -= self.kill_after_s
        return limit
