"""The journal: what happened, append-only, one JSON object per line.

It is a record for reports and never a source of truth. Schema 1; every record has ``schema``,
``type`` and ``time`` (seconds since the epoch):

- ``phase_begin``: phase, pairun, tasks
- ``attempt_begin``: task, name, module, attempt, of, handler
- ``attempt_end``: task, attempt, of, outcome, seconds, and for a failure kind, fault, message,
  hint, output (the last lines it printed), trace (of an error that no one foresaw)
- ``progress``: task, attempt, bytes, total (or null), file (or ""): what a task that moves much
  data has done so far; one every few seconds at most and one at the end of the attempt, none from
  a task that does not tell
- ``wait``: task, seconds, because
- ``task_end``: task, name, outcome, attempts, of, seconds, message, handler, and for a failure
  kind, fault, hint, trace (of an error that no one foresaw before the first attempt)
- ``handlers_begin``: event, count
- ``command_begin``, ``command_end``: of the user's command, in runtime; its exit_code, seconds
- ``diagnosis``: why the command failed: class, fault, retry, confidence, headline, advice, evidence,
  details, alternatives, rule
- ``stop``: PID 1 was told to stop: signal, sender (outside the container, a process of it, the
  kernel), where there is one its uid and pid, and its command while it lives
- ``phase_end``: phase, outcome, exit_code, seconds, message

PID 1 writes what is said of the command and of the end of its phase; so the end of a runtime phase
is there also when the process that ran the tasks was killed. What a reader does not know of, it
ignores.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pairun.base.journal import SCHEMA, Journal

__all__ = ["SCHEMA", "Emit", "Journal", "Record", "read_journal"]

Record = dict[str, Any]
Emit = Callable[[Record], None]


def read_journal(path: str) -> list[Record]:
    """The records of a journal; a torn or foreign line is left out."""
    records = []
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict) and record.get("schema") == SCHEMA:
                    records.append(record)
    except OSError:
        return []
    return records
