"""The scripts of a job and of a content root's files, with the places of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.job.hiding import leaves
from pairun.job.planning import RolePlan
from pairun.job.scripts import Script, command_script, node_lines
from pairun.module import Secret
from pairun.plan import USER_COMMAND, Task
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft

SCRIPT_ARGUMENTS = ("script", "unless")
"""The module arguments that contain shell scripts."""

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def scripts_of_plan(plan: RolePlan) -> Iterator[Script]:
    """The user's command of a role, and the scripts of its plugins, its job and its cluster."""
    yield command_script(plan.job, plan.role)
    for phase, phase_plan in plan.plans.items():
        draft = plan.effective.drafts[phase]
        for task in phase_plan.tasks():
            if task.module != USER_COMMAND and (found := draft.find(task.id)) is not None:
                texts = _written_texts(found)
                for each in (task, *task.on_exit):
                    yield from _scripts_of(each, texts, found)


def _written_texts(draft: TaskDraft) -> list[Node]:
    """The possible sources of a task's scripts: the job's parameters, and texts of other roots."""
    given = leaves(draft.given) if draft.given is not None else ()
    own = (leaf for leaf in leaves(draft.node) if leaf.place.source.layer != "built-in")
    return [leaf for leaf in (*given, *own) if isinstance(leaf.value, str)]


def _scripts_of(task: Task, texts: list[Node], draft: TaskDraft) -> Iterator[Script]:
    for name in SCRIPT_ARGUMENTS:
        value = task.args.get(name)
        text = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str) or not texts:
            continue
        known = {
            text.value[at:].split("\n", 1)[0].strip(): (text, at)
            for node in reversed(texts) for text, at in node_lines(node)
        }  # fmt: skip
        lines = [known.get(line.strip()) for line in text.split("\n") if line.strip()]
        if not any(lines):
            continue  # a built-in script, or the result of an expression
        yield Script(
            name=f"the {name} of the task '{draft.id}'",
            text=text,
            lines=tuple(_filled([known.get(line.strip()) for line in text.split("\n")])),
            secret=isinstance(value, Secret),
        )


def _filled(lines: list[tuple[Node, int] | None]) -> Iterator[tuple[Node, int]]:
    """The lines without gaps: each missing line gets the place of the line before it."""
    last = next(line for line in lines if line is not None)
    for line in lines:
        last = line or last
        yield last


def scripts_of_file(document: Node) -> Iterator[Script]:
    """The scripts in a playbook or plugin spec; scripts with statements are checked with a job."""
    for name, node in _named_leaves(document, ""):
        text = node.value
        if name not in SCRIPT_ARGUMENTS or not isinstance(text, str) or "{%" in text:
            continue
        plain = _EXPRESSION.sub(lambda e: re.sub(r"[^\n]", "x", e[0]), text)
        if plain.strip("x \n"):
            yield Script(name=f"the {name}", text=plain, lines=tuple(node_lines(node)))


def _named_leaves(node: Node, name: str) -> Iterator[tuple[str, Node]]:
    if not isinstance(node.value, dict | list):
        yield name, node
    for key, child in node.items():
        yield from _named_leaves(child, key)
    for child in node.elements():
        yield from _named_leaves(child, name)
