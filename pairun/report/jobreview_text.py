"""The review of a job as text: every task with every value, or one screen.

The short form has a line per task, in the order in which they run. It only counts checks, unchanged
tasks, and tasks that an earlier role has, too. At the end it lists each reason why something is
unknown, once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO

from pairun.job.model import Job, Role
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.content import Content
from pairun.report.review_data import RoleView, role_views
from pairun.report.review_text import ReviewText, handlers_of, roots_line
from pairun.report.shown import container_texts, count_of
from pairun.report.task_view import KIND_MARKS, TaskView, summary
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import CHECKED, Reviewed


def print_review(review: JobReview, content: Content, stream: IO[str], *, full: bool) -> None:
    """Print the review of a job or of a plain Pod.

    Args:
        review: the review.
        content: the content roots, for the first line.
        stream: the stream to print to.
        full: print every task with every value; else a line per task, important tasks first.
    """
    text = ReviewText(stream, review.vault)
    text.wrapped(roots_line(content), hang="  ")
    if all(r.layer == "built-in" for r in content.roots):
        text.line("add your cluster's defaults with --root DIR")
    if review.job is None:
        text.wrapped(f"{review.path} is not valid")
        return
    if (listed := review.settings.init_plugins) is not None:
        text.wrapped(f"init plugins: {listed.place.source.file}", hang="  ")
    _JobText(text, review, full=full).job(review.job)


_FOLDED = (("check", "check"), ("no_change", "without change"), ("skipped", "skipped"))
"""Kinds of verdicts to count only, unless a value is overridden; and the word for each."""

_SHORT_SCRIPT = 5
"""Scripts with at most this many lines are shown instead of the task's name."""


