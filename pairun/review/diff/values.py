"""Lists the values of a task with who set each, and finds the values that differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from pairun.contract.arguments import arguments
from pairun.errors import Problem
from pairun.module import Module, Secret, format_duration
from pairun.plan import EVENTS, Late, Plan, Task
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import Draft, TaskDraft
from pairun.playbook.podfragment import PodSettings

Path = tuple[str, ...]
DEFAULT = "the default"


@attrs.frozen(kw_only=True)
class Value:
    """A value on one side.

    Attributes:
        value: plain data, a `Late` or a `Secret`.
        setter: the layer and the place that set it, or `DEFAULT`.
    """

    value: Any
    setter: str


@attrs.frozen(kw_only=True)
class ValueChange:
    """A value that differs; None for a side that does not have it.

    Attributes:
        path: ``retries``, ``args.depth``.
        old: the old value.
        new: the new value.
    """

    path: str
    old: Value | None
    new: Value | None


def task_values(
    task: Task,
    node: Node,
    draft: TaskDraft,
    variables: Mapping[str, Node],
    load: Callable[[str], type[Module]],
) -> dict[Path, Value]:
    """List all values of a task or an exit handler.

    Args:
        task: as planned.
        node: as written.
        draft: the task in the playbook; for a handler the task that registers it.
        variables: the variables of the whole playbook.
        load: loads a module's class.
    """
    variables = {**variables, **dict((node.get("vars") or Node({}, node.place)).items())}
    values: dict[Path, Value] = {}

    def say(path: Path, value: Any, default: bool = False) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                say((*path, str(key)), inner, default)
        else:
            keys = (task.module, *path[1:]) if path[0] == "args" else path
            setter = DEFAULT if default else _setter(node, keys, variables)
            values[path] = Value(value=value, setter=setter)

    say(("name",), task.name)
    for argument in arguments(load(task.module)):
        given = argument.name in task.args
        value = task.args[argument.name] if given else argument.default
        say(("args", argument.name), argument.kind.normal(value), not given)
    for name, value in _keywords(task):
        say((name,), value)
    if (lock := node.get("locked")) is not None and lock.value is True:
        say(("locked",), lock.value)
    if task.environment:
        say(("environment",), task.environment)
    if task.exit_codes:
        say(("exit_codes",), task.exit_codes)
    for handler, written in _handlers(task, node, draft):
        inner = task_values(handler, written, draft, variables, load)
        event = list(handler.events) if handler.events != EVENTS else "always"
        place = f"{written.place.source.layer} {written.place}"
        values[("on_exit", handler.id, "module")] = Value(value=handler.module, setter=place)
        values[("on_exit", handler.id, "event")] = Value(value=event, setter=place)
        values |= {("on_exit", handler.id, *path): v for path, v in inner.items()}
    return values


def grace(plan: Plan, draft: Draft) -> Value:
    """The grace time of a phase."""
    node = Node({} if draft.grace is None else {"grace": draft.grace}, _place_of(draft))
    return Value(value=format_duration(plan.grace_s), setter=_setter(node, ("grace",), draft.vars))


def pod_values(pod: PodSettings, problems: Iterable[Problem]) -> dict[Path, Value]:
    """The valid settings of a role's Pods; each value that is no mapping is a separate one."""
    refused = pod.refused(problems)
    return {
        ("pod", path): Value(value=node.plain(), setter=f"{node.place.source.layer} {node.place}")
        for path, node in pod.values.items()
        if path not in refused
    }


def _place_of(draft: Draft) -> Any:
    return draft.grace.place if draft.grace is not None else draft.place


def _keywords(task: Task) -> Iterator[tuple[str, Any]]:
    yield "when", task.when
    yield "retries", task.retries
    if task.retries:
        yield "delay", format_duration(task.delay_s)
        yield "retry_on", list(task.retry_on)
    for name, seconds in (("timeout", task.timeout_s), ("deadline", task.deadline_s)):
        yield name, None if seconds is None else format_duration(seconds)
    yield "failure_policy", task.failure_policy
    yield "run_on", task.run_on


