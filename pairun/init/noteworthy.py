"""Selects the records of an init phase that matter to an operator who watches Events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pairun.kube.events import Note
from pairun.module import format_duration

LATE_S = 60.0
"""Seconds after which a task that a retry fixed is reported, and a gang counts as incomplete."""

REPEAT_S = 600.0
"""Seconds after which an incomplete gang is reported again."""

MOST = 10
"""The maximum number of Events of an init phase."""


class Noteworthy:
    """Reads the records of a phase, and selects those that deserve an Event.

    Args:
        clock: returns seconds; `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent = 0
        self._barrier = ""
        self._gang = ""
        self._due: float | None = None
        self._last_failure: dict[str, str] = {}

    def note_of(self, record: Mapping[str, Any]) -> Note | None:
        """The Event for a record, or None."""
        kind, task = record.get("type"), str(record.get("task"))
        if kind == "attempt_begin" and record.get("module") == "barrier" and self._due is None:
            self._barrier, self._due = task, self._clock() + LATE_S
        elif kind == "output" and task == self._barrier:
            self._gang = str(record.get("line"))
        elif kind == "attempt_end" and record.get("outcome") == "failed":
            self._last_failure[task] = str(record.get("message"))
        elif kind == "task_end":
            if task == self._barrier:
                self._due = None
            return self._counted(self._of_end(record, task))
        return None

    def due_s(self) -> float | None:
        """Seconds until `overdue` has an Event; None if it waits for nothing."""
        return None if self._due is None else max(0.0, self._due - self._clock())

    def overdue(self) -> Note | None:
        """The Event about a gang that has long been incomplete; the next one is due later."""
        if self._due is None or self._clock() < self._due:
            return None
        self._due = self._clock() + REPEAT_S
        missing = self._gang or "no instance has an address yet"
        return self._counted(Note("GangIncomplete", f"waiting for the gang: {missing}", True))

    def _of_end(self, record: Mapping[str, Any], task: str) -> Note | None:
        outcome, seconds = record.get("outcome"), float(record.get("seconds") or 0)
        if outcome == "failed":
            hint = f"; {record['hint']}" if record.get("hint") else ""
            return Note("TaskFailed", f"{task} failed: {record.get('message')}{hint}", True)
        attempts = int(record.get("attempts") or 0)
        if attempts > 1 and seconds >= LATE_S and outcome in ("ok", "changed"):
            message = f"{task} succeeded at attempt {attempts} after {format_duration(seconds)}"
            return Note("TaskHealed", f"{message}; before: {self._last_failure.get(task)}", False)
        return None

    def _counted(self, note: Note | None) -> Note | None:
        if note is None or self._sent >= MOST:
            return None
        self._sent += 1
        return note
