"""A CPU time limit for one piece of work in the main thread."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class CpuLimitError(Exception):
    """The work took more CPU time than its limit."""


@contextlib.contextmanager
def cpu_limit(limit_s: float) -> Iterator[None]:
    """Stop work that exceeds a CPU time limit.

    Counts CPU time (setitimer(2), ``ITIMER_VIRTUAL``), so a busy machine stops nothing. Python
    checks between bytecodes, and `re` checks within a search. There is no limit in other threads.

    Args:
        limit_s: in seconds of CPU time.

    Raises:
        CpuLimitError: the work exceeds the limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise CpuLimitError(f"more than {limit_s:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
