"""The output of an instance: writes it to a file and shows it line by line."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from pairun.secrets.masking import MaskedStream
from pairun.secrets.vault import RELEASE_S, Vault

MAX_LINE = 64 * 1024


class InstanceOutput:
    """Reads what one phase of an instance prints.

    Args:
        log_path: the file to append to.
        show: receives each complete line.
        vault: masks secrets.

    Attributes:
        fd: the file descriptor to read when the selector reports it.
        writer: the other end of the pipe, for the process.
    """

    def __init__(self, log_path: str, show: Callable[[bytes], None], vault: Vault) -> None:
        self.fd, self.writer = os.pipe()
        os.set_blocking(self.fd, False)
        self._show_line = show
        self._stream: MaskedStream = vault.stream()
        self._rest = b""
        self._read_at = 0.0
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._log = os.open(log_path, flags, 0o600)

    def close_writer(self) -> None:
        """Close the writer, so that only the process holds it."""
        os.close(self.writer)

    def read(self) -> bool:
        """Read the available output; returns whether the output has ended."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return False
        if data:
            self._read_at = time.monotonic()
            self._take(self._stream.feed(data))
        return not data

    def release(self) -> None:
        """Take the bytes that still wait in a pause of the output, if they reveal no secret."""
        if self._stream.has_release and time.monotonic() - self._read_at >= RELEASE_S:
            self._take(self._stream.release())

    def close(self) -> None:
        """Flush the last line, complete or not."""
        self._take(self._stream.close())
        if self._rest:
            self._show(self._rest)
        os.close(self.fd)
        os.close(self._log)

    def _take(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            kept = data
            while kept:
                kept = kept[os.write(self._log, kept) :]
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._show(line)
        if len(self._rest) > MAX_LINE:
            self._show(self._rest)
            self._rest = b""

    def _show(self, line: bytes) -> None:
        self._show_line(line.removesuffix(b"\r"))
