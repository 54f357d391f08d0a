"""Pumps: copy a process's output to the container's stream and to log files.

A pump is a thread. Reading, writing and searching for secrets release the interpreter lock. Signals
are blocked in it; the main thread waits for them. A slow reader of one stream delays only that
stream's writer.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pairun.runtime.sinks import ContainerStream, Sink
from pairun.secrets.scanner import Data
from pairun.secrets.vault import RELEASE_S, Vault

if TYPE_CHECKING:
    # Imported with the first secret.
    from pairun.secrets.masking import MaskedStream

CHUNK_BYTES = 256 * 1024
PIPE_BYTES = 256 * 1024
"""The size of a pipe of the user's command: more than the kernel's default, but small enough that
the jobs of a machine stay below one user's limit (pipe(7), pipe-user-pages-soft)."""

_STALL_S = 10.0
"""Seconds that the end waits for a stalled reader."""

_LONGEST_S = 60.0
"""Seconds that the end waits for a slow reader."""

BRIEFLY_S = 0.2
_STEP_S = 0.005
_BRIEF_LOCK_S = 0.01
_LOCK_S = 1.0
"""How long a hanging disk may delay the end, in seconds."""


class Pump:
    """Reads one pipe to its end.

    Writes to the files first, so that a slow reader of the container's stream does not delay them.

    Args:
        stream: the container's stream.
        sinks: the files.
        say: takes a line for people.
        pipe_bytes: the size of the pipe, or None for the kernel's default.
        reader: a FIFO to read instead of a new pipe; we also hold its write end.

    Attributes:
        stream: the container's stream.
        writer: the pipe's write end, for the process; closed with `close_writer`.
        ended: set when the pump has ended or is abandoned.

    Raises:
        OSError: the pipe cannot be made.
    """

    def __init__(
        self,
        stream: ContainerStream,
        sinks: Sequence[Sink],
        vault: Vault,
        say: Callable[[str], None],
        pipe_bytes: int | None = None,
        reader: int | None = None,
    ) -> None:
        self.ended = threading.Event()
        self.stream = stream
        self._sinks = list(sinks)
        self._vault = vault
        self._filter: MaskedStream | None = None
        self._say = say
        self._reader, self.writer = os.pipe() if reader is None else (reader, -1)
        os.set_blocking(self._reader, False)
        if pipe_bytes is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self._writer_open = reader is None
        self._buffer = bytearray(CHUNK_BYTES)
        self._lock = threading.Lock()
        """Locked from reading a piece until it is in the files."""
        self._read_bytes = self._copied_bytes = 0
        self._over = False
        self._piece: Data = b""
        self._masked: Data | None = None
        """The piece after the filter, if the filter has taken it."""
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)
        self._read_at = 0.0

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: no thread can be started.
        """
        threading.Thread(target=self._run, daemon=True).start()

    def attach(self, number: int) -> None:
        """In a forked child: make the pipe this process's file descriptor with this number."""
        os.dup2(self.writer, number)
        self.close_writer()
        os.close(self._reader)

    def close_writer(self) -> None:
        """Close our copy of the write end, so that only the processes hold it."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def mark(self) -> int:
        """How many bytes the process has printed so far, including those still in the pipe."""
        with self._locked(_BRIEF_LOCK_S) as locked:
            return self._read_bytes + (self._unread() if locked else PIPE_BYTES)

    def is_done(self, mark: int) -> bool:
        """Whether the bytes up to a mark are copied; also the rest if every writer is gone."""
        if self.ended.is_set():
            return True
        with self._locked(_BRIEF_LOCK_S) as locked:
            is_copied = locked and self._copied_bytes >= mark
            return is_copied and not self._over and not self._is_hung_up()

    def flush(self) -> None:
        """Write the lines that the sinks hold, complete or not."""
        with self._locked() as locked:
            for sink in self._sinks if locked else ():
                sink.flush()

    def skip(self) -> None:
        """Copy what is in the pipe to the files alone: the thread waits for a stalled reader."""
        with self._locked() as locked:
            if locked and not self._over:
                self._skip()

    def take_over(self) -> None:
        """Copy the rest of the pipe to the files, and abandon the container's stream.

        For the end, if the thread waits for a stalled reader.
        """
        try:
            with self._locked() as locked:
                if locked and not self._over:
                    self._skip()
                    self.stream.lost += len(self._finish_files())
                    self._over = True
                if locked:
                    self.stream.lost += self.stream.left
        finally:
            self.ended.set()

    @contextlib.contextmanager
    def _locked(self, timeout_s: float = _LOCK_S) -> Iterator[bool]:
        """Hold the lock, if the thread releases it in time; yields whether it did."""
        locked = self._lock.acquire(timeout=timeout_s)
        try:
            yield locked
        finally:
            if locked:
                self._lock.release()

    def _skip(self) -> None:
        # The thread may still be writing from its buffer, and from the filter's: it reuses that only
        # for views.
        self._buffer = bytearray(CHUNK_BYTES)
        left = self._unread()
        while left > 0 and (data := self._read()):
            left -= len(data)
            self._read_bytes += len(data)
            self.stream.lost += len(self._to_files(bytes(data)))

    # --- the thread ---

    def _run(self) -> None:
        try:
            try:
                self._copy()
            except Exception as e:  # noqa: BLE001 - a bug of pairun must not end the job
                self._report(f"{self.stream.name} is not logged from here on: {_fault(e)}")
                self.stream.write(self._without_files())
                self._copied_bytes = self._read_bytes
                self._copy()
        except Exception as e:  # noqa: BLE001 - likewise
            self._report(f"{self.stream.name} is discarded from here on: {_fault(e)}")
            self._discard()
        finally:
            self.ended.set()

    def _report(self, line: str) -> None:
        """Report a fault; if the report fails, too, the thread continues."""
        with contextlib.suppress(Exception):
            self._say(line)

    def _copy(self) -> None:
        while True:
            due_s = min(self._due_s(), default=None)
            ready = self._poll.poll(None if due_s is None else due_s * 1000)
            with self._lock:
                if self._over:
                    return
                data = self._read() if ready else None
                if data is None:
                    out = self._in_pause() if not ready else b""
                else:
                    self._read_at = time.monotonic()
                    self._piece, self._masked = data, None
                    self._read_bytes += len(data)
                    out = self._to_files(data) if data else self._finish_files()
                    self._over, self._piece, self._masked = not data, b"", None
            self.stream.write(out)
            self._copied_bytes = self._read_bytes
            if data == b"" or (self.stream.gone and not self._sinks):
                # Close the stream: its writers get SIGPIPE, as they would without us.
                self._close_reader()
                return

    def _due_s(self) -> Iterator[float]:
        """The seconds until what the sinks and the filter hold must be written."""
        yield from (s for sink in self._sinks if (s := sink.due_s()) is not None)
        if self._filter is not None and self._filter.has_release:
            yield max(0.0, self._read_at + RELEASE_S - time.monotonic())

    def _in_pause(self) -> Data:
        """Write what is due; returns what the container's stream still needs."""
        data = b""
        if self._filter is not None and time.monotonic() - self._read_at >= RELEASE_S:
            self._piece, self._masked = b"", (data := self._filter.release())
            for sink in self._sinks:
                sink.take(data)
            self._masked = None
        for sink in self._sinks:
            if sink.due_s() == 0.0:
                sink.flush()
        return data

    def _read(self) -> Data | None:
        """Read a piece: empty at the end, None if the pipe is empty now."""
        try:
            size = os.readv(self._reader, [self._buffer])
        except BlockingIOError:
            return None
        return memoryview(self._buffer)[:size]

    def _to_files(self, data: Data) -> Data:
        """Write a piece to the files; returns it with its secrets masked."""
        if self._filter is None and self._vault:
            self._filter = self._vault.stream()
        if self._filter is not None:
            data = self._filter.feed(data)
        self._masked = data
        for sink in self._sinks:
            sink.take(data)
        return data

    def _finish_files(self) -> Data:
        """Write the held bytes; returns those that the container's stream still needs."""
        rest = b"" if self._filter is None else self._filter.close()
        self._masked = rest
        for sink in self._sinks:
            sink.take(rest)
            sink.flush()
        return rest

    def _without_files(self) -> Data:
        """Drop the files; returns the current piece with its secrets masked.

        Keeps the filter: it holds the start of a secret that the piece may continue.
        """
        with self._lock:
            self._sinks.clear()
            return self._to_files(self._piece) if self._masked is None else self._masked

    def _discard(self) -> None:
        while True:
            self._poll.poll()
            try:
                if not os.readv(self._reader, [self._buffer]):
                    return
            except BlockingIOError:
                continue

    def _unread(self) -> int:
        if self._over:
            return 0
        size = array.array("i", [0])
        fcntl.ioctl(self._reader, termios.FIONREAD, size)
        return size[0]

    def _is_hung_up(self) -> bool:
        """Whether every writer is gone."""
        poll = select.poll()
        poll.register(self._reader, 0)
        return bool(poll.poll(0))

    def _close_reader(self) -> None:
        with self._lock:
            self._over = True
            os.close(self._reader)


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def wait_for(
    pumps: Iterable[Pump],
    left_s: Callable[[], float | None] = lambda: None,
    stall_s: float = _STALL_S,
) -> list[Pump]:
    """Wait until pumps have copied all output; returns those with a slow reader.

    Args:
        left_s: returns the seconds left for this, or None for our limit; called repeatedly.
        stall_s: how long to wait for a stalled reader, in seconds.
    """
    marks = {pump: pump.mark() for pump in pumps}
    began = moved = time.monotonic()
    taken = -1
    while busy := [p for p, mark in marks.items() if not p.is_done(mark)]:
        now, so_far = time.monotonic(), sum(p.stream.taken for p in busy)
        if so_far != taken:
            taken, moved = so_far, now
        left = left_s()
        limit = _LONGEST_S if left is None else min(_LONGEST_S, max(left, BRIEFLY_S))
        if now - began >= limit or now - moved >= stall_s:
            return busy
        busy[0].ended.wait(_STEP_S)
    return []


def complete(pumps: Sequence[Pump], left_s: Callable[[], float | None] = lambda: None) -> None:
    """Write all output so far to the files, also if a reader is too slow.

    Args:
        left_s: as for `wait_for`.
    """
    for pump in wait_for(pumps, left_s):
        pump.take_over()
    for pump in pumps:
        pump.flush()