class _JobText:
    """Prints one review, in full or one screen of it."""

    def __init__(self, text: ReviewText, review: JobReview, *, full: bool) -> None:
        self._text = text
        self._review = review
        self._full = full
        self._roles = {each.plan.role.name: each for each in role_views(review)}

    def job(self, job: Job) -> None:
        review, text, plain = self._review, self._text, self._review.settings.plain
        size = sum(role.instances for role in job.roles)
        roles = f"{count_of(len(job.roles), 'role')}, {count_of(size, 'instance')}"
        head = f"job {job.name} of {job.user} · {roles}"
        if plain:
            instances = "one instance" if size == 1 else f"one of {size} in the gang"
            head = f"a plain Pod, no job of OpenPAI: {instances}"
        text.wrapped(f"{head} · {review.path}", hang="  ")
        for name, view in self._roles.items():
            text.line()
            if not plain:
                self._role(view)
            for phase, tasks in view.phases.items():
                self._phase(name, phase, tasks)
        if not self._full:
            self._reasons()
        text.line()
        if not self._full:
            text.line("every value: --full; who set one: --why ID.KEY")
        text.wrapped(summary(review.all_tasks()), hang="  ")

    def _role(self, view: RoleView) -> None:
        """Print the settings of a role that only the platform reads, and those of its Pods."""
        role, asked = view.plan.role, view.plan.role.resources
        whose = f"{count_of(role.instances, 'instance')} · image {view.image or '?'}"
        amounts = f"cpu {asked.cpu}, memory {asked.memory_mb} MB, gpu {asked.gpu}"
        head = f"role {role.name} · {whose}" + ("" if self._full else f" · {amounts}")
        self._text.wrapped(head, hang="  ")
        if self._full:
            ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
            listed = f", ports: {ports}" if ports else ""
            self._text.wrapped(f"  {amounts}{listed}", hang="    ")
            self._text.wrapped(f"  the job completes when {_completion(role)}", hang="    ")
        for key, each in view.pod.items():
            value, was = json.dumps(each["value"], ensure_ascii=False), each.get("was")
            line = f"pod.{key} = {value}  ← {each['layer']} {each['where']}"
            line += ", refused" if "refused" in each else ""
            if was is not None:
                before = json.dumps(was["value"], ensure_ascii=False)
                line += f", was {before} ({was['layer']} {was['where']})"
            self._text.wrapped(f"  {line}", hang="    ")

    def _phase(self, role: str, phase: Phase, tasks: Sequence[TaskView]) -> None:
        """Print the tasks of a phase; those of an earlier role only by its name."""
        of_role: dict[str, list[TaskView]] = {role: []}
        for view in tasks:
            of_role.setdefault(view.same_as or role, []).append(view)
        own = of_role.pop(role)
        same = next(iter(of_role), role)
        if not own and len(of_role) == 1 and len(self._roles[same].phases[phase]) == len(tasks):
            self._text.line(f"  {self._text.style(phase, 'bold')}: as in role {same}")
        elif self._full:
            self._text.phase(phase, tasks)
        else:
            self._text.line("  " + self._text.style(phase, "bold"))
            self._short(own)
            for first, those in of_role.items():
                counted = count_of(len(those), "task")
                self._text.wrapped(f"= {counted} as in role {first}", "    ", "dim", "  ")

    def _short(self, tasks: Sequence[TaskView]) -> None:
        folded: dict[str, list[TaskView]] = {kind: [] for kind, _ in _FOLDED}
        shown: list[TaskView] = []
        for view in tasks:
            kind = "skipped" if view.task.skipped else view.task.kind
            (shown if kind not in folded or _stands_out(view) else folded[kind]).append(view)
        for view in shown:
            self._task(view)
        for folded_kind, noun in _FOLDED:
            if same := folded[folded_kind]:
                counted = count_of(len(same), noun) if noun == "check" else f"{len(same)} {noun}"
                mark, color = KIND_MARKS[folded_kind]
                ids = ", ".join(view.task.id for view in same)
                self._text.wrapped(f"{mark} {counted}: {ids}", "    ", color, "  ")
        for events, data in handlers_of(tasks):
            self._text.head("    ", (">", "blue"), data["id"], f"at the end, on {events}", cut=True)

    def _task(self, view: TaskView) -> None:
        task, planned = view.task, view.task.task
        name = _what(task)
        self._text.head("    ", KIND_MARKS[task.kind], task.id, name, view.brought, cut=True)
        if task.disabled or task.verdict.kind == "will_change" or _is_odd(task):
            self._text.verdict(view, "        ")
        for text in container_texts(planned.args, planned.environment) if planned else ():
            self._text.wrapped(f"{text}: known in the container", "        ", "cyan", "  ")
        self._text.overrides(view, "        ")

    def _reasons(self) -> None:
        """Print why something is unknown: each reason once, with its tasks."""
        ids: dict[str, dict[str, None]] = {}
        for task in self._review.all_tasks():
            if task.kind == "unknown":
                ids.setdefault(task.verdict.because, {})[task.id] = None
        if ids:
            self._text.line()
            self._text.line("not known before it runs:")
        for because, tasks in ids.items():
            self._text.wrapped(f"? {because}: {', '.join(tasks)}", "  ", "cyan", "  ")


def _stands_out(view: TaskView) -> bool:
    """Whether a layer added, changed or disabled it, or it is a check that checks nothing."""
    task = view.task
    brought = bool(view.brought) and not task.skipped
    return brought or _is_odd(task) or bool(task.overrides or task.disabled)


def _what(task: Reviewed) -> str:
    """The first line of the user's command or of a short script; else the task's name."""
    script = task.task.args.get("script") if task.task else None
    lines = [s for s in script.splitlines() if s.strip()] if isinstance(script, str) else []
    if not lines or (task.module != USER_COMMAND and len(lines) > _SHORT_SCRIPT):
        return task.name
    more = f" … {count_of(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
    return f"{lines[0].strip()}{more}"


def _is_odd(task: Reviewed) -> bool:
    """Whether the task is a check that checks nothing."""
    return task.verdict.kind == "check" and not task.verdict.because.startswith(CHECKED)


def _completion(role: Role) -> str:
    conditions = []
    if role.min_failed > 0:
        conditions.append(count_of(role.min_failed, "instance") + _verb(role.min_failed, "fail"))
    if role.min_succeeded > 0:
        count = str(role.min_succeeded) if conditions else count_of(role.min_succeeded, "instance")
        conditions.append(count + _verb(role.min_succeeded, "succeed"))
    return " or ".join(conditions) or "every instance has ended"


def _verb(count: int, verb: str) -> str:
    return f" {verb}{'s' if count == 1 else ''}"
