"""Checks of a task that need no job: its module, its arguments, unbounded retries."""

from __future__ import annotations

from pairun.contract.mistakes import argument_problems
from pairun.errors import PairunError, Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft, draft_task
from pairun.playbook.expressions.template import is_template


def check_tasks(tasks: Node | None, phase: str, content: Content) -> Problems:
    """What only shows in a whole task: its module, its arguments, and waits that nothing bounds."""
    problems = Problems()
    for node in tasks.elements() if tasks else ():
        if (inner := node.get("tasks")) is not None:
            problems.extend(check_tasks(inner, phase, content))
            continue
        task = draft_task(node, content.modules, "file", problems)
        if task is None:
            continue
        check_task(task, phase, content, problems)
    return problems


def check_task(task: TaskDraft, phase: str, content: Content, problems: Problems) -> None:
    """The same of one task, as a playbook says it or after every layer."""
    _check_arguments(task, phase, content, problems)
    handlers = task.node.get("on_exit")
    for each in handlers.elements() if handlers else ():
        if handler := draft_task(each, content.modules, "file", problems):
            _check_arguments(handler, phase, content, problems)
    if task.node.get("retries") and not (task.node.get("timeout") or task.node.get("deadline")):
        problems.warning(
            "PR910",
            f"the task '{task.id}' has retries, and no limit on the time of an attempt",
            task.place,
            "add timeout or deadline",
        )


def _check_arguments(task: TaskDraft, phase: str, content: Content, problems: Problems) -> None:
    try:
        cls = content.module(task.module)
    except PairunError as e:
        problems.extend(e.problems)
        return
    if phase not in cls.phases:
        problems.error(
            "PR212",
            f"the module '{task.module}' does not run in {phase}",
            task.args.key or task.args.place,
            f"it runs in {' and '.join(cls.phases)}",
        )
    values = task.args.plain()
    pending = frozenset(k for k, n in task.args.items() if _has_expressions(n))
    for p in argument_problems(cls, values, pending):
        at = task.args.at(p.path) or task.args
        place = at.key or at.place if p.id in ("PR604", "PR606") else at.place
        problems.error(p.id, f"{task.module}: {p.message}", place, p.hint)


def _has_expressions(node: Node) -> bool:
    children = [*node.elements(), *(child for _, child in node.items())]
    return is_template(node.value) or any(map(_has_expressions, children))
