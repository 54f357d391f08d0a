"""Who set a value: the chain from the layer in force down to the lowest that set it."""

from __future__ import annotations

from typing import Any

import attrs

from pairun.contract.arguments import arguments
from pairun.errors import PairunError, Place, Problem, did_you_mean, nearest
from pairun.job.planning import RolePlan
from pairun.playbook.content import Content
from pairun.playbook.drafts import TaskDraft, history
from pairun.playbook.keywords import keywords_of
from pairun.playbook.pod.layering import PodSettings
from pairun.playbook.pod.table import POD_SETTINGS
from pairun.review.jobreview import JobReview

POD = "pod."
"""What the path of a Pod's setting begins with."""


@attrs.frozen
class Setting:
    """A value, and the place that set it."""

    value: Any
    place: Place


def settings_of(plan: RolePlan, pod: PodSettings, path: str) -> list[Setting]:
    """Who set a value, the one in force first; empty where nothing set it.

    Args:
        plan: of the role.
        pod: the settings of its Pods.
        path: an id and keys: ``git.args.depth``; an id and a key may have dots themselves. Or a
            setting of the Pods: ``pod.queue``.
    """
    for draft in plan.effective.drafts.values():
        for task in draft.tasks():
            if path.startswith(f"{task.id}."):
                value = task.value_at(path.removeprefix(f"{task.id}."))
                if value is not None:
                    return [Setting(each.plain(), each.place) for each in history(value)]
    node = pod.at(path.removeprefix(POD)) if path.startswith(POD) else None
    return [Setting(each.plain(), each.place) for each in history(node)] if node else []


def no_such_setting(review: JobReview, path: str, content: Content) -> Problem:
    """The problem of a path that nothing in a job's playbooks sets."""
    drafts = [d for plan in review.plans for d in plan.effective.drafts.values()]
    tasks = {task.id: task for draft in drafts for task in draft.tasks()}
    task = next((t for i, t in tasks.items() if path == i or path.startswith(f"{i}.")), None)
    if task is None and path.startswith(POD):
        key = path.removeprefix(POD)
        known = key in POD_SETTINGS
        hint = (
            "it has its default"
            if known
            else did_you_mean(path, map(f"{POD}{{}}".format, POD_SETTINGS))
        )
    elif task is None:
        hint = did_you_mean(path.partition(".")[0], sorted(tasks))
    else:
        hint = _nearest_setting(task, path.removeprefix(task.id)[1:], content)
    return Problem("PR401", f"no such setting: {path}", hint=hint)


def _nearest_setting(task: TaskDraft, rest: str, content: Content) -> str:
    try:
        known = [a.name for a in arguments(content.module(task.module))]
    except PairunError:
        known = []
    keywords = [k for k in keywords_of("task") if k != "args"]
    first, second = [*rest.split(".", 2), ""][:2]
    if rest and (first in keywords or (first == "args" and second in known)):
        return "it has its default"
    if first in known:
        return f"did you mean '{task.id}.args.{rest}'?"
    near = nearest(rest, [*keywords, *(f"args.{a}" for a in known)]) or nearest(first, known)
    if near is not None:
        return f"did you mean '{task.id}.{f'args.{near}' if near in known else near}'?"
    return "a path begins with an id and a keyword: barrier.retries, barrier.args.timeout"
