"""The review of a job on one screen: one line per task, the most important tasks first.

It only counts checks, unchanged tasks, and tasks that an earlier role has, too. At the end it lists
each reason why something is unknown, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pairun.module import Phase
from pairun.plan import EVENTS, USER_COMMAND
from pairun.report.review_data import as_data
from pairun.report.review_text import MARKS, ReviewText
from pairun.report.shown import container_texts
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import Reviewed
from pairun.review.verdict import CHECKED

Tasks = Mapping[Phase, Sequence[Reviewed]]

_FOLDED = (("check", "check"), ("no_change", "without change"), ("skipped", "skipped"))
"""Kinds of verdicts to count only, unless a value is overridden; and the word for each."""


_SHORT_SCRIPT = 5
"""Scripts with at most this many lines are shown instead of the task's name."""


class Brief:
    """Prints the roles of one review.

    Args:
        text: prints the lines.
        review: the review of a job or a plain Pod.
    """

    def __init__(self, text: ReviewText, review: JobReview) -> None:
        self._text = text
        self._review = review
        # (phase, task as data) to the first role with this task
        self._first_roles: dict[tuple[str, str], str] = {}

    def role(self, name: str, phases: Tasks) -> None:
        """Print the phases of a role.

        Args:
            name: the role's name.
            phases: its reviewed tasks by phase.
        """
        for phase, tasks in phases.items():
            shared: dict[str, list[Reviewed]] = {}
            own = []
            for task in tasks:
                first = self._first_role(phase, task, name)
                if first == name:
                    own.append(task)
                else:
                    shared.setdefault(first, []).append(task)
            if not own and len(shared) == 1:
                self._text.line(f"  {self._text.bold(phase)}: as in role {next(iter(shared))}")
                continue
            self._text.line("  " + self._text.bold(phase))
            self._tasks(own)
            for first, same in shared.items():
                self._text.wrapped(
                    f"= {_count(len(same), 'task')} as in role {first}", "    ", "dim", "  "
                )

    def _first_role(self, phase: str, task: Reviewed, role: str) -> str:
        """The first role that has the same task as this role."""
        if len(self._review.tasks) == 1:
            return role
        data = {**as_data(task, self._review.vault), "where": ""}
        return self._first_roles.setdefault((phase, json.dumps(data, sort_keys=True)), role)

    def _tasks(self, tasks: Sequence[Reviewed]) -> None:
        folded: dict[str, list[Reviewed]] = {kind: [] for kind, _ in _FOLDED}
        shown: list[Reviewed] = []
        for task in tasks:
            kind: str = "skipped" if task.skipped else task.verdict.kind
            (shown if kind not in folded or self._stands_out(task) else folded[kind]).append(task)
        for task in sorted(shown, key=lambda t: _ORDER.index(t.verdict.kind)):
            self._task(task)
        for folded_kind, noun in _FOLDED:
            if same := folded[folded_kind]:
                counted = _count(len(same), noun) if noun == "check" else f"{len(same)} {noun}"
                mark, color = ("-", "dim") if folded_kind == "skipped" else MARKS[folded_kind]
                ids = ", ".join(task.id for task in same)
                self._text.wrapped(f"{mark} {counted}: {ids}", "    ", color, "  ")
        for task in reversed(tasks):
            for handler in reversed(task.task.on_exit if task.task else ()):
                events = "always" if handler.events == EVENTS else ", ".join(handler.events)
                self._text.row((">", "blue"), handler.id, f"at the end, on {events}")

    @staticmethod
    def _stands_out(task: Reviewed) -> bool:
        """Whether a layer added, changed or disabled it, or it is a check that checks nothing."""
        brought = task.layer not in ("", "built-in") and not task.skipped
        return brought or _is_odd(task) or bool(task.overrides or task.disabled)

    def _task(self, task: Reviewed) -> None:
        mark = ("-", "dim") if task.skipped else MARKS[task.verdict.kind]
        brought = "" if task.layer in ("", "built-in") else f"{task.layer}: {task.where}"
        fits = self._text.row(mark, task.id, self._what(task), brought and f" ({brought})")
        if not fits:
            self._text.wrapped(brought, "        ", "dim")
        if task.disabled:
            self._text.wrapped(f"disabled by {task.disabled}", "        ", "yellow", "  ")
        elif task.verdict.kind == "will_change" or _is_odd(task):
            self._text.because(task, "        ")
        for text in container_texts(task.task.args, task.task.environment) if task.task else ():
            self._text.wrapped(f"{text}: known in the container", "        ", "cyan", "  ")
        for override in task.overrides:
            self._text.override(override, "        ")

    @staticmethod
    def _what(task: Reviewed) -> str:
        """The first line of the user's command or of a short script; else the task's name."""
        script = task.task.args.get("script") if task.task else None
        lines = [s for s in script.splitlines() if s.strip()] if isinstance(script, str) else []
        if not lines or (task.module != USER_COMMAND and len(lines) > _SHORT_SCRIPT):
            return task.name
        more = f" … {_count(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
        return f"{lines[0].strip()}{more}"

    def reasons(self) -> None:
        """Print why something is unknown: each reason once, with its tasks."""
        ids: dict[str, dict[str, None]] = {}
        for task in _all(self._review):
            if task.verdict.kind == "unknown" and not task.skipped:
                ids.setdefault(task.verdict.because, {})[task.id] = None
        if ids:
            self._text.line()
            self._text.line("not known before it runs:")
        for because, tasks in ids.items():
            self._text.wrapped(f"? {because}: {', '.join(tasks)}", "  ", "cyan", "  ")


_ORDER = ("will_change", "unknown", "check", "no_change")


def _is_odd(task: Reviewed) -> bool:
    """Whether the task is a check that checks nothing."""
    return task.verdict.kind == "check" and not task.verdict.because.startswith(CHECKED)


def _all(review: JobReview) -> Iterator[Reviewed]:
    for phases in review.tasks.values():
        for tasks in phases.values():
            yield from tasks


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
