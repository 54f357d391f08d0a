"""The output of attempts: masked lines as events; the journal keeps the last ones."""

from __future__ import annotations

import collections
import os
import select
from collections.abc import Callable

from pairun.base.signals import block_stop_signals
from pairun.secrets.vault import Vault
from pairun.volume.journal import Emit

TAIL_LINES = 50
MAX_OUTPUT_LINE_BYTES = 16_384


class OutputLines:
    """Turns a pipe into ``output`` events, one per line.

    Args:
        fd: the read end, non-blocking.
        take_secrets: called with bytes in hand, before they are masked.
    """

    def __init__(
        self, fd: int, task: str, vault: Vault, emit: Emit, take_secrets: Callable[[], None]
    ) -> None:
        self.fd = fd
        self.open = True
        self._task = task
        self._stream = vault.stream()
        self._emit = emit
        self._take_secrets = take_secrets
        self._rest = b""
        self._tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)

    def read(self) -> None:
        """Read at most 64 KiB, so that an endless writer does not block us."""
        if not self.open:
            return
        try:
            chunk = os.read(self.fd, 65536)
        except BlockingIOError:
            return
        if chunk:
            self._take_secrets()
            self._split(self._stream.feed(chunk))
            return
        # the last writer is gone
        last = self._stream.close()
        self._split(last + (b"\n" if last or self._rest else b""))
        os.close(self.fd)
        self.open = False

    def drain(self) -> None:
        """Read what has been printed so far; a pipe holds 64 KiB (pipe(7))."""
        self.read()
        self.read()

    def _split(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_OUTPUT_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            self._tail.append(text)
            self._emit({"type": "output", "task": self._task, "line": text})

    def tail(self) -> list[str]:
        """The last lines, including the incomplete one."""
        rest = [self._rest.decode("utf-8", "replace")] if self._rest else []
        return [*self._tail, *rest][-TAIL_LINES:]


def pump_in_background(lingering: list[OutputLines]) -> None:
    """Fork a process that reads background processes' output after the executor has ended.

    A task may start a server in the background; without a reader, its next line would kill it
    (SIGPIPE). The process exits with the last writer and ignores stop signals, so no line is lost.
    """
    for lines in lingering:
        lines.drain()
    if not any(lines.open for lines in lingering) or os.fork() != 0:
        return
    try:
        os.setsid()
        block_stop_signals()
        while still_open := {lines.fd: lines for lines in lingering if lines.open}:
            poll = select.poll()
            for fd in still_open:
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll():
                still_open[fd].read()
    finally:
        os._exit(0)
