"""What an instance does now, from the records of its journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import attrs

from pairun.base.escapes import visible
from pairun.base.fields import Count, between, field_of
from pairun.report.live.view import COMMAND_ACTIVITY, Activity
from pairun.volume.journal import Record

MOST_TASKS = 100
"""Ignore further tasks that run at the same time."""

_LONGEST_TEXT = 200
_Moment = Annotated[float, between(0, 2**53)]


@attrs.define(kw_only=True)
class _TaskNow:
    """A task that has begun and not ended; times are seconds since the epoch."""

    began: float
    attempt: int = 0
    of: int = 0
    attempt_began: float = 0.0
    retry_at: float | None = None
    done: int | None = None
    total: int | None = None


@attrs.frozen(kw_only=True)
class TaskLimits:
    """The time limits of a task, in seconds; None for no limit.

    Attributes:
        attempt_s: the limit of one attempt.
        task_s: the limit of all attempts and waits.
    """

    attempt_s: float | None = None
    task_s: float | None = None


class InstanceNow:
    """Follows one instance.

    A job can write to the journal, so every field is checked; an invalid one counts as missing.

    Args:
        label: role and number.
        limits: the time limits of each task.
    """

    def __init__(self, label: str, limits: Mapping[str, TaskLimits]) -> None:
        self.label = label
        self.phase = "init"
        self.stopping = False
        self._limits = limits
        self._since = time.time()
        self._tasks: dict[str, _TaskNow] = {}
        self._command_began: float | None = None
        self._doing = "starting"

    def begin(self, phase: str) -> None:
        """Record that a phase starts; its first journal record comes later."""
        self.phase, self._since, self._doing = phase, time.time(), "starting"
        self._tasks.clear()
        self._command_began = None

    def take(self, record: Record) -> None:
        """Process one record of the journal."""
        taken = self._TAKEN.get(str(record.get("type")))
        if taken is not None:
            taken(self, record)

    def activity(self) -> Activity:
        """What the instance does now."""
        now = time.time()
        if self._tasks:
            return self._of_tasks(now)
        began = self._command_began
        doing, since = (self._doing, self._since) if began is None else (COMMAND_ACTIVITY, began)
        detail = "stopping" if self.stopping else ""
        return Activity(
            label=self.label, phase=self.phase, doing=doing, detail=detail, elapsed_s=now - since
        )

    def _of_tasks(self, now: float) -> Activity:
        """Of parallel tasks, show the numbers of the one that began first."""
        id_, first = min(self._tasks.items(), key=lambda item: item[1].began)
        more = f" +{len(self._tasks) - 1}" if len(self._tasks) > 1 else ""
        limits = self._limits.get(id_, TaskLimits())
        detail = f"attempt {first.attempt} of {first.of}" if first.of > 1 else ""
        since, limit = first.attempt_began, limits.attempt_s
        if limit is None:
            since, limit = first.began, limits.task_s
        waiting = first.retry_at is not None and first.retry_at > now
        if waiting and first.retry_at is not None:
            left_s = max(1, round(first.retry_at - now))
            detail = f"attempt {first.attempt + 1} of {first.of} in {left_s} s"
        if self.stopping:
            detail = "stopping"
        return Activity(
            label=self.label,
            phase=self.phase,
            doing=f"{id_}{more}",
            detail=detail,
            elapsed_s=now - since,
            limit_s=limit,
            done=None if waiting else first.done,
            total=first.total,
            troubled=first.attempt > 1 or waiting,
        )

    # --- the record types that matter ---

    def _phase_begin(self, record: Record) -> None:
        self._tasks.clear()
        self._doing = "between tasks"
        self._since = _time(record)

    def _attempt_begin(self, record: Record) -> None:
        if len(self._tasks) >= MOST_TASKS:
            return
        began = _time(record)
        task = self._tasks.setdefault(_text(record, "task"), _TaskNow(began=began))
        task.attempt, task.of = (
            field_of(record, "attempt", Count) or 1,
            field_of(record, "of", Count) or 1,
        )
        task.attempt_began, task.retry_at, task.done, task.total = began, None, None, None

    def _progress(self, record: Record) -> None:
        if task := self._tasks.get(_text(record, "task")):
            task.done, task.total = (
                field_of(record, "bytes", Count),
                field_of(record, "total", Count),
            )

    def _wait(self, record: Record) -> None:
        if task := self._tasks.get(_text(record, "task")):
            task.retry_at = _time(record) + (field_of(record, "seconds", _Moment, 0.0))

    def _task_end(self, record: Record) -> None:
        self._tasks.pop(_text(record, "task"), None)
        self._since = _time(record)

    def _command_begin(self, record: Record) -> None:
        self._command_began = _time(record)

    def _command_end(self, record: Record) -> None:
        self._command_began = None
        self._doing, self._since = "ending", _time(record)

    def _handlers_begin(self, record: Record) -> None:
        self._doing, self._since = "exit handlers", _time(record)

    _TAKEN: ClassVar[Mapping[str, Callable[[InstanceNow, Record], None]]] = {
        "phase_begin": _phase_begin,
        "attempt_begin": _attempt_begin,
        "progress": _progress,
        "wait": _wait,
        "task_end": _task_end,
        "command_begin": _command_begin,
        "command_end": _command_end,
        "handlers_begin": _handlers_begin,
    }


def _text(record: Mapping[str, Any], key: str) -> str:
    return visible(" ".join(str(record.get(key) or "").split()))[:_LONGEST_TEXT]


def _time(record: Mapping[str, Any]) -> float:
    """When a record was written; never in the future."""
    now = time.time()
    written: float = field_of(record, "time", _Moment, now)
    return min(now, written)
