"""The report on a run, and where its time went, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pairun.base.durations import shown_duration
from pairun.report.journal.blame import Cost, PhaseBlame, Slowest, blame, slowest
from pairun.report.journal.history import (
    AttemptPast,
    CommandPast,
    InstancePast,
    PhasePast,
    TaskPast,
    alike,
)
from pairun.report.journal.records import describe
from pairun.report.journal.runoutcome import (
    FirstFailure,
    first_failure,
    stop_by_person,
    success_despite_failures,
)
from pairun.report.shown import fit, known_kind
from pairun.report.tint import Printer
from pairun.volume.journal import Record

_MOST_TASKS = 200
"""In a phase with more tasks, those that succeeded in the first attempt are only counted."""

_MOST_LINES = 5
_COLORS = {
    "ok": "green", "changed": "yellow", "skipped": "dim", "ignored": "cyan", "failed": "red",
    "interrupted": "red", "unfinished": "red", "success": "green", "failure": "red",
    "signal": "red",
}  # fmt: skip


class JournalText(Printer):
    """Prints what happened to instances; a journal has no secrets."""

    def wrapped(self, text: str, indent: str = "", color: str = "", hang: str = "  ") -> None:
        """Wrap and print a foreign text."""
        super().wrapped(describe(text), indent, color, hang)

    def run(self, instances: Sequence[InstancePast]) -> None:
        """Print all instances: the first failure first, then the other failures.

        Instances with the same result are printed once.
        """
        first = first_failure(instances)
        if len(instances) > 1:
            counts = Counter(i.outcome for i in instances)
            outcomes = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
            self.line(f"{len(instances)} instances: {outcomes}", "bold")
            if despite := success_despite_failures(instances):
                self.wrapped(despite, "")
            if first is not None and len(instances) - counts["succeeded"] > 1:
                self.wrapped(f"first to fail: {first.label}: {first.why}", "")
            if (stop := stop_by_person(instances)) is not None:
                self.wrapped(stop, "")
            self.line()
        for n, group in enumerate(_led_by(first, alike(instances))):
            if n:
                self.line()
            self._group(group)

    def _group(self, group: Sequence[InstancePast]) -> None:
        first = group[0]
        color = {"succeeded": "green", "failed": "red", "stopped": "red"}.get(first.outcome, "")
        state = self.style(first.state, color)
        self.line(f"{self.style(describe(first.label), 'bold')}: {state}")
        if len(group) > 1:
            others = sorted((i.label for i in group[1:]), key=lambda x: (len(x), x))
            more = f" and {len(others) - 8} more" if len(others) > 8 else ""
            self.wrapped(f"same result: {', '.join(others[:8])}{more}", "  ", "dim")
        for note in first.notes:
            self.wrapped(f"note: {note}", "  ", "yellow")
        for phase in first.phases:
            self._phase(phase)
        places = [first.journal] if first.journal not in (None, "-") else []
        if logs := ", ".join(describe(p) for p in [*first.logs, *places]):
            self.line(f"  logs: {logs}")

    # --- one phase ---

    def _phase(self, phase: PhasePast) -> None:
        exit_code = "" if phase.exit_code is None else f", exit code {phase.exit_code}"
        outcome = self.style(describe(phase.outcome), _COLORS.get(phase.outcome, ""))
        self.line(f"  {self.style(phase.title, 'bold')}: {outcome}{exit_code}, {duration(phase)}")
        if phase.message:
            self.wrapped(phase.message, "    ")
        tasks = [t for t in phase.tasks if not t.handler]
        handlers = [t for t in phase.tasks if t.handler]
        widths = _widths(phase.tasks)
        self._tasks(tasks, widths)
        if (command := phase.command) is not None:
            code = command.exit_code
            ended = "no end is recorded" if code is None else f"exit code {code}"
            line = f"    the user's command: {ended}, {duration(command)}"
            self.line(line, "red" if code else "")
        if phase.diagnosis is not None:
            self._diagnosis(phase.diagnosis)
        if handlers:
            self.line(f"    exit handlers for {describe(phase.handlers_for or 'this outcome')}:")
            self._tasks(handlers, widths)
        if not (tasks or handlers or phase.command):
            self.line("    no task has begun", "dim")

    def _diagnosis(self, diagnosis: Record) -> None:
        confidence = diagnosis["confidence"]
        sure = "" if confidence is None else f", {confidence:.0%}"
        fault = f", fault: {describe(diagnosis['fault'])}" if diagnosis.get("fault") else ""
        self.wrapped(f"why: {diagnosis['headline']} [{diagnosis['class']}{sure}{fault}]", "    ")
        for first in (diagnosis["evidence"] or ())[:1]:
            if text := describe(first.get("text") or ""):
                self.line(f"        | {fit(text, self.style.width - 10)}", "dim")
        if diagnosis.get("advice"):
            self.wrapped(f"help: {diagnosis['advice']}", " " * 8)

    def _tasks(self, tasks: Sequence[TaskPast], widths: tuple[int, int, int]) -> None:
        shown = tasks
        if len(tasks) > _MOST_TASKS:
            shown = [t for t in tasks if _is_notable(t)]
        for task in shown[:_MOST_TASKS]:
            self._task(task, widths)
        if len(tasks) > min(len(shown), _MOST_TASKS):
            rest = Counter(t.outcome for t in tasks)
            rest.subtract(Counter(t.outcome for t in shown[:_MOST_TASKS]))
            outcomes = ", ".join(f"{n} {describe(o)}" for o, n in rest.most_common() if n)
            self.line(f"    … and {rest.total()} more: {outcomes}", "dim")

    def _task(self, task: TaskPast, widths: tuple[int, int, int]) -> None:
        id_, tried, time = _cells(task)
        head = (
            f"{self.style(f'{describe(task.outcome):11}', _COLORS.get(task.outcome, ''))} "
            f"{id_:{widths[0]}}  {tried:>{widths[1]}}  {time:>{widths[2]}}"
        )
        room = self.style.width - 20 - sum(widths)
        message = describe(task.message or "")
        beside = (
            "" if _is_notable(task) and task.failed else fit(message, room) if room > 20 else ""
        )
        self.line(f"    {head}  {self.style(beside, 'dim')}" if beside else f"    {head}")
        self._details(task)

    def _details(self, task: TaskPast) -> None:
        indent = " " * 8
        for wait in task.waits[-_MOST_LINES:]:
            time = shown_duration(wait.seconds)
            self.wrapped(f"waited {time}: {wait.because}", indent, "dim")
        if len(task.waits) > _MOST_LINES:
            total = shown_duration(sum(w.seconds for w in task.waits))
            more = f"… and {len(task.waits) - _MOST_LINES} more"
            self.line(f"{indent}{more}: waited {len(task.waits)} times, {total} altogether", "dim")
        last = task.attempts[-1] if task.attempts else None
        if task.failed or task.outcome == "ignored":
            self._failure(task, last, indent)

    def _failure(self, task: TaskPast, last: AttemptPast | None, indent: str) -> None:
        names = ("kind", "fault", "message", "hint", "exit_code", "trace")
        details = {
            name: getattr(last, name, None) if getattr(task, name) is None else getattr(task, name)
            for name in names
        }
        if not task.measured:
            number = f"attempt {last.attempt}" if last else "its first attempt"
            self.wrapped(f"no end of it is recorded; last was {number}", indent)
        fault = f"fault: {details['fault']}" if details["fault"] else ""
        kind = ", ".join(filter(None, (known_kind(details), fault)))
        if details["message"] or kind:
            shown = f" [{kind}]" if kind else ""
            self.wrapped(f"{details['message'] or 'it failed'}{shown}", indent)
        if details["hint"]:
            self.wrapped(f"help: {details['hint']}", indent)
        lines = [x for x in (last.output if last else ()) if x.strip()]
        for line in lines[-_MOST_LINES:]:
            self.line(f"{indent}| {fit(describe(line), self.style.width - 10)}", "dim")
        for line in (details["trace"] or "").splitlines():
            code = line.lstrip(" ")
            self.line(f"{indent}| {' ' * (len(line) - len(code))}{describe(code)}", "dim")


def _led_by(
    first: FirstFailure | None, groups: Sequence[Sequence[InstancePast]]
) -> list[list[InstancePast]]:
    """The groups, with the first failure's group first, and the first failure first in it."""
    label = first.label if first else None
    led = [sorted(group, key=lambda i: i.label != label) for group in groups]
    return sorted(led, key=lambda group: group[0].label != label)


