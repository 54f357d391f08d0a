"""What a review's page shows of a task: each value with who set it, and problems at their lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from pairun.errors import Place, Problem
from pairun.job.planning import RolePlan
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft, history
from pairun.report.shown import shown_data
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault

Line = tuple[str, int]
"""A line: its file, and its number from 1."""


@attrs.frozen
class Setter:
    """A value that a layer wrote, masked; with the layer and the place."""

    value: str
    layer: str
    where: str


@attrs.frozen
class SettingShown:
    """A setting of a task.

    Attributes:
        path: ``retries``, ``args.depth``.
        value: the plan's value, masked; several lines for a script.
        unknown: why it is unknown before a run; empty if it is known.
        setters: who set it, the effective one first; empty for a default.
    """

    path: str
    value: str
    unknown: str
    setters: tuple[Setter, ...]


def settings_shown(
    data: Mapping[str, Any], node: Node | None, module: str, vault: Vault
) -> list[SettingShown]:
    """The settings of a task that a layer set.

    Args:
        data: the task, as `review_data.as_data` returns it.
        node: the tree that the layers made for it; None if the task's history is unknown.
        module: its module, which is the keyword of its arguments.
        vault: masks what the layers wrote.
    """
    shown: list[SettingShown] = []
    for key, value in data["args"].items():
        args = node.get(module) if node else None
        shown += _leaves(f"args.{key}", value, args.get(key) if args else None, vault)
    for key in _KEYWORDS:
        of_key = node.get(key) if node else None
        if key in data and of_key is not None:
            shown += _leaves(key, data[key], of_key, vault)
    return shown


_KEYWORDS = (
    "when", "environment", "retries", "delay", "retry_on", "timeout", "deadline", "failure_policy",
    "run_on", "exit_codes",
)  # fmt: skip


def _leaves(path: str, value: Any, node: Node | None, vault: Vault) -> Iterator[SettingShown]:
    """A setting; each entry of a mapping is a separate setting, because layers merge by key."""
    is_late = isinstance(value, Mapping) and set(value) == {"unknown", "template"}
    if isinstance(value, Mapping) and value and not is_late and node is not None:
        entries = dict(node.items())
        if entries.keys() & value.keys():
            for key, each in value.items():
                yield from _leaves(f"{path}.{key}", each, entries.get(key), vault)
            return
    key = path.rpartition(".")[2]
    unknown = str(value["unknown"]) if is_late else ""
    text = str(value["template"]) if is_late else as_text(value, key, vault)
    setters = tuple(
        Setter(as_text(each.plain(), key, vault), each.place.source.layer, str(each.place))
        for each in (history(node) if node else ())
    )
    yield SettingShown(path, text, unknown, setters)


def as_text(value: Any, key: str, vault: Vault) -> str:
    """A masked value for a reader: a text stays as it is, other data becomes JSON.

    Args:
        value: plain data.
        key: its key; a key such as ``password`` masks the whole value.
        vault: masks the value.
    """
    shown = shown_data(with_secrets(value, key), vault)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


class ProblemPlaces:
    """Finds the tasks that a problem belongs to, by the lines from which a task was made.

    Args:
        problems: errors and warnings.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._at: dict[Line, list[int]] = {}
        for number, problem in enumerate(problems):
            if problem.place is not None:
                self._at.setdefault(_line(problem.place), []).append(number)

    def of_task(self, plan: RolePlan, task: TaskDraft) -> list[int]:
        """The numbers of a task's problems, from 0, in order.

        Args:
            plan: the plan of a role.
            task: a task of that plan.
        """
        lines = {_line(task.used_at)} if task.used_at is not None else set()
        if task.origin != "plugin":
            lines |= _lines(task.node)
        elif task.given is not None:
            lines |= _lines(task.given)
        for operation in _operations(plan, task.id):
            lines |= _lines(operation)
        return sorted({n for line in lines for n in self._at.get(line, ())})


def _operations(plan: RolePlan, id_: str) -> Iterator[Node]:
    """What the job's overrides change in a task."""
    overrides = plan.job.plugin_overrides
    for phase in ("init", "runtime"):
        listed = overrides.get(phase) if overrides else None
        for operation in listed.elements() if listed else ():
            target = operation.get("patch") or operation.get("disable")
            if target is not None and str(target.value) == id_:
                yield operation


def _lines(node: Node) -> set[Line]:
    lines = {_line(place) for place in (node.place, node.key) if place is not None}
    return lines.union(*map(_lines, (*(n for _, n in node.items()), *node.elements())))


def _line(place: Place) -> Line:
    return place.source.file, place.line
