"""The journal in a container's log, for readers that have access to logs only.

A line is ``[pairun] journal/1 FIRST PART/PARTS DATA``. FIRST is the number, from 0, of its first
record; the line replaces all records from that number on. DATA is JSON Lines, compressed with zlib,
in base64. Records are masked before they are compressed, and ``progress`` records are omitted.

A command can also print such lines, as it can write to its journal: readers do not trust them.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from pairun.base.foreignjson import parse_record
from pairun.volume.door import Door
from pairun.volume.journal import Record

LOG_JOURNAL_VARIABLE = "PAIRUN_LOG_JOURNAL"
"""The variable that enables it: ``true``."""

PREFIX = "[pairun] journal/1 "

MAX_JOURNAL_BYTES = 1 << 20
"""A larger journal is not printed, because it would flood the log."""

MAX_RECORDS_BYTES = 16 << 20
"""How many bytes are decompressed from one log."""

LINE_CHARS = 8000
"""The largest data of a line; container runtimes split lines of more than 16 KiB."""


class LogJournal:
    """Prints a journal to the container's log.

    Args:
        path: the journal.
        mask: returns a record without secrets in its values (`Vault.record`).
    """

    def __init__(
        self,
        env: Mapping[str, str],
        door: Door,
        path: str,
        mask: Callable[[Mapping[str, object]], Record],
        say: Callable[[str], None],
    ) -> None:
        self._is_on = env.get(LOG_JOURNAL_VARIABLE) == "true"
        self._door = door
        self._path = path
        self._mask = mask
        self._say = say
        self._shown = 0

    def show(self, *, whole: bool = False) -> None:
        """Print the new records since the last call; a journal that cannot be read is skipped.

        Args:
            whole: print everything again, for readers that see only the end of the log.
        """
        if not self._is_on:
            return
        lines: list[str] = []
        with contextlib.suppress(OSError):
            records = list(self._records(self._door.read(self._path, MAX_JOURNAL_BYTES)))
            first = 0 if whole else self._shown
            lines = list(_lines(records[first:], first))
            self._shown = len(records)
        for line in lines:
            self._say(line)

    def _records(self, data: bytes) -> Iterator[Record]:
        for line in data.decode("utf-8", "replace").split("\n"):
            # The command can write to the file: an invalid line must not end the phase.
            if (record := parse_record(line)) is not None and record.get("type") != "progress":
                yield self._mask(record)


def is_journal_line(line: str) -> bool:
    """Whether a log line carries the journal, and is not for people."""
    return line.startswith(PREFIX)


def read_log(lines: Iterable[str]) -> bytes | None:
    """The journal in a log, in the format of its file; None if the log has none.

    Args:
        lines: of a container's log, or of a part of it; incomplete and damaged lines are skipped.
    """
    records: list[bytes] = []
    has_line = False
    parts: list[str] = []
    left = MAX_RECORDS_BYTES
    for line in lines:
        if (match := _LINE.fullmatch(line.rstrip("\r\n"))) is None:
            continue
        first, part, of = (int(n) for n in match.group(1, 2, 3))
        parts = [*parts, match[4]] if part == len(parts) + 1 else [match[4]] if part == 1 else []
        if not parts or part != of:
            continue
        unpacked = _unpacked("".join(parts), left)
        parts = []
        if unpacked is not None and first <= len(records):
            left -= len(unpacked)
            records[first:] = unpacked.splitlines(keepends=True)
            has_line = True
    return b"".join(records) if has_line else None


_LINE = re.compile(re.escape(PREFIX) + r"([0-9]{1,7}) ([0-9]{1,4})/([0-9]{1,4}) ([A-Za-z0-9+/=]+)")


def _lines(records: list[Record], first: int) -> Iterator[str]:
    if not records:
        return
    # PID 1 imports the compression only where the cluster enables these lines.
    import base64
    import zlib

    text = "".join(json.dumps(r, ensure_ascii=True, separators=(",", ":")) + "\n" for r in records)
    data = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    parts = [data[n : n + LINE_CHARS] for n in range(0, len(data), LINE_CHARS)]
    for number, part in enumerate(parts, 1):
        yield f"{PREFIX}{first} {number}/{len(parts)} {part}"


def _unpacked(data: str, max_bytes: int) -> bytes | None:
    """The bytes in a line's data; None if it is damaged or too large."""
    import base64
    import binascii
    import zlib

    try:
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(base64.b64decode(data, validate=True), max(max_bytes, 1))
    except (binascii.Error, zlib.error):
        return None
    return unpacked if unpacker.eof else None
