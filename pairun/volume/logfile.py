"""Log files: a write to one may fail at any time, and then only log output is lost.

The layout is OpenPAI's, whose log manager serves these files: a rotated log is a folder in the
format of multilog(8), with ``current`` and at most one older file beside it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable

from pairun.secrets.scanner import Data
from pairun.volume.door import Door

LOG_BYTES_VARIABLE = "PAIRUN_LOG_BYTES"
"""Sets the size at which a log is rotated."""

LOG_BYTES = 268_435_456
LEAST_LOG_BYTES = 4096
"""The smallest size allowed, as in multilog(8)."""

RETRY_S = 0.2
"""How long to wait after a failed write before the next one."""

_NEWLINE = ord("\n")
_EARLY_SHARE = 8
_EARLY_BYTES = 65536
_ROTATED = re.compile(r"@[0-9a-f]{24}\.[su]")
_TAI_S = (1 << 62) + 10
"""TAI64's label of 1970, as daemontools count: without the leap seconds since then."""

_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
}  # fmt: skip


def parse_size(text: str) -> int | None:
    """Bytes of ``268435456``, ``256Mi`` or ``1G``; None if it is invalid or too small."""
    found = re.fullmatch(r"(\d{1,18})([kMG]|[KMG]i)?", text)
    size = int(found[1]) * _UNITS[found[2] or ""] if found else 0
    return size if size >= LEAST_LOG_BYTES else None


def tai64n(seconds: float) -> str:
    """The label of a time: ``@`` and 24 hexadecimal digits (tai64n(8))."""
    # before 1970, rounds down to the full second
    whole = int(seconds // 1)
    return f"@{_TAI_S + whole:016x}{int((seconds - whole) * 1e9):08x}"


class AppendedFile:
    """A file that is appended to.

    While it cannot be written, it drops the data; it continues when it can be written again.

    Args:
        path: the file; messages show its end, which people know.
        complain: takes the first write error.

    Attributes:
        lost: how many bytes were dropped.
        size: the size of the open file, in bytes.
        ends_whole: the file ends with a newline, or is empty.
    """

    def __init__(self, door: Door, path: str, complain: Callable[[str], None]) -> None:
        self.path = path
        self._door = door
        self.lost = 0
        self._complain = complain
        self._fd: int | None = None
        self.size = 0
        self.ends_whole = True
        self._again_at = 0.0
        self._complained = False

    def write(self, data: Data) -> None:
        """Append; bytes that cannot be written are counted in `lost`."""
        left = memoryview(data)
        if time.monotonic() < self._again_at:
            self.lost += len(left)
            return
        try:
            while left:
                if self._fd is None:
                    self._fd = self._open()
                room = self._room(left)
                if room == 0:
                    self._rotate()
                    continue
                written = os.write(self._fd, left[:room])
                self.size += written
                self.ends_whole = left[written - 1] == _NEWLINE
                left = left[written:]
        except OSError as e:
            self._again_at = time.monotonic() + RETRY_S
            self.lost += len(left)
            self._close_file()
            if not self._complained:
                self._complained = True
                self._complain(f"cannot write a log for now: {self.path}: {e.strerror}")

    def create(self) -> None:
        """Create the file now, so that readers find it even while it is empty.

        Raises:
            OSError: it cannot be created.
        """
        if self._fd is None:
            self._fd = self._open()

    def _open(self) -> int:
        """Open the file to append to.

        Raises:
            OSError: it cannot be opened, or is not a regular file.
        """
        return self._opened(self.path)

    def _opened(self, path: str) -> int:
        fd = self._door.open_append(path)
        self.size = os.fstat(fd).st_size
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o644)
            # an earlier writer may have been killed within a line
            self.ends_whole = not self.size or os.pread(fd, 1, self.size - 1) == b"\n"
        return fd

    def _room(self, data: memoryview) -> int:
        """How many of these bytes fit into the open file; 0 if it is full."""
        return len(data)

    def _rotate(self) -> None:
        raise NotImplementedError

    def _close_file(self) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = None


class RotatedLog(AppendedFile):
    """A folder with ``current`` and at most one older file.

    Args:
        folder: its path; created if missing.
        limit: the size at which ``current`` is rotated, in bytes.
        complain: takes the first write error.
    """

    def __init__(
        self, door: Door, folder: str, limit: int, complain: Callable[[str], None]
    ) -> None:
        super().__init__(door, folder, complain)
        self._limit = limit
        self._current = os.path.join(folder, "current")

    def _open(self) -> int:
        self._door.make_folder(self.path, parents_mode=None)
        found = self._door.stat(self.path)
        with contextlib.suppress(OSError):
            if found is not None and found.st_mode & 0o555 != 0o555:
                self._door.set_mode(self.path, (found.st_mode & 0o7777) | 0o555)
        return self._opened(self._current)

    def _room(self, data: memoryview) -> int:
        room = self._limit - self.size
        if room >= len(data):
            return len(data)
        # Rotate early, at the end of a line, to keep lines whole.
        early = min(self._limit // _EARLY_SHARE, _EARLY_BYTES)
        first = max(room - early, 0)
        end = bytes(data[first : max(room, 0)]).rfind(b"\n")
        if end >= 0:
            return first + end + 1
        return 0 if self.ends_whole and room < early else max(room, 0)

    def _rotate(self) -> None:
        # Remove the older file first: there is never more than one.
        for name in self._door.names(self.path):
            if _ROTATED.fullmatch(name):
                self._door.remove(os.path.join(self.path, name))
        self._close_file()
        with contextlib.suppress(FileNotFoundError):
            aside = os.path.join(self.path, tai64n(time.time()) + ".s")
            self._door.rename(self._current, aside)
        self._fd = self._opened(self._current)
