"""Pumps: what a process prints goes to the container's own stream and to log files.

A pump is a thread. Reading, writing and looking for secrets all let other threads run, signals are
none of its business (they are blocked, and the main thread waits for them), and one stream whose
reader is slow holds up nobody but its writer.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from pairun.handover.logfile import Data, LogFile
from pairun.secrets.vault import Vault

CHUNK = 256 * 1024
PIPE_BYTES = 256 * 1024
"""What a pipe of the user's command holds: more than the kernel's default, and little enough that
the jobs of a machine stay under what one user may have in pipes (pipe(7), pipe-user-pages-soft)."""

MAX_HELD = 64 * 1024
QUIET_S = 1.0
"""A line without its end is written when nothing more has come for so long."""

LONGEST_S = 5.0
"""And after this time also when more has come: a progress bar has no lines."""

_AT_ONCE = 64 * 1024
_NOW_S = 0.01
_LOCK_S = 1.0
"""How long a disk that does not answer may hold up the end."""

_GONE = frozenset({errno.EPIPE, errno.EBADF, errno.EIO, errno.ENXIO, errno.ECONNRESET})


class Sink(Protocol):
    """A place for the bytes of one stream."""

    def take(self, data: Data) -> None:
        """Keep these bytes; they are not changed before this returns, and may be after."""

    def due_s(self) -> float | None:
        """Seconds until `flush` should be called, or None."""

    def flush(self) -> None:
        """Write what was held back."""


class Raw:
    """The bytes of one stream as they come, in a file of its own."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def take(self, data: Data) -> None:
        """As `Sink` says."""
        self._file.write(data)

    def due_s(self) -> float | None:
        """Nothing is held back."""
        return None

    def flush(self) -> None:
        """Nothing is held back."""


