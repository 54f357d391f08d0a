"""Reads files of any size, compressed or not: small ones in full, else what may show a failure.

Of a large file pairun judges the beginning, the end, and the pieces between them that contain a
word of failure. Memory stays bounded for files of any size.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple, cast

from pairun.diagnose.lines import Log

PIECE = 1 << 16
_MAX_PIECES = 24
"""How many pieces from a large file's middle are kept: the first and the last ones."""

MAX_BYTES = 4 << 30
"""How many bytes of one file are read, counted after unpacking."""

MARKS = (
    b"rror", b"Traceback (most", b"atal", b"Killed", b"ut of memory", b"atchdog", b"Xid", b"o space left",
)  # fmt: skip
"""Words of failure, in forms that need few searches."""

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
_UNPACKERS = {b"PK\x03\x04": "unzip", b"\x28\xb5\x2f\xfd": "zstd -d", b"BZh": "bunzip2"}

_CHUNK = 1 << 18


class Reading(NamedTuple):
    """What was read of a file.

    Attributes:
        log: its lines.
        size: bytes of the file, unpacked.
        unread: what was not read or judged, for people; empty if everything was.
    """

    log: Log
    size: int
    unread: str = ""


class ArchiveError(OSError):
    """A file is packed in a form that pairun does not read."""


def read_file(path: str, name: str, budget: int, *, is_over: Callable[[], bool]) -> Reading:
    """Read a file, or standard input.

    Args:
        path: the file; ``-`` for standard input.
        name: the name for people.
        budget: number of bytes at its end that are judged in full.
        is_over: whether the time for reading is over.

    Raises:
        ArchiveError: it is packed in another form than gzip and xz.
        OSError: it cannot be read, or unpacked.
    """
    with _opened(path) as stream:
        reading = read_stream(stream, name, budget, is_over=is_over)
        if getattr(stream, "is_damaged", False) and not reading.unread:
            return reading._replace(unread=f"{name}: its end is missing or damaged")
        return reading


