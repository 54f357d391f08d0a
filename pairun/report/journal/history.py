"""What a journal records: the instance, its phases, tasks, attempts and waits, and the user's command.

The writer measures durations with a monotonic clock. If a writer was killed, durations are the
differences of the records' times, which are not exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import attrs

from pairun.report.journal.records import describe
from pairun.volume.journal import Record

INTERRUPTED_OUTCOME = "interrupted"
"""The outcome of a task or phase without an end, if later records show that it has stopped."""

UNFINISHED = "unfinished"
"""The outcome of a task or phase without an end, if it may still run."""


# A class has the fields of its JSON form, in their order (docs/report.md).


@attrs.define(kw_only=True)
class AttemptPast:
    """One attempt.

    Attributes:
        attempt: 1 for the first attempt.
        outcome: how it ended.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
        kind: of its failure, as the fields below; None if unknown.
    """

    attempt: int
    outcome: str = UNFINISHED
    began_s: float = 0.0
    seconds: float = 0.0
    measured: bool = False
    kind: str | None = None
    fault: str | None = None
    message: str | None = None
    hint: str | None = None
    exit_code: int | None = None
    output: list[str] = attrs.field(factory=list)
    trace: str | None = None

    def cut_off(self, outcome: str, at: float) -> None:
        """Record that it has no end."""
        if not self.measured:
            self.outcome, self.seconds = outcome, max(0.0, at - self.began_s)


@attrs.define(kw_only=True)
class WaitPast:
    """A wait between two attempts.

    Attributes:
        after: the number of the attempt that failed.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took; its planned duration if nothing after it is recorded.
        because: the reason.
    """

    after: int
    began_s: float
    seconds: float
    because: str


@attrs.frozen(kw_only=True)
class StopPast:
    """A stop signal that PID 1 received.

    Attributes:
        at_s: when it came, in seconds from the journal's first record.
        signal: its name.
        sender: ``outside``, ``process``, ``kernel``, or empty if unknown.
        command: the sender's command line, if it is a process of the container and known.
        origin: the sender, as text; empty if unknown.
    """

    at_s: float
    signal: str
    sender: str
    command: str
    origin: str


@attrs.define(kw_only=True)
class TaskPast:
    """One task or exit handler.

    Attributes:
        id: its id.
        name: its description for people.
        module: its module, if an attempt started.
        handler: whether it is an exit handler.
        outcome: how it ended.
        kind: of its failure, as the fields below; None if unknown.
        began_s: seconds from the journal's first record to its beginning.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
        of: the largest number of attempts, if known.
        attempts: its attempts.
        waits: the waits between them.
        settings: who added it (``layer``, ``where``), and what other layers set (``set``); None if
            the journal does not say.
        span: the positions of its first and last record in the journal.
    """

    id: str
    name: str = ""
    module: str | None = None
    handler: bool = False
    outcome: str = UNFINISHED
    kind: str | None = None
    fault: str | None = None
    message: str | None = None
    hint: str | None = None
    exit_code: int | None = None
    trace: str | None = None
    began_s: float = 0.0
    seconds: float = 0.0
    measured: bool = False
    of: int | None = None
    attempts: list[AttemptPast] = attrs.field(factory=list)
    waits: list[WaitPast] = attrs.field(factory=list)
    settings: Record | None = None
    span: tuple[int, int] = (0, 0)

    @property
    def failed(self) -> bool:
        """Whether it failed or has no end."""
        return self.outcome in ("failed", INTERRUPTED_OUTCOME, UNFINISHED)

    def end_wait(self, at: float) -> None:
        """Shorten a wait that no attempt follows: a stop at ``at`` may have ended it early."""
        if not self.waits or (self.attempts and self.attempts[-1].attempt > self.waits[-1].after):
            return
        wait = self.waits[-1]
        # If nothing follows the record of the wait, only its planned duration is known.
        if at > wait.began_s:
            wait.seconds = min(wait.seconds, at - wait.began_s)

    def cut_off(self, outcome: str, at: float, position: int) -> None:
        """Record that it has no end."""
        self.outcome, self.seconds = outcome, max(0.0, at - self.began_s)
        self.span = (self.span[0], position)
        self.end_wait(at)
        for attempt in self.attempts:
            attempt.cut_off(outcome, at)


@attrs.define(kw_only=True)
class CommandPast:
    """The user's command.

    Attributes:
        exit_code: its exit code; None if the journal does not contain its end.
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
        name: init, runtime, or empty if the journal does not name it.
        start: 1 for the first run of the phase in this Pod, 2 for the second.
        began: seconds since the epoch, by the clock of its machine, if known.
        began_s: seconds from the journal's first record to its beginning.
        pairun: the version of pairun, if known.
        outcome: success, failure, signal, `INTERRUPTED_OUTCOME` or `UNFINISHED`.
        exit_code: the phase's exit code, if it has ended.
        message: the reason for the outcome.
        seconds: how long it took.
        measured: whether ``seconds`` was measured by the writer.
        handlers_for: the event for which exit handlers ran, or None.
        handlers_began_s: seconds from the journal's first record to their beginning.
        stops: the stop signals that PID 1 received.
        tasks: in the order in which they began; exit handlers last.
        command: the user's command, if it was started.
        diagnosis: why the command failed, if diagnosed: ``class``, ``fault``, ``retry``,
            ``confidence``, ``headline``, ``advice``, ``evidence``, ``time``.
    """

    name: str
    start: int = 1
    began: float | None = None
    began_s: float = 0.0
    pairun: str = ""
    outcome: str = UNFINISHED
    exit_code: int | None = None
    message: str = ""
    seconds: float = 0.0
    measured: bool = False
    handlers_for: str | None = None
    handlers_began_s: float | None = None
    stops: list[StopPast] = attrs.field(factory=list)
    tasks: list[TaskPast] = attrs.field(factory=list)
    command: CommandPast | None = None
    diagnosis: Record | None = None

    @property
    def title(self) -> str:
        """The phase's name for people."""
        again = f" (start {self.start})" if self.start > 1 else ""
        return f"{describe(self.name) or 'unnamed'} phase{again}"


