"""Finds tasks of a role that write the same path: the second one replaces files of the first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from pairun.contract.arguments import build
from pairun.errors import Place, Problem
from pairun.job.planning import RolePlan
from pairun.module import StateModule
from pairun.plan import Task
from pairun.playbook.content import Content
from pairun.playbook.drafts import Origins, TaskDraft


def destination_warnings(plan: RolePlan, content: Content) -> Iterator[Problem]:
    """A warning for each path that two tasks of a phase write, unless both do the same."""
    for phase, phase_plan in plan.plans.items():
        drafts = plan.effective.drafts[phase].by_id()
        writers: dict[str, Task] = {}
        for task in phase_plan.tasks():
            for path in _written(task, content):
                first = writers.setdefault(path, task)
                if first is not task and (first.module, first.args) != (task.module, task.args):
                    origins = Origins(drafts.get(task.id), {}, None)
                    yield _warning(path, first, task, drafts, _fields(path, task, origins))


def _written(task: Task, content: Content) -> Iterator[str]:
    """The paths that a task definitely writes."""
    if task.when is not True:
        return
    try:
        module, _ = build(content.module(task.module), task.args)
        written = list(module.writes()) if isinstance(module, StateModule) else []
    except Exception:  # noqa: BLE001 - a module's code may raise anything; the verdict reports it
        return
    yield from map(os.path.normpath, written)


def _fields(path: str, task: Task, origins: Origins) -> list[str]:
    """The arguments that set a path, or the parameters of a plugin that do."""
    if origins.task is None:
        return []
    args = [(name, node) for name, node in origins.task.args.items() if task.args.get(name) == path]
    if origins.task.given is None:
        return [f"'{name}'" for name, _ in args]
    return [f"'{n.split()[-1]}'" for _, node in args for n, _ in origins.sources(node)]


def _warning(
    path: str, first: Task, second: Task, drafts: Mapping[str, TaskDraft], fields: Sequence[str]
) -> Problem:
    earlier = _place(drafts.get(first.id))
    return Problem(
        "PR927",
        f"the tasks '{first.id}' and '{second.id}' both write {path}",
        _place(drafts.get(second.id)),
        f"set another path with {' or '.join(fields)} in one of them"
        if fields
        else "use one of them, and do the other's work in the command",
        "warning",
        (("the first one", earlier),) if earlier else (),
    )


def _place(draft: TaskDraft | None) -> Place | None:
    """The place where the job uses the task, or else where the task is written."""
    return None if draft is None else draft.used_at or draft.place
