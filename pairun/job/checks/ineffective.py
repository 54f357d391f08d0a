"""Finds arguments that are valid but that a module cannot use, such as a key with a typo."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.contract.arguments import build
from pairun.errors import Place, Problem
from pairun.job.planning import RolePlan
from pairun.module import Module
from pairun.plan import Late, Task
from pairun.playbook.content import Content
from pairun.playbook.drafts import TaskDraft


def ineffective_warnings(plan: RolePlan, content: Content) -> Iterator[Problem]:
    """A warning for each argument that the modules of a role's tasks cannot use.

    Args:
        plan: the role's plan.
        content: the content roots, which contain the modules.
    """
    for phase, phase_plan in plan.plans.items():
        for task in phase_plan.tasks():
            draft = plan.effective.drafts[phase].find(task.id)
            for path, message in _doubts(task, content) if draft else ():
                assert draft is not None
                place = _place(plan, draft, path)
                yield Problem("PR934", f"{task.id}: {message}", place, None, "warning")


def _doubts(task: Task, content: Content) -> list[tuple[tuple[str, ...], str]]:
    if task.when is False:
        return []
    known = {name: value for name, value in task.args.items() if not isinstance(value, Late)}
    try:
        cls = content.module(task.module)
        if cls.doubts is Module.doubts:
            return []
        module, _ = build(cls, known)
        return [] if module is None else list(module.doubts())
    except Exception:  # noqa: BLE001 - a module's code may raise anything; the verdict reports it
        return []


def _place(plan: RolePlan, draft: TaskDraft, path: tuple[str, ...]) -> Place:
    """The place of the plugin's parameter with this path, or else of the plugin or the task."""
    use = next((use for use in plan.uses if use.place == draft.used_at), None)
    node = use.parameters.at(path) if use else draft.args.at(path)
    return node.place if node else draft.used_at or draft.place