WORST_FIRST = ("failed", "stopped", UNFINISHED, "no journal", "succeeded")


@attrs.frozen(kw_only=True)
class InstancePast:
    """One instance, or the Pod that a journal belongs to.

    Attributes:
        label: its name for people.
        journal: the journal's path, or None if it has none.
        logs: the files with its output.
        phases: its phases.
        notes: problems with reading the journal, for people.
        ignored: how many records of each unknown type were skipped.
        known: other known facts about an instance without a journal, as text.
        by_pod: outcome and exit code by its Pod, for an instance in a cluster without a journal.
        read_output: reads the end of the command's output, masked; empty if there is none.
    """

    label: str
    journal: str | None
    logs: Sequence[str] = ()
    phases: Sequence[PhasePast] = ()
    notes: Sequence[str] = ()
    ignored: Counter[str] = attrs.field(factory=Counter)
    known: str = ""
    by_pod: tuple[str, int | None] | None = None
    read_output: Callable[[], str] = str

    @property
    def outcome(self) -> str:
        """succeeded, failed, stopped, unfinished or no journal."""
        if self.journal is None:
            return self.by_pod[0] if self.by_pod else "no journal"
        if not self.phases:
            return UNFINISHED
        last = self.phases[-1]
        ended = {"failure": "failed", "signal": "stopped"}.get(last.outcome)
        if ended or last.outcome != "success":
            return ended or UNFINISHED
        return "succeeded" if last.name != "init" else UNFINISHED

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last phase; None if it has no end, and between init and runtime."""
        if self.by_pod is not None:
            return self.by_pod[1]
        if not self.phases or self.outcome == UNFINISHED:
            return None
        return self.phases[-1].exit_code

    @property
    def seconds(self) -> float:
        """The total duration of its phases, in seconds."""
        return sum(p.seconds for p in self.phases)

    @property
    def began(self) -> float:
        """The time of its first record in seconds since the epoch, by its machine's clock; or 0."""
        return next((p.began - p.began_s for p in self.phases if p.began is not None), 0.0)

    @property
    def state(self) -> str:
        """How it ended, as text."""
        if self.journal is None:
            return f"no journal: {self.known or 'no phase has begun'}"
        if not self.phases:
            return "nothing recorded: no phase has begun"
        last = self.phases[-1]
        if self.outcome != UNFINISHED:
            return f"{self.outcome}, exit code {last.exit_code}"
        if last.outcome == "success":
            return "init is done; the runtime phase has not begun"
        return f"no end of the {last.title} is recorded: it still runs, or was killed"

    def result_key(self) -> tuple[object, ...]:
        """A key that is equal for instances with the same result."""
        return (
            self.outcome,
            self.by_pod,
            tuple(self.notes),
            *(
                (p.name, p.outcome, p.exit_code, p.command and p.command.exit_code,
                 p.diagnosis and p.diagnosis["class"],
                 *((t.id, t.outcome, t.kind, len(t.attempts) > 1) for t in p.tasks))
                for p in self.phases
            ),
        )  # fmt: skip


def alike(instances: Sequence[InstancePast]) -> list[list[InstancePast]]:
    """Group instances with the same result: failed groups first, the slowest first in each."""
    groups: dict[tuple[object, ...], list[InstancePast]] = {}
    for instance in instances:
        groups.setdefault(instance.result_key(), []).append(instance)
    for group in groups.values():
        group.sort(key=lambda i: -i.seconds)
    return sorted(groups.values(), key=lambda g: WORST_FIRST.index(g[0].outcome))