def duration(past: PhasePast | TaskPast | CommandPast | PhaseBlame) -> str:
    """How long something took, for people; ``about`` marks an estimate."""
    return "about " * (not past.measured) + shown_duration(past.seconds)


def _is_notable(task: TaskPast) -> bool:
    """Whether a task failed, was ignored, or needed several attempts."""
    return task.outcome not in ("ok", "changed", "skipped") or len(task.attempts) > 1


def _cells(task: TaskPast) -> tuple[str, str, str]:
    """Id, attempts and duration."""
    made = len(task.attempts)
    tried = f"{made} of {task.of}" if task.of is not None and task.of > 1 and made else str(made)
    return describe(task.id), tried, duration(task)


def _widths(tasks: Iterable[TaskPast]) -> tuple[int, int, int]:
    rows = [_cells(t) for t in tasks] or [("", "", "")]
    id_, tried, time = (max(map(len, column)) for column in zip(*rows, strict=True))
    return min(id_, 40), tried, time


_MOST_COSTS = 30
"""How many tasks of a phase to list; the others are summed up."""

_MOST_PARTS = 4
_BAR = 20


def print_blame(text: JournalText, instances: Sequence[InstancePast]) -> None:
    """Print where the slowest instance spent its time, then the slowest instance of each task."""
    begun = [i for i in instances if i.phases]
    if not begun:
        text.line("no task, attempt or wait is recorded")
        return
    first = max(begun, key=lambda i: i.seconds)
    among = f", the slowest of {len(begun)} instances" if len(begun) > 1 else ""
    label = text.style(describe(first.label), "bold")
    text.line(f"{label}{among}: {shown_duration(first.seconds)}")
    for phase in first.phases:
        _phase(text, blame(phase))
    if len(begun) > 1:
        text.line()
        _slowest(text, slowest(begun))


