"""Init plugins: a cluster's list of steps that replaces the init playbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs

from pairun.errors import Place, Problems, did_you_mean
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import Draft, TaskDraft, draft_task, free_id


class InitPlugin(NamedTuple):
    """One entry of the list.

    Attributes:
        stands_for: the id of the playbook's task that it replaces, or None.
        task: its own task, if the playbook has none for it.
        scope: further names that the task's own expressions see.
    """

    name: str
    place: Place
    stands_for: str | None = None
    task: Node | None = None
    scope: Mapping[str, Any] = {}


class InitPlugins(NamedTuple):
    """The whole list: the order of the init phase, and its place."""

    plugins: tuple[InitPlugin, ...]
    place: Place


def replace_tasks(
    draft: Draft, listed: InitPlugins, modules: Mapping[str, object], problems: Problems
) -> None:
    """Run the listed steps in the init phase, in their order.

    A plugin that replaces a task of the playbook uses that task from the layers below, with its
    arguments, exit codes and limits. The playbook's other tasks are disabled, and the review shows
    them as disabled.
    """
    before = list(draft.tasks())
    # Patches use the ids of the playbook's tasks, so no other task may have one of them.
    taken = {t.id: 1 for t in before}
    used: dict[str, TaskDraft] = {}
    steps: list[TaskDraft] = []
    for plugin in listed.plugins:
        if plugin.task is not None:
            task = draft_task(plugin.task, modules, "cluster", problems, scope=plugin.scope)
        else:
            task = _of_playbook(plugin, before, problems)
        if task is None:
            continue
        if task.id in used or plugin.task is not None:
            task.id = free_id(task.id, taken)
        used[task.id] = task
        steps.append(task)
    for task in before:
        if task.id not in used:
            task.disabled = task.disabled or listed.place
            steps.append(task)
    draft.steps = [*steps]


def _of_playbook(
    plugin: InitPlugin, tasks: list[TaskDraft], problems: Problems
) -> TaskDraft | None:
    by_id = [t for t in tasks if t.id == plugin.stands_for]
    replaced = next(iter(by_id + [t for t in tasks if t.module == plugin.stands_for]), None)
    if replaced is None:
        message = (
            f"'{plugin.name}' maps to the task '{plugin.stands_for}', which the init playbook "
            "does not have"
        )
        hint = did_you_mean(str(plugin.stands_for), [t.id for t in tasks])
        problems.error("PR715", message, plugin.place, hint)
        return None
    # In the review, the task's name includes the entry of the list.
    name = replaced.node.get("name")
    sentence = str(name.value) if name is not None else replaced.id
    renamed = Node(f"{sentence} ({plugin.name})", plugin.place, plugin.place, name)
    node = Node({**replaced.node.value, "name": renamed}, replaced.node.place, replaced.node.key)
    return attrs.evolve(replaced, node=node, disabled=None)
