"""Decides when a 401 or 403 of an API server is permanent."""

from __future__ import annotations

import math
import mmap
import time

from pairun.base.retryafter import is_worth_a_retry

LOADING_S = 60.0
"""How long refusals must last after a failure until they are permanent."""


class Refusals:
    """What this process and its forks know about the failures of an API server.

    A server that has restarted refuses permitted requests until it has loaded the rights. Its 403
    equals a true one, and other requests succeed in between; on an idle machine this lasts for up to
    2.4 s. So a refusal is permanent at once only if no connection failed before, and no 5xx came.
    After a failure it is temporary until `LOADING_S` after the first refusal.

    The memory is shared with forks, because each attempt of a task is a forked process.
    """

    def __init__(self) -> None:
        # The monotonic time until which a refusal is temporary: 0 without a failure, infinite after
        # a failure until the first refusal.
        self._until = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")

    def failed(self) -> None:
        """Record that a connection failed or broke, or that there was no response in time."""
        self._until[0] = math.inf

    def may_pass(self, status: int) -> bool:
        """Record a response's status; return whether a retry may get another one."""
        if status >= 500:
            self.failed()
        if status not in (401, 403):
            return is_worth_a_retry(status)
        now = time.monotonic()
        if self._until[0] == math.inf:
            self._until[0] = now + LOADING_S
        return now < self._until[0]


REFUSALS = Refusals()
"""What this process and its forks know about the API server of their Pod's cluster."""
