"""A program in a pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import pyte

WAIT_S = 60.0


class PtyScreen:
    """Runs a program on a terminal of its own, as its controlling terminal.

    Args:
        argv: the program and its arguments.
        columns: of the terminal.
        lines: of the terminal.
        cwd: the directory that it starts in.
        env: its environment, in addition to this process's.

    Attributes:
        raw: every byte that the program wrote.
        screen: what a person sees, and the lines that scrolled off at the top.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 80,
        lines: int = 24,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.raw = b""
        self.screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # the size is set before the program asks for it
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.chdir(cwd)
            os.execvpe(argv[0], list(argv), {**os.environ, "TERM": "xterm-256color", **(env or {})})
        self.code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    @property
    def rows(self) -> list[str]:
        """The lines of the screen, without blanks at their ends."""
        return [row.rstrip() for row in self.screen.display]

    @property
    def text(self) -> str:
        """The screen, and what scrolled off it."""
        past = [
            "".join(line[x].data for x in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join([*past, *self.rows]).rstrip("\n")

    def read(self, wait_s: float = 0.1) -> bool:
        """Take what the program wrote; returns false once the terminal is closed."""
        if not select.select([self.fd], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def wait_for(self, seen: Callable[[str], object]) -> None:
        """Wait until the screen's text satisfies a condition."""
        end = time.monotonic() + WAIT_S
        while not seen(self.text):
            assert time.monotonic() < end, self.text
            assert self.read(), self.text

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        end = time.monotonic() + WAIT_S
        while self.read():
            assert time.monotonic() < end, self.text
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def resize(self, columns: int, lines: int) -> None:
        """Change the terminal's size; its foreground processes get SIGWINCH."""
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.fd, keys)

    def shows_cursor(self) -> bool:
        """Whether the cursor is visible."""
        return not self.screen.cursor.hidden
