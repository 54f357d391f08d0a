"""The time of exit handlers.

The grace time has four limits. A stop signal cancels work with a quarter of it between TERM and
KILL. After four fifths all handlers have ended. Each handler gets an equal share of the time that
remains when it starts. A fifth of a share (1 s at most) is reserved to stop the handler.
"""

from __future__ import annotations

import time

from pairun.executor.limits import TERM_WAIT_S
from pairun.plan import Task

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
