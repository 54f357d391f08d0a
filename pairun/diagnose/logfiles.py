"""Finds the log files of a job below a folder, and reads them, compressed or not.

Of a large file pairun judges the beginning, the end, and the pieces between them that contain a
word of failure. Memory stays bounded for files of any size.
"""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import os
import re
import stat
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, cast

from pairun.base.escapes import visible
from pairun.base.paths import JOURNAL
from pairun.diagnose.lines import Log
from pairun.diagnose.podjournal import OUTPUT, PHASE_LOGS, RUN_OUTPUT, journal_folders
from pairun.volume.progressfile import NAME as PROGRESS

MAX_FILES = 4096

_NO_LOGS = (
    ".pt", ".pth", ".ckpt", ".safetensors", ".npy", ".npz", ".parquet", ".tar", ".whl", ".so", ".py",
    ".png", ".jpg", ".pdf", ".html", ".csv", ".tsv", ".toml", ".ini", ".onnx", ".bin",
)  # fmt: skip
_NO_LOG = re.compile(r"core(?:\.\d+)?|(?:.*[._-])?(?:config|params|hparams|args|metrics)\.json")
"""Names of core dumps, and of files with settings or metrics."""

_SHOWN_FILES = 3

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


class LogFile(NamedTuple):
    """A file to read.

    Attributes:
        path: where it is; ``-`` for standard input.
        name: the name for people.
        within: its path below the folder that the user named.
        skipped: why pairun skips it, for people; empty if it is read.
    """

    path: str
    name: str
    within: str
    skipped: str = ""


def files_in(paths: Sequence[str]) -> list[LogFile]:
    """The log files of paths: files as they are, and the logs below folders.

    Skips links below a folder, and files of models, pictures and code. Of a pairun run it reads
    only the output and the progress: plans and secrets are not logs.
    """
    named = [path for path in paths if path == "-" or not os.path.isdir(path)]
    # the folders tell ranks apart: worker-0/output.log, worker-1/output.log
    folders = {os.path.dirname(os.path.abspath(path)) for path in named if path != "-"}
    shared = os.path.commonpath(folders) if folders else ""
    files: list[LogFile] = []
    for path in paths:
        if path in named:
            files.append(
                LogFile(path, path, path if path == "-" else os.path.relpath(path, shared))
            )
            continue
        for where, subfolders, names in os.walk(path):
            subfolders[:], logs = map(sorted, _kept(where, subfolders, names))
            found = (os.path.join(where, name) for name in logs)
            judged = ((file, _why_skipped(file, path)) for file in found)
            files += [
                LogFile(file, file, os.path.relpath(file, path), why)
                for file, why in judged
                if why is not None
            ]
    return files[:MAX_FILES]


def without_logs(folder: str) -> str:
    """The sentence, for people, about a folder without logs."""
    found = (
        os.path.relpath(os.path.join(where, name), folder)
        for where, _, names in os.walk(folder)
        for name in names
    )
    first = list(itertools.islice(found, _SHOWN_FILES + 1))
    if not first:
        return f"{visible(folder)} has no files"
    shown = ", ".join(map(visible, sorted(first[:_SHOWN_FILES])))
    more = ", …" if len(first) > _SHOWN_FILES else ""
    return f"{visible(folder)} has no logs; pairun reads these files only if you name them: {shown}{more}"


def _kept(where: str, folders: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The subfolders of a folder that may contain logs, and its files that may be logs."""
    if JOURNAL in names or OUTPUT in folders:
        kept = [name for name in names if name == PROGRESS]
        if not os.path.exists(os.path.join(where, OUTPUT, "current")):
            # a task failed before the command ran; the journal is read with each of these logs
            kept += [name for name in names if name in PHASE_LOGS] or [JOURNAL]
        return [name for name in folders if name == OUTPUT], kept
    if "runtime.d" in folders or (".pairun" in names and "logs" in folders):
        return [name for name in folders if name == "logs"], []
    is_run = ".pairun-run" in names
    entered = [name for name in folders if name[0] != "." and not (is_run and name == "gang")]
    if "pai" in folders and RUN_OUTPUT in names:
        return entered, [] if journal_folders(where) else [RUN_OUTPUT]
    return entered, [
        name
        for name in names
        if not name.startswith(".") and not name.endswith(_NO_LOGS) and not _NO_LOG.fullmatch(name)
    ]


def _why_skipped(path: str, folder: str) -> str | None:
    """Why pairun skips a file below a folder, for people; empty if it reads the file.

    Returns:
        None for what is not a file, and for a link to a file that is read itself.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return ""
    if not stat.S_ISLNK(mode):
        return "it is no regular file"
    target = os.path.realpath(path)
    if os.path.exists(target) and target.startswith(os.path.realpath(folder) + os.sep):
        return None
    return "it is a link out of the folder" if os.path.exists(target) else "it is a dangling link"


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
