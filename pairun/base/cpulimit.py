"""CPU time limits for work in the main thread."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class CpuLimitError(Exception):
    """The work took more CPU time than its limit."""


class CpuBudget:
    """CPU time for several pieces of work together.

    Counts CPU time (setitimer(2), ``ITIMER_VIRTUAL``), so a busy machine stops nothing. Python
    checks between bytecodes, and `re` checks within a search. There is no limit in other threads.

    Args:
        limit_s: in seconds of CPU time.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._left_s = limit_s

    @contextlib.contextmanager
    def spend(self) -> Iterator[None]:
        """Take the CPU time of a piece of work from the budget.

        Raises:
            CpuLimitError: the budget is spent.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if self._left_s <= 0:
            self._stop()
        before = signal.signal(signal.SIGVTALRM, self._stop)
        # The signal repeats, because the work may catch an exception.
        signal.setitimer(signal.ITIMER_VIRTUAL, self._left_s, 1.0)
        try:
            yield
        finally:
            left_s, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
            self._left_s = min(left_s, self._left_s)

    def _stop(self, *_: object) -> None:
        self._left_s = 0.0
        raise CpuLimitError(f"more than {self.limit_s:g} s of CPU time")


def cpu_limit(limit_s: float) -> contextlib.AbstractContextManager[None]:
    """Stop one piece of work that exceeds a CPU time limit; see `CpuBudget`.

    Args:
        limit_s: in seconds of CPU time.

    Raises:
        CpuLimitError: the work exceeds the limit.
    """
    return CpuBudget(limit_s).spend()
