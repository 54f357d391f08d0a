"""CPU time limits for work in the main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


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
        self._working = False

    def spend(self, work: Callable[[], _Result]) -> _Result:
        """Do a piece of work, and take its CPU time from the budget.

        Raises:
            CpuLimitError: the budget is spent.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        if self._left_s <= 0:
            self._stop()
        before = signal.signal(signal.SIGVTALRM, self._stop)
        try:
            # The signal repeats, because the work may catch an exception.
            signal.setitimer(signal.ITIMER_VIRTUAL, self._left_s, 1.0)
            self._working = True
            return work()
        finally:
            # No signal is handled between the end of the work and this assignment (eval_breaker
            # in CPython's ceval.c), so none can raise after the work.
            self._working = False
            left_s, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
            self._left_s = min(left_s, self._left_s)

    def _stop(self, *signalled: object) -> None:
        self._left_s = 0.0
        if self._working or not signalled:
            raise CpuLimitError(f"more than {self.limit_s:g} s of CPU time")