class Shared:
    """A file that several streams write to, each in whole lines.

    Args:
        file: the file.
        limit: its size from which on only `add` writes, or None for no limit.
    """

    def __init__(self, file: LogFile, limit: int | None = None) -> None:
        self.file = file
        self._limit = limit
        # what is said of a failed write may come back to the same file
        self._lock = threading.RLock()
        self._last: object = self

    def lines(self) -> Lines:
        """A sink for one more stream."""
        return Lines(self)

    def add(self, line: bytes) -> None:
        """Write a whole line of our own."""
        self.write(None, line)

    def write(self, writer: Lines | None, *pieces: Data) -> None:
        """Write pieces of one stream; they begin on a line of their own."""
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
    """Holds back the start of a line until its end comes, for a limited time and length."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._held = bytearray()
        self._until = self._latest = 0.0

    def write(self, *pieces: Data) -> None:
        """Write pieces of the stream to the file."""
        self._shared.write(self, *pieces)

    def take(self, data: Data) -> None:
        """As `Sink` says."""
        whole = _last_newline(data) + 1
        if whole:
            self.write(self._held, data[:whole])
            self._held.clear()
            data = data[whole:]
        if not data:
            return
        now = time.monotonic()
        if not self._held:
            self._latest = now + LONGEST_S
        self._until = min(now + QUIET_S, self._latest)
        if len(self._held) + len(data) > MAX_HELD or now >= self._until:
            self.write(self._held, data)
            self._held.clear()
        else:
            self._held += data

    def due_s(self) -> float | None:
        """When the line that is held has waited long enough."""
        return max(0.0, self._until - time.monotonic()) if self._held else None

    def flush(self) -> None:
        """Write the line that is held, whole or not."""
        if self._held:
            self.write(self._held)
            self._held.clear()


class StampedLines(Lines):
    """Lines that each begin with a stamp; one that had to be written in parts becomes several.

    Args:
        shared: the file.
        stamp: makes the stamp of a line.
    """

    def __init__(self, shared: Shared, stamp: Callable[[], bytes]) -> None:
        super().__init__(shared)
        self._stamp = stamp

    def write(self, *pieces: Data) -> None:
        """As `Lines` does, with stamps."""
        lines = b"".join(pieces).removesuffix(b"\n").split(b"\n")
        stamp = self._stamp()
        super().write(b"".join(stamp + line + b"\n" for line in lines))


class ContainerStream:
    """One of the container's own streams; its reader may be slow, or gone.

    Args:
        fd: 1 or 2.
        complain: told when nobody reads it any more, or it cannot be written.

    Attributes:
        lost: bytes that could not be written.
        taken: bytes that were.
        left: bytes that are being written, and wait for their reader.
        gone: nobody will ever read it again.
    """

    def __init__(self, fd: int, complain: Callable[[str], None]) -> None:
        self.lost = self.taken = self.left = 0
        self.gone = False
        self._fd = fd
        self._complain = complain
        self._complained = False

    @property
    def name(self) -> str:
        """What people call it."""
        return "standard output" if self._fd == 1 else "standard error"

    def write(self, data: Data) -> None:
        """Write all of it, however long that takes."""
        left = memoryview(data)
        while left and not self.gone:
            self.left = len(left)
            try:
                # not all at once, so that `taken` tells whether somebody reads
                written = os.write(self._fd, left[:_AT_ONCE])
            except BlockingIOError:
                # somebody who shares it has made it so
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
        self.gone = error.errno in _GONE
        if not self._complained:
            self._complained = True
            self._complain(f"{self.name} cannot be written: {error.strerror}")


class Pump:
    """Reads one pipe to its end.

    The files come first: a slow reader of the container's stream keeps nothing from them.

    Args:
        stream: the container's own.
        sinks: the files.
        vault: what nothing may hold.
        say: takes a line for people.
        pipe_bytes: how much the pipe should hold, or None for the kernel's default.
        reader: what to read in place of a new pipe: a FIFO whose other end we hold, too.

    Attributes:
        writer: the other end, for the process; closed with `close_writer`.
        ended: set when the pump has, or when nobody waits for it any more.

    Raises:
        OSError: there is no pipe to be had.
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
        self._stream = stream
        self._sinks = list(sinks)
        self._vault = vault
        self._filter = vault.stream() if vault else None
        self._say = say
        self._reader, self.writer = os.pipe() if reader is None else (reader, -1)
        os.set_blocking(self._reader, False)
        if pipe_bytes is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self._writer_open = reader is None
        self._buffer = bytearray(CHUNK)
        self._lock = threading.Lock()
        """Held from the reading of a piece to the moment when the files have it."""
        self._came = self._passed = 0
        self._over = False
        self._piece: Data = b""
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: no thread can be started.
        """
        threading.Thread(target=self._run, daemon=True).start()

    def close_writer(self) -> None:
        """Let the processes alone hold the other end."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def mark(self) -> int:
        """How many bytes have come so far, with what is still in the pipe."""
        if not self._lock.acquire(timeout=_NOW_S):
            return self._came + PIPE_BYTES
        try:
            return self._came + self._unread()
        finally:
            self._lock.release()

    def is_done(self, mark: int) -> bool:
        """Whether so many bytes have been passed on, and the end too where it has come."""
        if self.ended.is_set():
            return True
        if self._passed < mark or not self._lock.acquire(timeout=_NOW_S):
            return False
        try:
            return not self._over and not self._is_hung_up()
        finally:
            self._lock.release()

    @property
    def stream_name(self) -> str:
        """What people call the container's stream."""
        return self._stream.name

    @property
    def lost(self) -> int:
        """How many bytes the container's stream did not get."""
        return self._stream.lost

    @property
    def taken(self) -> int:
        """How many bytes the container's stream has got."""
        return self._stream.taken

    def flush(self) -> None:
        """Write lines that are held back, whole or not."""
        if self._lock.acquire(timeout=_LOCK_S):
            try:
                for sink in self._sinks:
                    sink.flush()
            finally:
                self._lock.release()

    def take_over(self) -> None:
        """Put what is left into the files, and forget the container's stream.

        For the end, when the thread waits for a reader who does not come back.
        """
        if not self._lock.acquire(timeout=_LOCK_S):
            self.ended.set()
            return
        try:
            if self._over:
                self._stream.lost += self._stream.left
                return
            # The thread may still be writing from the other one.
            self._buffer = bytearray(CHUNK)
            left = self._unread()
            while left > 0 and (data := self._read()):
                left -= len(data)
                self._stream.lost += len(self._to_files(data))
            self._stream.lost += len(self._finish_files()) + self._stream.left
            self._over = True
        finally:
            self._lock.release()
            self.ended.set()

    # --- the thread ---

    def _run(self) -> None:
        try:
            try:
                self._copy()
            except Exception as e:  # noqa: BLE001 - a fault of ours must not end the job
                self._say(f"{self._stream.name} is kept in no file from here on: {_fault(e)}")
                self._stream.write(self._without_files())
                self._passed = self._came
                self._copy()
        except Exception as e:  # noqa: BLE001
            self._say(f"{self._stream.name} is lost from here on: {_fault(e)}")
            self._discard()
        finally:
            self.ended.set()

    def _copy(self) -> None:
        while True:
            due_s = min(
                (s for sink in self._sinks if (s := sink.due_s()) is not None), default=None
            )
            ready = self._poll.poll(None if due_s is None else due_s * 1000)
            with self._lock:
                if self._over:
                    return
                if not ready:
                    for sink in self._sinks:
                        if sink.due_s() == 0.0:
                            sink.flush()
                    continue
                data = self._read()
                if data is None:
                    continue
                self._piece = data
                self._came += len(data)
                out = self._to_files(data) if data else self._finish_files()
                self._over, self._piece = not data, b""
            self._stream.write(out)
            self._passed = self._came
            if not data or (self._stream.gone and not self._sinks):
                # Where nobody keeps a stream its writers are told so, as without us (SIGPIPE).
                self._close_reader()
                return

    def _read(self) -> Data | None:
        """What there is: nothing at the end, None when there is nothing now."""
        try:
            size = os.readv(self._reader, [self._buffer])
        except BlockingIOError:
            return None
        return memoryview(self._buffer)[:size]

    def _to_files(self, data: Data) -> Data:
        """Write a piece to the files; returns it without the secrets."""
        if self._filter is not None:
            data = self._filter.feed(bytes(data))
        for sink in self._sinks:
            sink.take(data)
        return data

    def _finish_files(self) -> Data:
        """Write what was held back; returns what the container's stream has not got."""
        rest = b"" if self._filter is None else self._filter.close()
        for sink in self._sinks:
            sink.take(rest)
            sink.flush()
        return rest

    def _without_files(self) -> Data:
        """Go on without the files, and with what we were at."""
        with self._lock:
            self._sinks.clear()
            self._filter = self._vault.stream() if self._vault else None
            return self._to_files(self._piece)

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


def _last_newline(data: Data) -> int:
    if isinstance(data, memoryview):
        # a slice of the whole buffer, from its start
        whole = data.obj
        assert isinstance(whole, bytearray)
        return whole.rfind(b"\n", 0, len(data))
    return data.rfind(b"\n")


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
