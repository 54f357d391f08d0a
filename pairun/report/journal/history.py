"""The history of a phase, built from its journal: tasks, attempts, waits.

The writer measures durations with a monotonic clock. Where a writer was killed, durations come from
the times of the records and are not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from pairun.handover.journal import Record
from pairun.report.journal.records import Entry, describe

INTERRUPTED = "interrupted"
"""The outcome of what has begun and has not ended, and will not end any more."""

UNFINISHED = "unfinished"
"""The outcome of what has begun and whose end is not in the journal (yet)."""


@attrs.define(kw_only=True)
class AttemptPast:
    """One attempt.

    Attributes:
        number: from 1 on.
        outcome: how it ended.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
        details: kind, fault, message, hint, output, trace of one that failed, where known.
    """

    number: int
    outcome: str = UNFINISHED
    began_s: float = 0.0
    seconds: float = 0.0
    measured: bool = False
    details: Record = attrs.Factory(dict)

    def cut_off(self, outcome: str, at: float) -> None:
        """Take note that it never ended."""
        if not self.measured:
            self.outcome, self.seconds = outcome, max(0.0, at - self.began_s)


@attrs.define(kw_only=True)
class WaitPast:
    """A wait between two attempts.

    Attributes:
        after: the number of the attempt that failed.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it was to be.
        because: why.
    """

    after: int
    began_s: float
    seconds: float
    because: str


@attrs.define(kw_only=True)
class TaskPast:
    """One task or exit handler.

    Attributes:
        id: its id.
        name: its sentence for people.
        module: its module, where an attempt was made.
        handler: whether it is an exit handler.
        outcome: how it ended.
        of: how many attempts it had at most, where known.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
        details: kind, fault, message and hint, where known.
        attempts: those that it made.
        waits: those between them.
        span: the positions of its first and its last record in its phase.
    """

    id: str
    name: str = ""
    module: str | None = None
    handler: bool = False
    outcome: str = UNFINISHED
    of: int | None = None
    began_s: float = 0.0
    seconds: float = 0.0
    measured: bool = False
    details: Record = attrs.Factory(dict)
    attempts: list[AttemptPast] = attrs.Factory(list)
    waits: list[WaitPast] = attrs.Factory(list)
    span: tuple[int, int] = (0, 0)

    @property
    def failed(self) -> bool:
        """Whether it did not do what it was to do."""
        return self.outcome in ("failed", INTERRUPTED, UNFINISHED)

    @property
    def message(self) -> str:
        """What it said at its end."""
        return str(self.details.get("message", ""))

    def cut_off(self, outcome: str, at: float, position: int) -> None:
        """Take note that it never ended."""
        self.outcome, self.seconds = outcome, max(0.0, at - self.began_s)
        self.span = (self.span[0], position)
        for attempt in self.attempts:
            attempt.cut_off(outcome, at)


@attrs.define(kw_only=True)
class CommandPast:
    """The user's command.

    Attributes:
        exit_code: None when its end is not in the journal.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
    """

    exit_code: int | None = None
    began_s: float = 0.0
    seconds: float = 0.0
    measured: bool = False


@attrs.define(kw_only=True)
class PhasePast:
    """One run of a phase.

    Attributes:
        name: init, runtime, or empty where the journal does not say.
        start: the how manieth run of the phase in this Pod, from 1 on.
        began: seconds since the epoch, by the clock of its machine; where known.
        began_s: seconds from the journal's first record to its beginning.
        pairun: the version that ran it, where known.
        tasks: in the order in which they began; exit handlers last.
        command: the user's, where it was started.
        diagnosis: why it failed, where that was looked for: ``class``, ``fault``, ``retry``,
            ``confidence``, ``headline``, ``advice``, ``evidence``, ``time``.
        event: what the exit handlers ran for, where any did.
        event_s: seconds from the journal's first record to their beginning.
        outcome: success, failure, signal, or that there is no end.
        exit_code: where it has ended.
        message: why it ended so.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
    """

    name: str
    start: int = 1
    began: float | None = None
    began_s: float = 0.0
    pairun: str = ""
    tasks: list[TaskPast] = attrs.Factory(list)
    command: CommandPast | None = None
    diagnosis: Record | None = None
    event: str | None = None
    event_s: float = 0.0
    outcome: str = UNFINISHED
    exit_code: int | None = None
    message: str = ""
    seconds: float = 0.0
    measured: bool = False

    @property
    def title(self) -> str:
        """What people call it."""
        again = f" (start {self.start})" if self.start > 1 else ""
        return f"{describe(self.name) or 'unnamed'} phase{again}"


def phases_of(entries: Sequence[Entry]) -> list[PhasePast]:
    """The phases that a journal tells of, in their order."""
    builder = _Builder()
    for entry in entries:
        builder.take(entry)
    builder.close(UNFINISHED)
    return builder.phases


class _Builder:
    """Takes the records one by one."""

    def __init__(self) -> None:
        self.phases: list[PhasePast] = []
        self._open: PhasePast | None = None
        self._tasks: dict[str, TaskPast] = {}
        self._at = 0.0
        self._position = 0
        self._take: Mapping[str, Callable[[Record], None]] = {
            "phase_begin": self._phase_begin, "phase_end": self._phase_end,
            "attempt_begin": self._attempt_begin, "attempt_end": self._attempt_end,
            "wait": self._wait, "task_end": self._task_end,
            "handlers_begin": self._handlers_begin,
            "command_begin": self._command_begin, "command_end": self._command_end,
            "diagnosis": self._diagnosis,
        }  # fmt: skip

    def take(self, entry: Entry) -> None:
        """Take a record into account."""
        if entry.type == "phase_begin":
            # what had not ended by then will not end; how long it took nobody knows
            self.close(INTERRUPTED)
        self._at = entry.at
        self._position += 1
        self._take[entry.type](entry.data)

    def close(self, outcome: str) -> None:
        """End the phase that is open, if one is, without a record of its end."""
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
        """The phase that is open; one whose beginning is not in the journal has no name."""
        return self._open or self._begin("")

    def _begin(self, name: str) -> PhasePast:
        start = 1 + sum(p.name == name for p in self.phases)
        self._open = PhasePast(name=name, start=start, began_s=self._at)
        self.phases.append(self._open)
        return self._open

    def _phase_begin(self, data: Record) -> None:
        phase = self._begin(data["phase"])
        phase.began = data.get("time")
        phase.pairun = data.get("pairun", "")

    def _phase_end(self, data: Record) -> None:
        if self._open is not None and self._open.name not in ("", data["phase"]):
            self.close(INTERRUPTED)
        phase = self._open or self._begin(data["phase"])
        phase.name = data["phase"]
        phase.outcome, phase.exit_code = data["outcome"], data["exit_code"]
        phase.message = data.get("message", "")
        phase.seconds, phase.measured = data["seconds"], True
        self.close(INTERRUPTED)

    def _handlers_begin(self, data: Record) -> None:
        # what came before is over by now, though its process was killed before it could say so
        self._cut_off(INTERRUPTED)
        phase = self._phase()
        phase.event, phase.event_s = data["event"], self._at

    def _command_begin(self, _data: Record) -> None:
        self._cut_off(INTERRUPTED)
        self._phase().command = CommandPast(began_s=self._at)

    def _command_end(self, data: Record) -> None:
        phase, seconds = self._phase(), data["seconds"]
        began_s = phase.command.began_s if phase.command else max(0.0, self._at - seconds)
        phase.command = CommandPast(
            exit_code=data["exit_code"], began_s=began_s, seconds=seconds, measured=True
        )

    def _diagnosis(self, data: Record) -> None:
        names = ("class", "fault", "retry", "confidence", "headline", "advice", "evidence")
        self._phase().diagnosis = {"time": data.get("time"), **{n: data.get(n) for n in names}}

    # --- a task ---

    def _task(self, data: Record) -> TaskPast:
        phase = self._phase()
        id_ = data["task"]
        task = self._tasks.get(id_)
        if task is None:
            task = TaskPast(id=id_, began_s=self._at, span=(self._position, self._position))
            self._tasks[id_] = task
            phase.tasks.append(task)
        task.name = data.get("name", task.name)
        task.handler = data.get("handler", task.handler)
        task.of = data.get("of", task.of)
        return task

    def _attempt_begin(self, data: Record) -> None:
        task = self._task(data)
        task.module = data.get("module", task.module)
        task.attempts.append(AttemptPast(number=data["attempt"], began_s=self._at))

    def _attempt_end(self, data: Record) -> None:
        task = self._task(data)
        attempt = next((a for a in reversed(task.attempts) if a.number == data["attempt"]), None)
        if attempt is None:
            began_s = max(0.0, self._at - data["seconds"])
            attempt = AttemptPast(number=data["attempt"], began_s=began_s)
            task.attempts.append(attempt)
        attempt.outcome, attempt.seconds, attempt.measured = data["outcome"], data["seconds"], True
        names = ("kind", "fault", "message", "hint", "output", "trace", "exit_code")
        attempt.details = {k: data[k] for k in names if k in data}

    def _wait(self, data: Record) -> None:
        task = self._task(data)
        after = task.attempts[-1].number if task.attempts else 0
        because = data.get("because", "")
        task.waits.append(
            WaitPast(after=after, began_s=self._at, seconds=data["seconds"], because=because)
        )

    def _task_end(self, data: Record) -> None:
        task = self._task(data)
        task.outcome, task.seconds, task.measured = data["outcome"], data["seconds"], True
        # Where its end is its only record, that record was written when it had ended.
        task.began_s = min(task.began_s, max(0.0, self._at - task.seconds))
        names = ("kind", "fault", "message", "hint", "trace", "exit_code")
        task.details = {k: data[k] for k in names if k in data}
        task.span = (task.span[0], self._position)
        del self._tasks[data["task"]]
