"""Where the time of a run went: the cost of each task, and how much a faster task would save.

Tasks of a group run at the same time, so their records overlap. Only the longest task of a group
counts for the duration of the phase.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import attrs

from pairun.report.journal.history import InstancePast, PhasePast, TaskPast

COMMAND_ID = "user_command"
"""The id under which the user's command is listed."""


@attrs.frozen(kw_only=True)
class BlamePart:
    """A part of a task's time: an attempt, a wait, or the rest.

    Attributes:
        what: its name for people.
        seconds: its duration.
        outcome: the attempt's outcome, else empty.
    """

    what: str
    seconds: float
    outcome: str = ""


@attrs.frozen(kw_only=True)
class Cost:
    """The cost of a task.

    Attributes:
        id: its id.
        kind: task, exit handler or command.
        seconds: the time from its beginning to its end.
        measured: whether that is exact; otherwise it is the difference of two records' times.
        share: its share of the phase's duration, 0 to 1.
        beside: a longer task that ran at the same time; None if this task determines the duration.
        attempts: the number of attempts.
        parts: its parts, the longest first.
    """

    id: str
    kind: str
    seconds: float
    measured: bool
    share: float
    beside: str | None
    attempts: int
    parts: Sequence[BlamePart]


@attrs.frozen(kw_only=True)
class PhaseBlame:
    """Where the time of a phase went.

    Attributes:
        title: the phase's name for people.
        seconds: the phase's duration.
        measured: whether that is exact.
        costs: the cost of each task, the longest first.
        path: the ids of the tasks whose durations add up, in order.
        overhead: what pairun did without a task or command, and for how long: before the first
            one, between them, and after the last one.
    """

    title: str
    seconds: float
    measured: bool
    costs: Sequence[Cost]
    path: Sequence[str]
    overhead: Mapping[str, float]

    @property
    def overhead_s(self) -> float:
        """All of it together, in seconds."""
        return sum(self.overhead.values())


@attrs.frozen(kw_only=True)
class Slowest:
    """The instance that took the longest for a task.

    Attributes:
        phase: init or runtime.
        task: its id.
        label: the instance's name for people.
        seconds: the instance's time.
        median_s: the median over the instances.
        instances: how many instances ran the task.
    """

    phase: str
    task: str
    label: str
    seconds: float
    median_s: float
    instances: int


def blame(phase: PhasePast) -> PhaseBlame:
    """Compute where the time of a phase went."""
    path: list[TaskPast] = []
    beside: dict[int, str] = {}
    for group in _groups(phase.tasks):
        longest = max(group, key=lambda t: t.seconds)
        path.append(longest)
        beside |= {id(t): longest.id for t in group if t is not longest}
    command = phase.command
    busy = sum(t.seconds for t in path) + (command.seconds if command else 0.0)
    whole = max(phase.seconds, busy)
    costs = [_cost(t, whole, beside.get(id(t))) for t in phase.tasks]
    ids = [t.id for t in path]
    if command is not None:
        ids.insert(sum(not t.handler for t in path), COMMAND_ID)
        costs.append(
            Cost(
                id=COMMAND_ID, kind="command", seconds=command.seconds, measured=command.measured,
                share=_share(command.seconds, whole), beside=None, attempts=1, parts=(),
            )
        )  # fmt: skip
    return PhaseBlame(
        title=phase.title,
        seconds=phase.seconds,
        measured=phase.measured,
        costs=sorted(costs, key=lambda c: -c.seconds),
        path=ids,
        overhead=_overhead(phase, path, max(0.0, phase.seconds - busy)),
    )


def _overhead(phase: PhasePast, path: Sequence[TaskPast], whole: float) -> dict[str, float]:
    """Split the time that no task or command takes."""
    spans = [(t.began_s, t.seconds) for t in path]
    spans += [(phase.command.began_s, phase.command.seconds)] if phase.command else []
    last = "hand over" if phase.name == "init" else "end"
    if not spans:
        return {"start and end": whole}
    first_s = min(began for began, _ in spans) - phase.began_s
    end_s = phase.began_s + phase.seconds - max(began + seconds for began, seconds in spans)
    start = min(whole, max(0.0, first_s))
    end = min(whole - start, max(0.0, end_s))
    return {"start": start, "between tasks": max(0.0, whole - start - end), last: end}


def _groups(tasks: Sequence[TaskPast]) -> list[list[TaskPast]]:
    """Group tasks that ran at the same time: their records are interleaved."""
    groups: list[list[TaskPast]] = []
    end = -1
    for task in sorted(tasks, key=lambda t: t.span):
        if groups and task.span[0] < end:
            groups[-1].append(task)
        else:
            groups.append([task])
        end = max(end, task.span[1])
    return groups


def _cost(task: TaskPast, whole: float, beside: str | None) -> Cost:
    parts = [
        BlamePart(what=f"attempt {a.attempt}", seconds=a.seconds, outcome=a.outcome)
        for a in task.attempts
    ]
    left = max(0.0, task.seconds - sum(p.seconds for p in parts))
    for wait in task.waits:
        # a stop may have cut a wait short
        taken = min(wait.seconds, left)
        left -= taken
        parts.append(BlamePart(what=f"wait after attempt {wait.after}", seconds=taken))
    if parts:
        parts.append(BlamePart(what="starting and ending them", seconds=left))
    return Cost(
        id=task.id,
        kind="exit handler" if task.handler else "task",
        seconds=task.seconds,
        measured=task.measured,
        share=_share(task.seconds, whole),
        beside=beside,
        attempts=len(task.attempts),
        parts=sorted(parts, key=lambda p: -p.seconds),
    )


def _share(seconds: float, whole: float) -> float:
    return seconds / whole if whole > 0 else 0.0


def slowest(instances: Sequence[InstancePast]) -> list[Slowest]:
    """The slowest instance of each task; the largest difference from the median comes first."""
    taken: dict[tuple[str, str], dict[str, float]] = {}
    for instance in instances:
        for phase in instance.phases:
            each = [(t.id, t.seconds) for t in phase.tasks if t.attempts]
            if phase.command is not None:
                each.append((COMMAND_ID, phase.command.seconds))
            for id_, seconds in each:
                of_task = taken.setdefault((phase.name, id_), {})
                of_task[instance.label] = max(seconds, of_task.get(instance.label, 0.0))
    gains = []
    for (name, id_), by_label in taken.items():
        label = max(by_label, key=by_label.__getitem__)
        gains.append(
            Slowest(
                phase=name, task=id_, label=label, seconds=by_label[label],
                median_s=statistics.median(by_label.values()), instances=len(by_label),
            )
        )  # fmt: skip
    return sorted(gains, key=lambda s: s.median_s - s.seconds)
