"""The journal: what happened, append-only, one JSON object per line.

It is a record for reports, never a source of truth. Schema 1; every record has ``schema``,
``type`` and ``time`` (seconds since the epoch):

- ``phase_begin``: phase, pairun, tasks
- ``settings``: phase, task, layer, where (the layer and place that add the task), set (settings by
  other layers: path, value, layer, where, was; or source, a parameter or variable); init writes
  one for each task of both phases
- ``attempt_begin``: task, name, module, attempt, of, handler
- ``attempt_end``: task, attempt, of, outcome, seconds, and for a failure kind, fault, message,
  hint, output (the last lines it printed), trace (of an unexpected error), exit_code (of a program
  that failed)
- ``progress``: task, attempt, bytes, total (or null), file (or ""): what a task that moves much
  data has transferred so far; at most one every few seconds, and one at the end of the attempt;
  none from a task that does not report progress
- ``wait``: task, seconds, because
- ``task_end``: task, name, outcome, attempts, of, seconds, message, handler, and for a failure
  kind, fault, hint, exit_code, trace (of an unexpected error before the first attempt)
- ``handlers_begin``: event, count
- ``command_begin``, ``command_end``: the user's command, in runtime; its exit_code, seconds
- ``diagnosis``: why the command failed: class, fault, retry, confidence, headline, advice, evidence,
  details, alternatives, rule
- ``stop``: PID 1 received a stop signal: signal, sender (outside the container, one of its
  processes, the kernel), the sender's uid and pid if known, and its command if it still runs
- ``retry_coming``: the platform's note of a coming retry has appeared: file
- ``event``: an Event of the Pod for operators: reason, message, and because if it was not sent
- ``phase_end``: phase, outcome, exit_code, seconds, message

PID 1 writes the records of the command and of the end of its phase. So a runtime phase has its end
in the journal even if the process that ran the tasks was killed. Readers ignore unknown fields and
types.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from io import BufferedReader
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.volume.door import Door

JOURNAL_SCHEMA = 1

CONDITION_IS_FALSE = "its condition is false"
"""The message of a task that was skipped because its `when` is false."""

Record = dict[str, Any]
Emit = Callable[[Record], None]

_WORDS = frozenset({"type", "phase", "outcome", "kind", "fault", "event"})
"""Fields whose values pairun chooses from short lists: a secret that equals one of these words
must not break the record."""


class Journal:
    """Appends records to a file; a write that fails loses records but never fails the job.

    Args:
        path: the file; its directory must exist.
        mask: returns a record without secrets in its values (`Vault.record`).
    """

    def __init__(
        self,
        door: Door,
        path: str,
        mask: Callable[[Mapping[str, Any]], Record],
        complain: Callable[[str], None],
    ) -> None:
        self._mask = mask
        self._complain = complain
        self._path = path
        self._fd: int | None = None
        try:
            self._fd = _open(door, path)
        except OSError as e:
            complain(f"cannot write the journal: {path}: {e.strerror}")

    def __call__(self, record: dict[str, Any]) -> None:
        """Append one record; ``output`` records are dropped."""
        if self._fd is None or record["type"] == "output":
            return
        try:
            masked = self._mask({k: v for k, v in record.items() if k not in _WORDS})
        except Exception as e:  # noqa: BLE001 - a fault of masking costs the journal, never the job
            self.close()
            self._complain(f"the journal ends here: {self._path}: cannot mask: {type(e).__name__}")
            return
        full = {"schema": JOURNAL_SCHEMA, "time": round(time.time(), 3), **record, **masked}
        data = json.dumps(full, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            # One write per record: if the process is killed, only the last line can be incomplete.
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


def read_journal(path: str) -> list[Record]:
    """The records of a journal; incomplete and invalid lines are skipped.

    Args:
        path: `pairun.base.paths.journal_file` of a volume; links in the volume are not followed.
    """
    path = os.path.abspath(path)
    door = Door(os.path.dirname(os.path.dirname(os.path.dirname(path))))
    try:
        lines = door.read(path).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    return records_of(lines)


def records_of(lines: Iterable[bytes | str]) -> list[Record]:
    """The records in lines of a journal; incomplete and invalid lines are skipped."""
    return [
        r for r in map(parse_record, lines) if r is not None and r.get("schema") == JOURNAL_SCHEMA
    ]


def _open(door: Door, path: str) -> int:
    """Open a journal for appending.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    fd = door.open_append(path)
    with contextlib.suppress(OSError):
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            # A killed writer can leave an incomplete line, which must not spoil the next record.
            os.write(fd, b"\n")
    return fd


_READ_BYTES = 256 * 1024
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
            data = self._file.read1(_READ_BYTES)
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
