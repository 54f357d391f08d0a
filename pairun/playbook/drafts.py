"""Playbooks while layers are applied: tasks as trees in which every value keeps its history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import attrs

from pairun.errors import Place, Problems
from pairun.module import Phase
from pairun.plan import USER_COMMAND, FailurePolicy
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.keywords import keywords_of


@attrs.define(kw_only=True, eq=False)
class TaskDraft:
    """A task whose values layers can still override.

    Attributes:
        node: keyword to value; the module's arguments are under its name.
        origin: the layer that added the task: built-in, cluster, plugin, engine, job.
        scope: further names that the task's own expressions see (a plugin's parameters).
        failure_policy: the default for this task.
        handler_policy: the default for its exit handlers.
        disabled: the place that disables it, if any.
        used_at: the place in the job that uses the task's plugin.
        given: the parameters of this use of its plugin: those of the job, and the spec's defaults.
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


class GroupDraft(NamedTuple):
    """A parallel group."""

    name: str
    tasks: list[TaskDraft]
    place: Place


@attrs.define(kw_only=True, eq=False)
class Draft:
    """The playbook of one phase while layers are applied.

    Attributes:
        vars: variables of the whole playbook.
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


class PluginUse(NamedTuple):
    """One plugin that a role of a job uses.

    Attributes:
        plugin: name of the plugin spec.
        base_id: the prefix of its tasks' ids: the plugin's name, or the prerequisite's.
        parameters: rendered; a scalar that contains a secret holds a `Secret`.
        failure_policy: the job's setting, ``fail`` by default.
        place: where the job uses the plugin.
    """

    plugin: str
    base_id: str
    parameters: Node
    failure_policy: FailurePolicy
    place: Place


def draft_task(
    node: Node, modules: Mapping[str, object], origin: str, problems: Problems, **more: Any
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
            message = f"the task has {len(named)} modules: {', '.join(named)}"
            problems.error("PR203", message, second.head, "write one task for each")
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


class Setter(NamedTuple):
    """A value, and who set it.

    Attributes:
        layer: such as ``job``.
        source: the parameter or variable with this value, for a value that another text uses.
    """

    value: Any
    layer: str
    where: str
    source: str = ""


_USER_EXTENSION = Setter(
    "unknown until run", "platform", "the mounted user extension", "user_extension"
)
_COMMANDS = ("preCommands", "postCommands", "callbacks")
"""The parameters that make ``plugin.commands``."""
_NAME = re.compile(r"""(?<![\w.'"])(?:(parameters|expanded)(?:\.|\[['"]))?([A-Za-z_]\w*)""")


class Origins(NamedTuple):
    """Where the values of a task come from.

    Attributes:
        task: the task; None for the playbook itself.
        variables: those of its playbook.
    """

    task: TaskDraft | None
    variables: Mapping[str, Node]
    parameters: Node | None = None

    def setters(self, node: Node, *, bare: bool = False) -> tuple[Setter, ...]:
        """Who set a value, the effective one first: what its text uses, then the layers.

        Args:
            bare: the text is an expression, as that of ``when``.
        """
        used = []
        for name, source in self.sources(node, bare=bare):
            if source is None:
                used.append(_USER_EXTENSION)
                continue
            is_default = name.startswith("parameter") and source.place.source.layer != "job"
            used.append(setter_of(source, f"default of {name}" if is_default else name))
        return (*used, *map(setter_of, history(node)))

    def sources(self, node: Node, *, bare: bool = False) -> Iterator[tuple[str, Node | None]]:
        """The parameters and variables that a value uses; the user's extension has no node."""
        in_job = node.place.source.layer == "job"
        given, variables = self.parameters, {**self.variables}
        if self.task is not None:
            given = given if in_job or self.task.given is None else self.task.given
            own = self.task.node.get("vars")
            variables |= dict(own.items()) if own is not None else {}
        expressions = list(_expressions(node, bare=bare))
        seen = set()
        for expression in expressions:
            used = _NAME.findall(expression)
            if "plugin.commands." in expression:
                used += [("parameters", n) for n in _COMMANDS if given and elements(given, n)]
            for of, name in used:
                if (of, name) in seen:
                    continue
                seen.add((of, name))
                if of and given is not None and (parameter := given.get(name)) is not None:
                    yield f"parameter {name}", parameter
                elif not of and name == "user_extension" and not in_job:
                    yield name, None
                elif not of and (variable := variables.get(name)) is not None:
                    yield f"variable {name}", variable
                    expressions += _expressions(variable, bare=False)


def setter_of(node: Node, source: str = "") -> Setter:
    """Who set a value, without the layers below."""
    return Setter(node.plain(), node.place.source.layer, str(node.place), source)


def _expressions(node: Node, *, bare: bool) -> Iterator[str]:
    for child in (*(child for _, child in node.items()), *node.elements()):
        yield from _expressions(child, bare=bare)
    if isinstance(node.value, str) and bare:
        yield node.value
    elif isinstance(node.value, str):
        yield from re.findall(r"\{[{%](.*?)[%}]\}", node.value, re.DOTALL)


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
