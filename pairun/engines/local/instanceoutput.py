"""The output of an instance: written to a file, and shown line by line with its name."""

from __future__ import annotations

import contextlib
import os

from pairun.secrets.masking import MaskedStream
from pairun.secrets.vault import Vault

MAX_LINE = 64 * 1024
_COLORS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


class Screen:
    """Where the lines of all instances come together.

    Args:
        fd: file descriptor of the output.
        width: of the longest name.
        color: show each name in a colour of its own.

    Attributes:
        lost: why a line was lost, the first time, or None.
    """

    def __init__(self, fd: int, width: int, *, color: bool) -> None:
        self._fd = fd
        self._width = width
        self._color = color
        self._colors: dict[str, int] = {}
        self.lost: OSError | None = None

    def show(self, name: str, line: bytes) -> None:
        """Write one line; that nobody reads any more is no reason to stop the job."""
        prefix = f"{name:<{self._width}} | "
        if self._color:
            color = self._colors.setdefault(name, _COLORS[len(self._colors) % len(_COLORS)])
            prefix = f"\033[{color}m{prefix}\033[0m"
        data = prefix.encode() + line + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as e:
            self.lost = self.lost or e


class InstanceOutput:
    """Reads what one phase of an instance prints.

    Args:
        name: of the instance.
        log_path: the file that keeps it, appended to.
        screen: shows it.
        vault: what must not be shown or kept.

    Attributes:
        fd: to be read when the selector says so.
        writer: the other end, for the process.
    """

    def __init__(self, name: str, log_path: str, screen: Screen, vault: Vault) -> None:
        self.fd, self.writer = os.pipe()
        os.set_blocking(self.fd, False)
        self._name = name
        self._screen = screen
        self._stream: MaskedStream = vault.stream()
        self._rest = b""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._log = os.open(log_path, flags, 0o600)

    def close_writer(self) -> None:
        """Let the process alone hold the other end."""
        os.close(self.writer)

    def read(self) -> bool:
        """Take what has come; whether that was all there will ever be."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return False
        if data:
            self._take(self._stream.feed(data))
        return not data

    def close(self) -> None:
        """Flush the last line, whole or not."""
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
        self._screen.show(self._name, line.removesuffix(b"\r"))
