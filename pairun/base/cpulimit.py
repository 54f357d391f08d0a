"""A limit of CPU time for one piece of work in the main thread."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class CpuLimitError(Exception):
    """The work took more CPU time than its limit."""


@contextlib.contextmanager
def cpu_limit(limit_s: float) -> Iterator[None]:
    """Stop work that runs away.

    CPU time counts (setitimer(2), ``ITIMER_VIRTUAL``), so a busy machine stops nothing. Python
    checks between bytecodes, and `re` checks within a search. In other threads there is no limit.

    Args:
        limit_s: in seconds of CPU time.

    Raises:
        CpuLimitError: the limit is reached.
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
