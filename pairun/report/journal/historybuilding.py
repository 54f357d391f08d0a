"""Builds the phases of a journal from its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pairun.report.journal.history import (
    INTERRUPTED_OUTCOME,
    UNFINISHED,
    AttemptPast,
    CommandPast,
    PhasePast,
    StopPast,
    TaskPast,
    WaitPast,
)
from pairun.report.journal.records import JournalEntry
from pairun.volume.journal import Record


def phases_of(entries: Sequence[JournalEntry]) -> list[PhasePast]:
    """Build the phases of a journal, in order."""
    builder = _Builder()
    for entry in entries:
        builder.take(entry)
    builder.close(UNFINISHED)
    return builder.phases


class _Builder:
    """Builds phases from records, one record at a time."""

    def __init__(self) -> None:
        self.phases: list[PhasePast] = []
        self._open: PhasePast | None = None
        self._tasks: dict[str, TaskPast] = {}
        # (phase, task) to who set what; init records it for both phases
        self._set_by: dict[tuple[str, str], Record] = {}
        self._at = 0.0
        self._position = 0
        self._take: Mapping[str, Callable[[Record], None]] = {
            "phase_begin": self._phase_begin, "phase_end": self._phase_end,
            "attempt_begin": self._attempt_begin, "attempt_end": self._attempt_end,
            "wait": self._wait, "task_end": self._task_end,
            "handlers_begin": self._handlers_begin,
            "command_begin": self._command_begin, "command_end": self._command_end,
            "diagnosis": self._diagnosis, "settings": self._settings, "stop": self._stop,
        }  # fmt: skip

    def take(self, entry: JournalEntry) -> None:
        """Add a record."""
        if entry.type == "phase_begin":
            # a task without an end was interrupted, at an unknown time
            self.close(INTERRUPTED_OUTCOME)
        self._at = entry.at
        self._position += 1
        self._take[entry.type](entry.data)

    def close(self, outcome: str) -> None:
        """Close the open phase, if any, when its end was not recorded."""
        phase = self._open
        if phase is None:
            return
        self._cut_off(outcome)
        if phase.command is not None and not phase.command.measured:
            phase.command.seconds = max(0.0, self._at - phase.command.began_s)
        if not phase.measured:
            phase.outcome, phase.seconds = outcome, self._at - phase.began_s
        self._open = None

    def _cut_off(self, outcome: str) -> None:
        for task in self._tasks.values():
            task.cut_off(outcome, self._at, self._position)
        self._tasks = {}

    # --- the phase ---

    def _phase(self) -> PhasePast:
        """The open phase; without a name if the journal lacks its beginning."""
        return self._open or self._begin("")

    def _begin(self, name: str) -> PhasePast:
        start = 1 + sum(p.name == name for p in self.phases)
        self._open = PhasePast(name=name, start=start, began_s=self._at)
        self.phases.append(self._open)
        return self._open

    def _phase_begin(self, data: Record) -> None:
        phase = self._begin(data["phase"])
        phase.began = data.get("time")
        _fill(phase, data, "pairun")

    def _phase_end(self, data: Record) -> None:
        if self._open is not None and self._open.name not in ("", data["phase"]):
            self.close(INTERRUPTED_OUTCOME)
        phase = self._open or self._begin(data["phase"])
        phase.name, phase.measured = data["phase"], True
        _fill(phase, data, "outcome", "exit_code", "message", "seconds")
        self.close(INTERRUPTED_OUTCOME)

    def _handlers_begin(self, data: Record) -> None:
        # earlier tasks have ended; a killed process may not have recorded it
        self._cut_off(INTERRUPTED_OUTCOME)
        phase = self._phase()
        phase.handlers_for, phase.handlers_began_s = data["event"], self._at

    def _command_begin(self, _data: Record) -> None:
        self._cut_off(INTERRUPTED_OUTCOME)
        self._phase().command = CommandPast(began_s=self._at)

    def _command_end(self, data: Record) -> None:
        phase = self._phase()
        began_s = max(0.0, self._at - data["seconds"])
        phase.command = phase.command or CommandPast(began_s=began_s)
        phase.command.measured = True
        _fill(phase.command, data, "exit_code", "seconds")

    def _diagnosis(self, data: Record) -> None:
        self._phase().diagnosis = {name: data.get(name) for name in _DIAGNOSIS}

    def _stop(self, data: Record) -> None:
        sender, command = data.get("sender", ""), data.get("command", "")
        origin = {
            "outside": "from outside the container",
            "kernel": "from the kernel",
            "process": f"from {command or 'a process of the container'}",
        }.get(sender, "")
        stop = StopPast(
            at_s=self._at, signal=data["signal"], sender=sender, command=command, origin=origin
        )
        self._phase().stops.append(stop)

    # --- a task ---

    def _settings(self, data: Record) -> None:
        settings = {name: data[name] for name in ("layer", "where", "set")}
        self._set_by[data["phase"], data["task"]] = settings

    def _task(self, data: Record) -> TaskPast:
        phase, id_ = self._phase(), data["task"]
        task = self._tasks.get(id_)
        if task is None:
            task = TaskPast(id=id_, began_s=self._at, span=(self._position, self._position))
            task.settings = self._set_by.get((phase.name, id_))
            self._tasks[id_] = task
            phase.tasks.append(task)
        _fill(task, data, "name", "handler", "of")
        return task

    def _attempt_begin(self, data: Record) -> None:
        task = self._task(data)
        _fill(task, data, "module")
        task.attempts.append(AttemptPast(attempt=data["attempt"], began_s=self._at))

    def _attempt_end(self, data: Record) -> None:
        task = self._task(data)
        attempt = next((a for a in reversed(task.attempts) if a.attempt == data["attempt"]), None)
        if attempt is None:
            began_s = max(0.0, self._at - data["seconds"])
            attempt = AttemptPast(attempt=data["attempt"], began_s=began_s)
            task.attempts.append(attempt)
        attempt.measured = True
        _fill(attempt, data, "outcome", "seconds", "output", *_FAILURE)

    def _wait(self, data: Record) -> None:
        task = self._task(data)
        after = task.attempts[-1].attempt if task.attempts else 0
        because = data.get("because", "")
        task.waits.append(
            WaitPast(after=after, began_s=self._at, seconds=data["seconds"], because=because)
        )

    def _task_end(self, data: Record) -> None:
        task = self._task(data)
        task.measured = True
        _fill(task, data, "outcome", "seconds", *_FAILURE)
        task.end_wait(self._at)
        # The end may be a task's only record; then it also gives the beginning.
        task.began_s = min(task.began_s, max(0.0, self._at - task.seconds))
        task.span = (task.span[0], self._position)
        del self._tasks[data["task"]]


_FAILURE = ("kind", "fault", "message", "hint", "trace", "exit_code")
_DIAGNOSIS = (
    "time", "class", "fault", "retry", "confidence", "headline", "advice", "evidence",
)  # fmt: skip


def _fill(past: object, data: Record, *names: str) -> None:
    """Take over the fields that a record has."""
    for name in names:
        if name in data:
            setattr(past, name, data[name])
