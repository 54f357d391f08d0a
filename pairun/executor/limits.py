"""The time limits of one task, of each attempt, and of all exit handlers.

The grace time has four limits. A stop signal cancels work with a quarter of it between TERM and
KILL. After four fifths all handlers have ended. Each handler gets an equal share of the time that
remains when it starts. A fifth of a share (1 s at most) is reserved to stop the handler.
"""

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


HANDLER_DEADLINE_S = 300.0
"""The limit of an exit handler without a deadline and a grace time, in seconds."""

GRACE_SHARE = 0.8
"""The part of the grace time in which exit handlers may run."""


class HandlerTime:
    """The time of all exit handlers together.

    Args:
        grace_s: seconds between the platform's TERM and KILL.

    Attributes:
        waiting: number of handlers that have not ended, including the running one.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._end: float | None = None
        self.waiting = 1

    @property
    def cancel_wait_s(self) -> float:
        """Seconds between TERM and KILL for work that a stop signal cancels."""
        return min(TERM_WAIT_S, self._grace_s / 4)

    def stop_at_grace(self) -> None:
        """Start the grace time after a stop signal."""
        self.limit(GRACE_SHARE * self._grace_s)

    def limit(self, seconds: float) -> None:
        """End all handlers within so many seconds."""
        end = time.monotonic() + seconds
        self._end = end if self._end is None else min(end, self._end)

    def share_of(self, handler: Task) -> float | None:
        """The seconds for the next handler; None if only its own deadline limits it."""
        return None if self._end is None and handler.deadline_s is not None else self.share_s()

    def share_s(self) -> float:
        """One share of the remaining time, in seconds."""
        if self._end is None:
            return HANDLER_DEADLINE_S
        return max(0.0, self._end - time.monotonic()) / self.waiting
