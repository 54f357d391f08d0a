"""Signals as bytes in a pipe, so that one poll waits for all events."""

from __future__ import annotations

import os
import signal
from typing import Self

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that stop a process of pairun."""

GRACE_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
"""The signals that stop PID 1 and start the grace time; it forwards SIGHUP to the command."""


def block_stop_signals() -> None:
    """Keep the stop signals pending until this process takes them.

    An earlier signal would end the process. For PID 1 of a container it would be lost (signal(7): a
    signal without a handler is not delivered to it, unless it is blocked).
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


class Signals:
    """Receives the process's stop signals and its children's ends, while it is installed.

    Args:
        resend: on `restore`, raise the stop signals that were not taken.
    """

    NUMBERS: tuple[signal.Signals, ...] = (signal.SIGCHLD, *STOP_SIGNALS)

    def __init__(self, *, resend: bool = True) -> None:
        self._resend = resend

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def install(self) -> None:
        """Install the handlers; pending signals are delivered now."""
        self.fd, self._in = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._in, False)
        self._old_fd = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        # The signal's number is in the pipe.
        self._old = {n: signal.signal(n, lambda *_: None) for n in self.NUMBERS}
        self._old_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, self.NUMBERS)

    def restore(self) -> None:
        """Restore the previous handlers."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.NUMBERS)
        unseen = self.take_stops() if self._resend else []
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        os.close(self.fd)
        os.close(self._in)
        for missed in unseen:
            # To this thread only: the signal would end another one.
            signal.raise_signal(missed)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._old_mask)

    def take(self) -> list[int]:
        """The numbers of the signals since the last call."""
        try:
            return list(os.read(self.fd, 4096))
        except BlockingIOError:
            return []

    def take_stops(self) -> list[signal.Signals]:
        """The stop signals since the last call."""
        return [signal.Signals(n) for n in self.take() if n in STOP_SIGNALS]


def fork_program() -> int:
    """Fork a child with default signal handling; returns what `os.fork` returns.

    Signals to the child wait until it no longer writes to our pipe; otherwise they would seem ours.
    """
    old = signal.pthread_sigmask(signal.SIG_BLOCK, Signals.NUMBERS)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for number in Signals.NUMBERS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return pid
