"""Signals as bytes in a pipe, so that one selector waits for everything."""

from __future__ import annotations

import os
import signal
from typing import Self

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Wakeup:
    """Collects SIGCHLD and the stop signals while it is open."""

    def __enter__(self) -> Self:
        self.fd, self._in = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._in, False)
        self._old_fd = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        self._old = {n: signal.signal(n, lambda *_: None) for n in (*STOPS, signal.SIGCHLD)}
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        os.close(self.fd)
        os.close(self._in)

    def take(self) -> list[signal.Signals]:
        """The stop signals since the last look."""
        try:
            numbers = os.read(self.fd, 4096)
        except BlockingIOError:
            return []
        return [signal.Signals(n) for n in numbers if n in STOPS]