def _phase(text: JournalText, blame: PhaseBlame) -> None:
    text.line(f"  {text.style(blame.title, 'bold')}: {duration(blame)}")
    width = min(40, max((len(describe(c.id)) for c in blame.costs[:_MOST_COSTS]), default=0))
    overhead = {f"pairun: {what}": seconds for what, seconds in blame.overhead.items()}
    width = max(width, *map(len, overhead))
    rest = blame.costs[_MOST_COSTS:]
    for cost in blame.costs[:_MOST_COSTS]:
        _cost(text, cost, width)
    if rest:
        time = shown_duration(sum(c.seconds for c in rest))
        text.line(f"    … and {len(rest)} more, {time} altogether", "dim")
    for name, seconds in overhead.items():
        _row(text, name, seconds, seconds / blame.seconds if blame.seconds else 0.0, width)
    dear = {c.id for c in blame.costs if c.share >= 0.01 and c.beside is None}
    path = [describe(id_) for id_ in blame.path if id_ in dear]
    if len(path) > 1:
        text.wrapped(f"path: {' > '.join(path[:_MOST_COSTS])}", "    ", "dim")


def _cost(text: JournalText, cost: Cost, width: int) -> None:
    notes = [] if cost.kind == "task" else [cost.kind]
    if cost.beside is not None:
        notes.append(f"beside {describe(cost.beside)}, which took longer")
    if not cost.measured:
        notes.append("about")
    _row(text, describe(cost.id), cost.seconds, cost.share, width, ", ".join(notes))
    if cost.attempts < 2:
        return
    for part in cost.parts[:_MOST_PARTS]:
        outcome = f" {describe(part.outcome)}" if part.outcome else ""
        text.line(f"      {shown_duration(part.seconds):>9}  {part.what}{outcome}", "dim")
    if more := cost.parts[_MOST_PARTS:]:
        time = shown_duration(sum(p.seconds for p in more))
        text.line(f"      {time:>9}  {len(more)} more attempts and waits", "dim")


def _row(
    text: JournalText, name: str, seconds: float, share: float, width: int, note: str = ""
) -> None:
    bar = "#" * round(_BAR * min(1.0, share))
    # a task next to a longer one costs no time, so its bar is an outline
    bar = bar.replace("#", "-") if note.startswith("beside") else bar
    text.line(
        f"    {fit(name, width):{width}} {shown_duration(seconds):>9} {share:>6.1%} "
        f"{bar:{_BAR}} {note}"
    )


def _slowest(text: JournalText, tasks: Sequence[Slowest]) -> None:
    shown = tasks[:_MOST_COSTS]
    rows = [("task", "slowest", "took", "median", "of")]
    rows += [
        (
            f"{describe(s.phase)} {describe(s.task)}", describe(s.label),
            shown_duration(s.seconds), shown_duration(s.median_s), str(s.instances),
        )
        for s in shown
    ]  # fmt: skip
    widths = [min(40, max(len(row[n]) for row in rows)) for n in range(5)]
    for n, row in enumerate(rows):
        cells = [f"{fit(cell, w):{w}}" for cell, w in zip(row, widths, strict=True)]
        text.line("  " + "  ".join(cells), "dim" if n == 0 else "")
    if more := len(tasks) - len(shown):
        text.line(f"  … and {more} more", "dim")
