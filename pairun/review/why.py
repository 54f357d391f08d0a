"""Finds who set a value: the chain from the effective layer down to the lowest that set it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pairun.contract.arguments import Argument, arguments
from pairun.errors import PairunError, Problem, did_you_mean, nearest
from pairun.job.planning import RolePlan
from pairun.playbook.content import Content
from pairun.playbook.drafts import Origins, Setter, TaskDraft, history, setter_of
from pairun.playbook.keywords import keywords_of
from pairun.playbook.podfragment import PodSettings, places_of, refusal_places
from pairun.playbook.podschema import split_path
from pairun.review.jobreview import JobReview

_POD = "pod."
"""The first part of a Pod setting's path."""


def settings_of(
    plan: RolePlan, pod: PodSettings, path: str, problems: Iterable[Problem]
) -> list[tuple[Setter, bool]]:
    """Find who set a value, the effective one first, and whether pairun refuses it.

    Args:
        plan: the plan of the role.
        pod: the settings of the role's Pods.
        path: a task's id and keys, such as ``git.args.depth``; ids and keys may contain dots. Or a
            Pod setting, such as ``pod.queue``.
        problems: the review's problems; an error at a Pod setting refuses it.
    """
    for draft in plan.effective.drafts.values():
        for task in draft.tasks():
            if path.startswith(f"{task.id}."):
                value = task.value_at(path.removeprefix(f"{task.id}."))
                if value is not None:
                    origins = Origins(task, draft.vars, plan.job.parameters)
                    bare = path.endswith(".when")
                    return [(setter, False) for setter in origins.setters(value, bare=bare)]
    node = pod.at(path.removeprefix(_POD)) if path.startswith(_POD) else None
    if node is None:
        return []
    refused = refusal_places(problems)
    return [(setter_of(each), not refused.isdisjoint(places_of(each))) for each in history(node)]


class Default(NamedTuple):
    """The default of a setting that no layer sets: its text, and where it is declared."""

    text: str
    declared_by: str


def default_of(plan: RolePlan, path: str, content: Content) -> Default | None:
    """The default of a setting that no layer sets; None if there is no such setting.

    Args:
        plan: the plan of the role.
        path: the path, as for `settings_of`.
        content: the content roots.
    """
    task, rest = _task_at([plan], path)
    if task is None:
        steps, known = split_path(path.removeprefix(_POD)) if path.startswith(_POD) else ([], [])
        is_setting = bool(steps) and not isinstance(known, list)
        return Default("none", "no layer sets it: the cluster decides") if is_setting else None
    first, *below = rest.split(".")
    if first == "args" and below:
        argument = next((a for a in _arguments_of(task, content) if a.name == below[0]), None)
        if argument is None or argument.required:
            return None
        text = "none" if below[1:] else argument.default_text()
        return Default(text, f"default of the module {task.module}")
    keyword = _TASK_KEYWORDS.get(first)
    if keyword is None or (below and keyword.schema.get("type") not in ("object", "array")):
        return None
    text = task.failure_policy if first == "failure_policy" else keyword.default
    return Default("none" if below else text, f"default of the keyword {first}")


def _task_at(plans: Iterable[RolePlan], path: str) -> tuple[TaskDraft | None, str]:
    """The task whose id begins a path, and the rest of the path."""
    drafts = [d for plan in plans for d in plan.effective.drafts.values()]
    tasks = {task.id: task for draft in drafts for task in draft.tasks()}
    task = next((t for i, t in tasks.items() if path == i or path.startswith(f"{i}.")), None)
    return task, path.removeprefix(task.id)[1:] if task else ""


def _arguments_of(task: TaskDraft, content: Content) -> Sequence[Argument]:
    try:
        return arguments(content.module(task.module))
    except PairunError:
        return ()


_TASK_KEYWORDS = {name: k for name, k in keywords_of("task").items() if name != "args"}


def no_such_setting(review: JobReview, path: str, content: Content) -> Problem:
    """The problem for a path that is no setting of a job's playbooks."""
    task, rest = _task_at(review.plans, path)
    if task is not None:
        hint: str | None = _nearest_setting(task, rest, content)
    elif path.startswith(_POD):
        steps, known = split_path(path.removeprefix(_POD))
        near = did_you_mean(steps[-1], known if isinstance(known, list) else ())
        hint = near or "docs/pod.md shows the settings of Pods"
    elif not isinstance(split_path(path)[1], list):
        hint = f"did you mean '{_POD}{path}'?"
    else:
        hint = _nearest_task(review, path)
    return Problem("PR401", f"no such setting: {path}", hint=hint)


def _nearest_task(review: JobReview, path: str) -> str | None:
    """A hint for a path that begins with no task's id, such as with a module's name."""
    first, _, rest = path.partition(".")
    drafts = [d for plan in review.plans for d in plan.effective.drafts.values()]
    modules = {task.id: task.module for draft in drafts for task in draft.tasks()}
    if of_module := next((id_ for id_, module in modules.items() if module == first), None):
        return f"did you mean '{of_module}.{rest}'?" if rest else f"did you mean '{of_module}'?"
    return did_you_mean(first, sorted(modules))


def _nearest_setting(task: TaskDraft, rest: str, content: Content) -> str:
    known = [a.name for a in _arguments_of(task, content)]
    first = rest.partition(".")[0]
    if first in known:
        return f"did you mean '{task.id}.args.{rest}'?"
    near = nearest(rest, [*_TASK_KEYWORDS, *(f"args.{a}" for a in known)]) or nearest(first, known)
    if near is not None:
        return f"did you mean '{task.id}.{f'args.{near}' if near in known else near}'?"
    return "begin a path with an id and a keyword: barrier.retries, barrier.args.timeout"
