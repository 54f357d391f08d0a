"""Playbooks while layers are applied: tasks as trees in which every value keeps its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from pairun.errors import Place, Problems
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.document.reading import Node
from pairun.playbook.keywords import keywords_of


@attrs.define(kw_only=True, eq=False)
class TaskDraft:
    """A task whose values layers can still override.

    Attributes:
        id: the task's id.
        module: the name of its module.
        node: keyword to value; the module's arguments are under its name.
        origin: the layer that added the task: built-in, cluster, plugin, engine, job.
        scope: further names that the task's own expressions see (a plugin's parameters).
        failure_policy: the default for this task.
        handler_policy: the default for its exit handlers.
        disabled: the place that disables it, if any.
        used_at: the place in the job that uses the task's plugin.
        given: the parameters that the job passes to this plugin.
    """

    id: str
    module: str
    node: Node
    origin: str
    scope: Mapping[str, Any] = attrs.field(factory=dict)
    failure_policy: str = "fail"
    handler_policy: str = "ignore"
    disabled: Place | None = None
    used_at: Place | None = None
    given: Node | None = None

    @property
    def place(self) -> Place:
        """Where the task was first written."""
        return self.node.place

    @property
    def args(self) -> Node:
        """The module's arguments, as written."""
        node = self.node.get(self.module)
        assert node is not None  # a draft always has its module
        return node

    def value_at(self, path: str) -> Node | None:
        """The value of ``retries`` or ``args.depth``; None if no layer sets it."""
        first, *rest = path.split(".")
        if first not in keywords_of("task") and first != "args":
            return None
        node = self.args if first == "args" else self.node.get(first)
        return node.at(tuple(int(p) if p.isdigit() else p for p in rest)) if node else None


@attrs.define(kw_only=True, eq=False)
class GroupDraft:
    """A parallel group."""

    name: str
    tasks: list[TaskDraft]
    place: Place


@attrs.define(kw_only=True, eq=False)
class Draft:
    """The playbook of one phase while layers are applied.

    Attributes:
        phase: which phase.
        steps: tasks and groups, in order.
        vars: variables of the whole playbook.
        grace: time between TERM and KILL.
        place: of the list of tasks.
        left_out: base ids of plugins without tasks, because the plugin has an error.
    """

    phase: Phase
    steps: list[TaskDraft | GroupDraft] = attrs.field(factory=list)
    vars: dict[str, Node] = attrs.field(factory=dict)
    grace: Node | None = None
    place: Place | None = None
    left_out: set[str] = attrs.field(factory=set)

    def tasks(self) -> Iterator[TaskDraft]:
        """Every task, including those of groups and disabled ones."""
        for step in self.steps:
            yield from step.tasks if isinstance(step, GroupDraft) else (step,)

    def find(self, id_: str) -> TaskDraft | None:
        """The task with this id."""
        return next((t for t in self.tasks() if t.id == id_), None)

    def by_id(self) -> dict[str, TaskDraft]:
        """Every task by its id; the first of several with the same id."""
        return {t.id: t for t in reversed([*self.tasks()])}

    def end(self) -> int:
        """The index for an appended task: the end, but before the user's command."""
        last = self.steps[-1] if self.steps else None
        ends = isinstance(last, TaskDraft) and last.module == USER_COMMAND
        return len(self.steps) - 1 if ends else len(self.steps)


def draft_task(
    node: Node,
    modules: Mapping[str, object],
    origin: str,
    problems: Problems,
    **more: Any,
) -> TaskDraft | None:
    """Make a task from its tree; None, with a problem, unless it has exactly one module."""
    reserved = {*keywords_of("task"), *keywords_of("operation"), "event"}
    named = [k for k, _ in node.items() if k in modules and k not in reserved]
    if len(named) != 1:
        unknown = [n for k, n in node.items() if k not in modules and k not in reserved]
        if not named and not unknown:
            problems.error("PR203", "the task has no module", node.place, "see `pairun doc`")
        elif named:
            second = node.value[named[1]]
            problems.error(
                "PR203",
                f"the task has {len(named)} modules: {', '.join(named)}",
                second.key or second.place,
                "write one task for each",
            )
        return None
    module = named[0]
    args = node.value[module]
    if args.value is None:
        # `hold:` alone is a module without arguments
        args = Node({}, args.place, args.key)
    elif not isinstance(args.value, dict):
        problems.error("PR204", f"'{module}' must be a mapping of arguments", args.place)
        return None
    given = node.get("id")
    fixed = Node({**node.value, module: args}, node.place, node.key)
    id_ = str(given.value) if given and given.value else module
    return TaskDraft(id=id_, module=module, node=fixed, origin=origin, **more)


def free_id(base: str, taken: dict[str, int]) -> str:
    """Take the first of ``base``, ``base_2``, ``base_3`` … that is free.

    Args:
        base: the id if nothing has it.
        taken: the ids in use, each with the number to begin with; gets the new id.
    """
    id_, n = base, taken.get(base, 1)
    while id_ in taken:
        n += 1
        id_ = f"{base}_{n}"
    taken[base] = n
    taken[id_] = taken.get(id_, 1)
    return id_


def history(node: Node) -> Iterator[Node]:
    """The values that the layers set, the effective one first."""
    current: Node | None = node
    while current is not None:
        yield current
        current = current.overrides


def merged(low: Node | None, high: Node) -> Node:
    """Merge two values: mappings merge by key; otherwise the higher one replaces the lower.

    A null keeps its node, so that its place is known; it means "back to the default".
    """
    if low is None:
        return high
    if isinstance(low.value, dict) and isinstance(high.value, dict):
        value = {**low.value, **{k: merged(low.value.get(k), v) for k, v in high.items()}}
        return Node(value, high.place, high.key, low)
    return Node(high.value, high.place, high.key, low)
