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
from pairun.plan import EVENTS, USER_COMMAND
from pairun.playbook.content import Content
from pairun.playbook.drafts import Setter, setter_of
from pairun.report.review_data import first_roles
from pairun.report.review_text import MARKS, ReviewText, roots_line, summary
from pairun.report.shown import container_texts, count_of, setter_words, shown_data, shown_setter
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import Reviewed
from pairun.review.verdict import CHECKED
from pairun.secrets.vault import Vault


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
        self._first_roles = first_roles(review) if len(review.tasks) > 1 else {}

    def job(self, job: Job) -> None:
        review, text, plain = self._review, self._text, self._review.settings.plain
        size = sum(role.instances for role in job.roles)
        roles = f"{count_of(len(job.roles), 'role')}, {count_of(size, 'instance')}"
        head = f"job {job.name} of {job.user} · {roles}"
        if plain:
            instances = "one instance" if size == 1 else f"one of {size} in the gang"
            head = f"a plain Pod, no job of OpenPAI: {instances}"
        text.wrapped(f"{head} · {review.path}", hang="  ")
        for plan in review.plans:
            text.line()
            if not plain:
                self._role(plan.role)
                self._pod_settings(plan.role.name)
            for phase, tasks in review.tasks[plan.role.name].items():
                self._phase(plan.role.name, phase, tasks)
        if not self._full:
            self._reasons()
        text.line()
        if not self._full:
            text.line("every value: --full; who set one: --why ID.KEY")
        text.wrapped(summary(review.all_tasks()), hang="  ")

    def _role(self, role: Role) -> None:
        """Print the settings of a role that only the platform reads."""
        image = role.image.node.get("uri")
        asked = role.resources
        whose = f"{count_of(role.instances, 'instance')} · image {image.value if image else '?'}"
        amounts = f"cpu {asked.cpu}, memory {asked.memory_mb} MB, gpu {asked.gpu}"
        head = f"role {role.name} · {whose}" + ("" if self._full else f" · {amounts}")
        self._text.wrapped(head, hang="  ")
        if self._full:
            ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
            listed = f", ports: {ports}" if ports else ""
            self._text.wrapped(f"  {amounts}{listed}", hang="    ")
            self._text.wrapped(f"  the job completes when {_completion(role)}", hang="    ")

    def _pod_settings(self, role: str) -> None:
        """Print the Pod settings that the cluster or the job sets."""
        pod, vault = self._review.pods[role], self._review.vault
        refused = pod.refused(self._review.problems)
        for key, node in pod.above("built-in").items():
            path = f"pod.{key}"
            line = setting_line(path, setter_of(node), vault)
            if key in refused:
                line += ", refused"
            if (before := node.overrides) is not None:
                was = json.dumps(shown_data(before.plain(), vault), ensure_ascii=False)
                line += f", was {was} ({before.place.source.layer} {before.place})"
            self._text.wrapped(f"  {path} = {line}", hang="    ")

    def _phase(self, role: str, phase: Phase, tasks: list[Reviewed]) -> None:
        """Print the tasks of a phase; those of an earlier role only by its name."""
        of_role: dict[str, list[Reviewed]] = {role: []}
        for at, task in enumerate(tasks):
            of_role.setdefault(self._first_roles.get((role, phase, at), role), []).append(task)
        own = of_role.pop(role)
        same = next(iter(of_role), role)
        if not own and len(of_role) == 1 and len(self._review.tasks[same][phase]) == len(tasks):
            self._text.line(f"  {self._text.bold(phase)}: as in role {same}")
        elif self._full:
            self._text.phase(phase, tasks)
        else:
            self._text.line("  " + self._text.bold(phase))
            self._short(own)
            for first, those in of_role.items():
                counted = count_of(len(those), "task")
                self._text.wrapped(f"= {counted} as in role {first}", "    ", "dim", "  ")

    def _short(self, tasks: Sequence[Reviewed]) -> None:
        folded: dict[str, list[Reviewed]] = {kind: [] for kind, _ in _FOLDED}
        shown: list[Reviewed] = []
        for task in tasks:
            kind = "skipped" if task.skipped else task.kind
            (shown if kind not in folded or self._stands_out(task) else folded[kind]).append(task)
        for task in shown:
            self._task(task)
        for folded_kind, noun in _FOLDED:
            if same := folded[folded_kind]:
                counted = count_of(len(same), noun) if noun == "check" else f"{len(same)} {noun}"
                mark, color = MARKS[folded_kind]
                ids = ", ".join(task.id for task in same)
                self._text.wrapped(f"{mark} {counted}: {ids}", "    ", color, "  ")
        for task in reversed(tasks):
            for handler in reversed(task.task.on_exit if task.task else ()):
                events = "always" if handler.events == EVENTS else ", ".join(handler.events)
                what = f"at the end, on {events}"
                self._text.head("    ", (">", "blue"), handler.id, what, cut=True)

    @staticmethod
    def _stands_out(task: Reviewed) -> bool:
        """Whether a layer added, changed or disabled it, or it is a check that checks nothing."""
        brought = task.layer not in ("", "built-in") and not task.skipped
        return brought or _is_odd(task) or bool(task.overrides or task.disabled)

    def _task(self, task: Reviewed) -> None:
        brought = "" if task.layer in ("", "built-in") else f"{task.layer}: {task.where}"
        self._text.head("    ", MARKS[task.kind], task.id, self._what(task), brought, cut=True)
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
        more = f" … {count_of(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
        return f"{lines[0].strip()}{more}"

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


def setting_line(path: str, setter: Setter, vault: Vault) -> str:
    """A value of a setting, masked, and who set it.

    Args:
        path: of the setting, such as ``git.args.depth``.
        setter: the value, with its layer and place.
        vault: masks it.
    """
    value = json.dumps(shown_setter(setter, path, vault), ensure_ascii=False)
    return f"{value}  ← {setter_words(setter)}"