def read_stream(
    stream: IO[bytes], name: str, budget: int, *, is_over: Callable[[], bool]
) -> Reading:
    """Read a stream of plain bytes; see `read_file`."""
    kept = _Pieces(budget // 4, budget)
    why = ""
    while chunk := stream.read(_CHUNK):
        if not kept.size and (program := _unpacks(chunk)):
            raise ArchiveError(None, f"it is packed; unpack it first, with {program}")
        kept.add(chunk)
        if kept.size >= MAX_BYTES or is_over():
            why = f"{name}: only the first {kept.size >> 20} MiB were read"
            break
    if kept.dropped and not why:
        size = max(1, kept.dropped * PIECE >> 20)
        why = f"{name}: about {size} MiB in the middle that mention errors were not judged"
    return Reading(kept.log(name), kept.size, why)


def _unpacks(head: bytes) -> str:
    """The command that unpacks a file with these first bytes; empty if pairun reads it.

    Sources: POSIX ustar, field ``magic``; PKWARE's APPNOTE, 4.3.7; RFC 8878.
    """
    if head[257:262] == b"ustar":
        return "tar xf"
    return next((program for mark, program in _UNPACKERS.items() if head.startswith(mark)), "")


class _Piece(NamedTuple):
    """Bytes of a file that are kept.

    Attributes:
        at: their offset in the file.
        lines: number of newlines before them in the file.
        data: the bytes.
    """

    at: int
    lines: int
    data: bytes


class _Pieces:
    """A stream's beginning and end, and the pieces between that contain a word of failure."""

    def __init__(self, head: int, tail: int) -> None:
        self.size = 0
        self.dropped = 0
        self._room, self._budget = head, tail
        self._max_pieces = min(_MAX_PIECES, tail // (2 * PIECE))
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._first: list[_Piece] = []
        self._last: deque[_Piece] = deque()
        self._at, self._lines = 0, 0
        self._follows = False

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.size += len(chunk)
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= self._budget:
            old = self._tail.popleft()
            self._tail_bytes -= len(old)
            self._sift(old)

    def log(self, name: str) -> Log:
        """The kept pieces as a log."""
        parts: list[bytes] = []
        runs: list[tuple[int, int]] = []
        index, end = 0, 0
        for piece in self._kept():
            if piece.at != end or not parts:
                if parts and not parts[-1].endswith(b"\n"):
                    parts.append(b"\n")
                    index += 1
                runs.append((index, piece.lines + 1))
            parts.append(piece.data)
            index += piece.data.count(b"\n")
            end = piece.at + len(piece.data)
        return Log(b"".join(parts), name, runs)

    def _kept(self) -> Iterator[_Piece]:
        yield from self._first
        yield from self._last
        at, lines = self._at, self._lines
        for data in self._tail:
            yield _Piece(at, lines, data)
            at += len(data)
            lines += data.count(b"\n")

    def _sift(self, chunk: bytes) -> None:
        """Keep the pieces of a chunk that contain a word of failure, each with the next piece."""
        if self._room <= 0 and not self._follows and not any(m in chunk for m in MARKS):
            self._pass(chunk)
            return
        for start in range(0, len(chunk), PIECE):
            data = chunk[start : start + PIECE]
            piece = _Piece(self._at, self._lines, data)
            if self._room > 0:
                self._first.append(piece)
                self._room -= len(data)
            else:
                marked = any(mark in data for mark in MARKS)
                if marked or self._follows:
                    self._keep(piece)
                self._follows = marked
            self._pass(data)

    def _pass(self, data: bytes) -> None:
        self._at += len(data)
        self._lines += data.count(b"\n")

    def _keep(self, piece: _Piece) -> None:
        if len(self._last) < self._max_pieces:
            self._last.append(piece)
            return
        # keep the first third; of the rest, keep the last ones
        del self._last[self._max_pieces // 3]
        self._last.append(piece)
        self.dropped += 1


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file; unpack it if its first bytes are those of a compressed file."""
    if path == "-":
        with _unpacked(sys.stdin.buffer) as stream:
            yield stream
        return
    with open(path, "rb") as file, _unpacked(file) as stream:
        yield stream


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes]]:
    head = file.peek(8)[:8] if hasattr(file, "peek") else b""
    if head.startswith(GZIP):
        import gzip
        import zlib

        with _unpacking(cast("IO[bytes]", gzip.GzipFile(fileobj=file)), zlib.error) as stream:
            yield stream
    elif head.startswith(XZ):
        import lzma

        with _unpacking(cast("IO[bytes]", lzma.LZMAFile(file)), lzma.LZMAError) as stream:
            yield stream
    else:
        yield file


@contextmanager
def _unpacking(stream: IO[bytes], *errors: type[Exception]) -> Iterator[IO[bytes]]:
    """An unpacking stream that ends where the file is damaged or cut off.

    Args:
        stream: the stream that unpacks.
        errors: of the format, besides those of a file.
    """
    with stream:
        yield cast("IO[bytes]", _Lenient(stream, errors))


class _Lenient:
    """Reads as much as can be unpacked: files of killed jobs are often cut off.

    Attributes:
        is_damaged: whether the bytes after those that were read cannot be unpacked.
    """

    def __init__(self, stream: IO[bytes], errors: Sequence[type[Exception]]) -> None:
        self._stream = cast("io.BufferedIOBase", stream)
        self._errors: tuple[type[Exception], ...] = (EOFError, OSError, ValueError, *errors)
        self._read_any = False
        self.is_damaged = False

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end and where the file is cut off.

        Raises:
            OSError: nothing can be unpacked.
        """
        data = bytearray()
        try:
            # read(size) fails as a whole, without the bytes before the damage
            while not self.is_damaged and len(data) < size:
                if not (piece := self._stream.read1(size - len(data))):
                    break
                data += piece
        except self._errors as e:
            if not data and not self._read_any:
                raise OSError(None, f"it cannot be unpacked: {e}") from e
            self.is_damaged = True
        self._read_any = self._read_any or bool(data)
        return bytes(data)
