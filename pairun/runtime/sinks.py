"""Where a process's output goes: log files, as bytes or in whole lines, and the container's streams."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import select
import threading
import time
from collections.abc import Callable

from pairun.secrets.scanner import Data
from pairun.volume.logfile import AppendedFile

MAX_HELD_BYTES = 64 * 1024
_QUIET_S = 1.0
"""Seconds without further output after which an incomplete line is written."""

_LONGEST_S = 5.0
"""Seconds after which an incomplete line is always written: progress bars have no newlines."""


class Raw:
    """Writes the bytes of one stream unchanged to a separate file."""

    def __init__(self, file: AppendedFile) -> None:
        self._file = file

    def take(self, data: Data) -> None:
        """Write these bytes, or keep a copy: the caller reuses the buffer."""
        self._file.write(data)

    def due_s(self) -> float | None:
        """Return None: it never holds bytes."""
        return None

    def flush(self) -> None:
        """Do nothing: it never holds bytes."""


class SharedFile:
    """A file for several streams, which write whole lines.

    Args:
        limit: the size in bytes above which only `add` writes; None for no limit.
    """

    def __init__(self, file: AppendedFile, limit: int | None = None) -> None:
        self.file = file
        self._limit = limit
        # a failed write is reported, and the report may go to this file
        self._lock = threading.RLock()
        self._last: object = self

    def lines(self) -> Lines:
        """Make a sink for one more stream."""
        return Lines(self)

    def add(self, line: bytes) -> None:
        """Write a whole line of PID 1."""
        self.write(None, line)

    def write(self, writer: Lines | None, *pieces: Data) -> None:
        """Write pieces of one stream, starting on a new line if another stream wrote last."""
        with self._lock:
            if writer and self._limit is not None and self.file.size >= self._limit:
                self.file.lost += sum(map(len, pieces))
                return
            if self._last is not writer and not self.file.ends_whole:
                self.file.write(b"\n")
            for piece in pieces:
                self.file.write(piece)
            self._last = writer


class Lines:
    """Holds the start of a line until the line is complete, for a limited time and length."""

    def __init__(self, shared: SharedFile) -> None:
        self._shared = shared
        self._held = bytearray()
        self._until = self._latest = 0.0

    def write(self, *pieces: Data) -> None:
        """Write pieces of the stream to the file."""
        self._shared.write(self, *pieces)

    def take(self, data: Data) -> None:
        """Write whole lines, and keep a copy of the rest."""
        whole = _last_newline(data) + 1
        if whole:
            self.write(self._held, data[:whole])
            self._held.clear()
            data = data[whole:]
        if not data:
            return
        now = time.monotonic()
        if not self._held:
            self._latest = now + _LONGEST_S
        self._until = min(now + _QUIET_S, self._latest)
        if len(self._held) + len(data) > MAX_HELD_BYTES or now >= self._until:
            self.write(self._held, data)
            self._held.clear()
        else:
            self._held += data

    def due_s(self) -> float | None:
        """Seconds until the held line must be written."""
        return max(0.0, self._until - time.monotonic()) if self._held else None

    def flush(self) -> None:
        """Write the held line, complete or not."""
        if self._held:
            self.write(self._held)
            self._held.clear()


Sink = Raw | Lines
"""Takes the bytes of one stream."""


class StampedLines(Lines):
    """Lines that each begin with a stamp; a line written in parts becomes several lines.

    Args:
        shared: the file.
        stamp: makes the stamp of a line.
    """

    def __init__(self, shared: SharedFile, stamp: Callable[[], bytes]) -> None:
        super().__init__(shared)
        self._stamp = stamp

    def write(self, *pieces: Data) -> None:
        """Write lines, each with a stamp."""
        lines = b"".join(pieces).removesuffix(b"\n").split(b"\n")
        stamp = self._stamp()
        super().write(b"".join(stamp + line + b"\n" for line in lines))


def _last_newline(data: Data) -> int:
    if isinstance(data, memoryview):
        # the pump passes slices that begin at the buffer's start
        whole = data.obj
        assert isinstance(whole, bytearray)
        return whole.rfind(b"\n", 0, len(data))
    return data.rfind(b"\n")


_WRITE_BYTES = 64 * 1024
_NO_READER = frozenset({errno.EPIPE, errno.EBADF, errno.EIO, errno.ENXIO, errno.ECONNRESET})


class ContainerStream:
    """One of the container's streams; its reader may be slow or gone.

    Args:
        fd: 1 or 2.
        complain: called once, with a line for people, if the stream cannot be written.

    Attributes:
        lost: number of bytes that could not be written.
        taken: number of bytes written.
        left: bytes of the current write that the reader has not taken yet.
        gone: whether it has no reader any more.
    """

    def __init__(self, fd: int, complain: Callable[[str], None]) -> None:
        self.lost = self.taken = self.left = 0
        self.gone = False
        self._fd = fd
        self._complain = complain
        self._complained = False

    @property
    def name(self) -> str:
        """The stream's name for people."""
        return "standard output" if self._fd == 1 else "standard error"

    def write(self, data: Data) -> None:
        """Write all data; waits for the reader without a limit."""
        left = memoryview(data)
        while left and not self.gone:
            self.left = len(left)
            try:
                # in pieces, so that `taken` shows whether the reader makes progress
                written = os.write(self._fd, left[:_WRITE_BYTES])
            except BlockingIOError:
                # another process made the shared stream non-blocking
                select.select([], [self._fd], [])
                continue
            except OSError as e:
                self._failed(e)
                break
            self.taken += written
            left = left[written:]
        self.left = 0
        self.lost += len(left)

    def _failed(self, error: OSError) -> None:
        self.gone = error.errno in _NO_READER
        if not self._complained:
            self._complained = True
            self._complain(f"{self.name} cannot be written: {error.strerror}")


_PROMPT_S = 0.2


class Speaker:
    """Writes to standard error in a thread, so that a slow reader does not delay signals."""

    def __init__(self) -> None:
        self._stream = ContainerStream(2, lambda _: None)
        self._queue: queue.SimpleQueue[tuple[bytes, threading.Event] | None] = queue.SimpleQueue()
        self._is_prompt = True
        self._thread: threading.Thread | None = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def say(self, line: bytes, *, wait: bool = True) -> None:
        """Write a line; returns when it is written, or after a short wait."""
        if self._thread is None:
            self._stream.write(line)
            return
        written = threading.Event()
        self._queue.put((line, written))
        if wait:
            # After a slow reader, do not wait again until it has caught up.
            self._is_prompt = written.wait(_PROMPT_S if self._is_prompt else 0.0)

    def close(self, seconds: float) -> None:
        """Wait until all lines are written, up to a time in seconds."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            with contextlib.suppress(Exception):
                self._stream.write(item[0])
            item[1].set()
