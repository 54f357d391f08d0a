"""One way to append to the journal, for every process of either container.

`pairun.executor.journal` says what the records are.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable
from typing import Any

from pairun.secrets.forms import Redactor

SCHEMA = 1


class Journal:
    """Appends records to a file; one that cannot be written costs the journal, not the job.

    Args:
        path: the file; its directory must exist.
        redactor: what no record may hold.
        complain: told once when the journal cannot be written.
    """

    def __init__(self, path: str, redactor: Redactor, complain: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._complain = complain
        self._path = path
        self._fd: int | None = None
        try:
            self._fd = _open(path)
        except OSError as e:
            complain(f"no journal is kept: {path}: {e.strerror}")

    def __call__(self, record: dict[str, Any]) -> None:
        """Append one record; ``output`` records are not kept."""
        if self._fd is None or record["type"] == "output":
            return
        full = {"schema": SCHEMA, "time": round(time.time(), 3), **record}
        data = self._redactor.redact(
            json.dumps(full, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        )
        try:
            # One write per record: a killed process leaves whole lines, or one torn last line.
            whole = os.write(self._fd, data) == len(data)
            why = None if whole else os.strerror(errno.ENOSPC)
        except OSError as e:
            why = e.strerror
        if why is not None:
            self.close()
            self._complain(f"the journal ends here: {self._path}: {why}")

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _open(path: str) -> int:
    """Open a journal for appending; nothing that stands there is trusted.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    # O_RDWR, to look at the end; and to open a pipe for writing alone would wait for a reader.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o644)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    with contextlib.suppress(OSError):
        if found.st_size and os.pread(fd, 1, found.st_size - 1) != b"\n":
            # The last writer was killed; what it left must not spoil the next record.
            os.write(fd, b"\n")
    return fd