def _handlers(task: Task, node: Node, draft: TaskDraft) -> Iterator[tuple[Task, Node]]:
    """The planned exit handlers, each with its source."""
    written = {}
    entries = node.get("on_exit")
    for n, entry in enumerate(entries.elements() if entries else (), 1):
        given = entry.get("id")
        id_ = f"{draft.id}.on_exit" + (f"_{n}" if n > 1 else "")
        written[str(given.value) if given else id_] = entry
    for handler in task.on_exit:
        yield handler, written.get(handler.id, node)


def _setter(node: Node, path: Path, variables: Mapping[str, Node]) -> str:
    """Who set a value: the deepest explicit place on its path, and the value's variables."""
    at = node.get(path[0])
    if at is None or at.value is None:
        return DEFAULT
    for key in path[1:]:
        inner = at.get(key)
        if inner is None:
            break
        at = inner
    origin = f"{at.place.source.layer} {at.place}"
    for name in _names(f"{{{{{at.value}}}}}" if path == ("when",) else at.value):
        if (variable := variables.get(name)) is not None:
            origin += f", {name} from {variable.place.source.layer} {variable.place}"
    return origin


def _names(value: Any) -> list[str]:
    """The names in the expressions of a text, each once."""
    inside = re.findall(r"\{[{%](.*?)[%}]\}", value, re.DOTALL) if isinstance(value, str) else ()
    return list(dict.fromkeys(n for text in inside for n in re.findall(r"[A-Za-z_]\w*", text)))


# --- comparing -----------------------------------------------------------------------------------


def changes(old: Mapping[Path, Value], new: Mapping[Path, Value]) -> Iterator[ValueChange]:
    """The values that differ, in the new order."""
    for path in [*new, *(p for p in old if p not in new)]:
        before, after = old.get(path), new.get(path)
        if before is not None and after is not None:
            if _canonical(before.value) == _canonical(after.value):
                continue
            if variables := list(_variables(path, before, after)):
                yield from variables
                continue
        elif _says_nothing(before or after):
            continue
        yield ValueChange(path=".".join(path), old=before, new=after)


def _variables(path: Path, old: Value, new: Value) -> Iterator[ValueChange]:
    """For a text with the same expressions on both sides, the variables that differ."""
    if _canonical(old.value, vars_too=False) != _canonical(new.value, vars_too=False):
        return
    for one, other in _late_pairs(old.value, new.value):
        for name, value in other.vars.items():
            if _canonical(one.vars.get(name)) != _canonical(value):
                yield ValueChange(
                    path=f"{'.'.join(path)} ({name})",
                    old=Value(value=one.vars.get(name), setter=old.setter),
                    new=Value(value=value, setter=new.setter),
                )


def _late_pairs(one: Any, other: Any) -> Iterator[tuple[Late, Late]]:
    if isinstance(one, Late) and isinstance(other, Late):
        yield one, other
    elif isinstance(one, list) and isinstance(other, list):
        for a, b in zip(one, other, strict=False):
            yield from _late_pairs(a, b)


def _says_nothing(value: Value | None) -> bool:
    """Whether a value that only one side has is a default or empty."""
    return value is None or value.setter == DEFAULT or value.value in (None, {})


def _canonical(value: Any, *, vars_too: bool = True) -> Any:
    """A value without details that do not affect its user, such as where it was written."""
    if isinstance(value, Late):
        return ("late", value.template, _canonical(value.vars) if vars_too else None)
    if isinstance(value, Secret):
        return ("secret", value.reveal())
    if isinstance(value, Mapping):
        return {k: _canonical(v, vars_too=vars_too) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(v, vars_too=vars_too) for v in value]
    # a module treats true and 1 differently
    return (type(value).__name__, value) if isinstance(value, bool) else value
