"""Reads files of any size, compressed or not: small ones in full, else what may show a failure.

Of a large file pairun judges the beginning, the end, and the pieces between them that contain a
word of failure. Memory stays bounded for files of any size.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, cast

from pairun.diagnose.lines import Log

MAX_BYTES = 4 << 30
"""How many bytes of one file are read, counted after unpacking."""

_PIECE = 1 << 16
_MAX_PIECES = 24
"""How many pieces from a large file's middle are kept: the first third and the last ones."""

_MARKS = (
    b"rror", b"Traceback (most", b"atal", b"Killed", b"ut of memory", b"atchdog", b"Xid", b"o space left",
)  # fmt: skip
"""Words of failure, in forms that need few searches."""

_PACKED: Mapping[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open}
_UNPACKERS = {b"PK\x03\x04": "unzip", b"\x28\xb5\x2f\xfd": "zstd -d", b"BZh": "bunzip2"}
_DAMAGES = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


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


class _Piece(NamedTuple):
    """Bytes of a file, their offset in it, and the number of newlines before them."""

    at: int
    lines: int
    data: bytes


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
    if path == "-":
        return read_stream(sys.stdin.buffer, name, budget, is_over=is_over)
    with open(path, "rb") as stream:
        return read_stream(stream, name, budget, is_over=is_over)


def read_stream(
    stream: IO[bytes], name: str, budget: int, *, is_over: Callable[[], bool]
) -> Reading:
    """Read a stream; see `read_file`."""
    first: list[_Piece] = []
    middle: list[_Piece] = []
    tail: deque[_Piece] = deque()
    size = lines = dropped = 0
    follows = False
    unread = ""
    try:
        for data in _unpacked(stream):
            if not size:
                _check_form(data)
            tail.append(_Piece(size, lines, data))
            size, lines = size + len(data), lines + data.count(b"\n")
            if size - tail[0].at - len(tail[0].data) >= budget:
                piece = tail.popleft()
                marked = any(mark in piece.data for mark in _MARKS)
                if piece.at < budget // 4:
                    first.append(piece)
                elif marked or follows:
                    if len(middle) == min(_MAX_PIECES, budget // (2 * _PIECE)):
                        del middle[len(middle) // 3]
                        dropped += 1
                    middle.append(piece)
                follows = marked  # the next piece shows how the log goes on
            if size >= MAX_BYTES or is_over():
                unread = f"{name}: only the first {size >> 20} MiB were read"
                break
    except _DAMAGES as e:
        if not size:
            raise OSError(None, f"it cannot be unpacked: {e}") from e
        unread = f"{name}: its end is missing or damaged"
    if dropped and not unread:
        mib = max(1, dropped * _PIECE >> 20)
        unread = f"{name}: about {mib} MiB in the middle that mention errors were not judged"
    return Reading(_log_of([*first, *middle, *tail], name), size, unread)


def _log_of(pieces: Sequence[_Piece], name: str) -> Log:
    """The log with the pieces of a file, each line with its number in the file."""
    parts: list[bytes] = []
    numbers = [1]
    end = 0
    for piece in pieces:
        if piece.at != end:
            if parts and not parts[-1].endswith(b"\n"):
                parts.append(b"\n")
                numbers.append(0)
            numbers[-1] = piece.lines + 1
        parts.append(piece.data)
        first = numbers[-1] + 1
        numbers += range(first, first + piece.data.count(b"\n"))
        end = piece.at + len(piece.data)
    return Log(b"".join(parts), name, numbers)


def _unpacked(stream: IO[bytes]) -> Iterator[bytes]:
    """The pieces of a file, unpacked from gzip's or xz's form.

    Where the file is damaged or cut off, as those of killed jobs are, one of `_DAMAGES` is raised.
    """
    source: Any = stream if hasattr(stream, "peek") else io.BufferedReader(cast("Any", stream))
    head = source.peek(8)
    source = next(
        (unpack(source) for mark, unpack in _PACKED.items() if head.startswith(mark)), source
    )
    data = b""
    try:
        # read(size) fails as a whole, without the bytes before the damage
        while piece := source.read1(_PIECE - len(data)):
            data += piece
            if len(data) == _PIECE:
                yield data
                data = b""
    except _DAMAGES:
        yield data
        raise
    yield data


def _check_form(head: bytes) -> None:
    """Refuse archives and forms that pairun does not unpack, by a file's first bytes.

    Sources: POSIX ustar, field ``magic``; PKWARE's APPNOTE, 4.3.7; RFC 8878.
    """
    is_tar = head[257:262] == b"ustar"
    programs = (program for mark, program in _UNPACKERS.items() if head.startswith(mark))
    if program := "tar xf" if is_tar else next(programs, ""):
        raise ArchiveError(None, f"it is packed; unpack it first, with {program}")
