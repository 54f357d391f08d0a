"""The records of a journal that is still being written."""

from __future__ import annotations

import contextlib
import os
from io import BufferedReader

from pairun.handover.door import Door
from pairun.handover.journal import Record, records_of

READ_BYTES = 256 * 1024
"""How many bytes of a journal one call reads."""

MAX_RECORD = 1024 * 1024
"""A longer line is not one of pairun's records, and is dropped."""


class JournalTail:
    """Reads what was appended to a journal since the last call.

    Every process of the instance can write to this file, so a reader checks each field.

    Args:
        path: `pairun.base.paths.journal_file` of a volume; it may not exist yet.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self._file: BufferedReader | None = None
        self._rest = b""

    def read(self) -> list[Record]:
        """The new records; empty if the journal cannot be opened."""
        if self._file is None:
            door = Door(os.path.dirname(os.path.dirname(os.path.dirname(self._path))))
            with contextlib.suppress(OSError):
                self._file = door.open(self._path)
        if self._file is None:
            return []
        try:
            data = self._file.read1(READ_BYTES)
        except OSError:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_RECORD:
            self._rest = b""
        return records_of(lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
