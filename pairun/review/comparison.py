"""What other content roots change for jobs.

Each side becomes flat values, path to value and who set it; one function compares them. The first
side is plain data before pairun plans the second: both may have modules with the same name, and
Python keeps only one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pairun.contract.arguments import arguments
from pairun.contract.sources import read_source
from pairun.errors import PairunError, Problem, Problems
from pairun.job.planning import RolePlan
from pairun.module import Module, Secret, format_duration
from pairun.plan import EVENTS, USER_COMMAND, Late, Task
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.document.reading import Node, elements, load_bytes
from pairun.playbook.drafts import Origins
from pairun.playbook.effective import Layers
from pairun.playbook.pluginfolders import folder_plugins
from pairun.playbook.rootfiles import PLAYBOOK_FILES, RULES_FOLDER, not_a_root
from pairun.playbook.rules import own_exit_codes
from pairun.review.jobreview import JobReview, loaded, review_data
from pairun.review.taskreview import keyword_values
from pairun.secrets.vault import Vault

BUILT_IN = "built-in"
DEFAULT = "the default"
TASK = "task"
"""The last word of the path whose value is a task's module."""

_Path = tuple[str, ...]


@attrs.frozen
class Value:
    """A value on one side.

    Attributes:
        value: plain data, a `Late` or a `Secret`.
        setter: the layer and the place that set it, or `DEFAULT`.
    """

    value: Any
    setter: str


PlanValues = Mapping[_Path, Value]


@attrs.frozen
class Change:
    """A value that differs; None for a side that does not have it.

    Attributes:
        path: such as ``init.barrier.args.timeout``.
        old: the old value.
        new: the new value.
    """

    path: str
    old: Value | None
    new: Value | None


@attrs.frozen
class RoleDiff:
    """The differences of one role.

    Attributes:
        missing: the side on which pairun could not plan it: ``old``, ``new``, ``both`` or empty.
        changes: the values that differ.
    """

    missing: str
    changes: Sequence[Change] = ()


@attrs.frozen(kw_only=True)
class JobDiff:
    """The differences of one job file.

    Attributes:
        path: the file.
        name: the job's name; None if it is not valid.
        roles: role name to its differences.
        problems: those with the ``old`` or the ``new`` roots only, and of ``both`` sides.
    """

    path: str
    name: str | None
    roles: Mapping[str, RoleDiff]
    problems: Mapping[str, Sequence[Problem]]

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        differs = any(r.changes or r.missing in ("old", "new") for r in self.roles.values())
        return bool(differs or self.problems["old"] or self.problems["new"])

    @property
    def fails(self) -> bool:
        """Whether the job is invalid with the new roots."""
        return any(p.severity == "error" for n in ("new", "both") for p in self.problems[n])


@attrs.frozen(kw_only=True)
class Comparison:
    """Jobs compared under two stacks of content roots.

    Attributes:
        old: the roots of the old side.
        new: the roots of the new side.
        shared: what differs for every job: the policy, exit codes and rules of the diagnosis.
        jobs: the differences of each job.
        vault: every secret that was read.
    """

    old: Content
    new: Content
    shared: Sequence[Change]
    jobs: Sequence[JobDiff]
    vault: Vault

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.shared) or any(d.any for d in self.jobs)


def compare(
    old: str, new: str, jobs: Sequence[str], user: str, only: list[str], vault: Vault
) -> Comparison:
    """Compare jobs under two stacks of roots.

    Args:
        old: the old side, in the form that `stacked` reads.
        new: the new side.
        jobs: files; ``-`` is standard input.
        user: the user who submits the jobs.
        only: the roles to compare; all if empty.
        vault: collects every secret that is read.

    Raises:
        PairunError: the roots of a side cannot be used.
    """
    if list(jobs).count("-") > 1:
        raise PairunError(Problem("PR801", "standard input can be one job only"))
    contents = [stacked(old), stacked(new)]
    texts = {path: loaded(path) for path in jobs}
    before, after = (
        {path: _side(layers, path, text, user, only, vault) for path, text in texts.items()}
        for layers in map(Layers, contents)
    )
    return Comparison(
        old=contents[0],
        new=contents[1],
        shared=tuple(changes(*map(_shared, contents))),
        jobs=[_job_diff(path, before[path], after[path]) for path in texts],
        vault=vault,
    )


def stacked(side: str) -> Content:
    """The stack of roots that an argument names.

    A complete root, which some version of pairun contains, replaces this version's built-in root.
    Neither side has the environment's roots: the command line alone decides.

    Args:
        side: folders, separated by ``:``; `BUILT_IN` alone or first is this version's own root.

    Raises:
        PairunError: a folder is not a content root, or a complete root is not the first one.
    """
    roots = [built_in_root()]
    for n, path in enumerate(side.split(":")):
        if path == BUILT_IN and n == 0:
            continue
        if problem := not_a_root(path):
            raise PairunError(problem)
        own = Root(path=path, layer="built-in")
        if USER_COMMAND not in own.modules() or set(PLAYBOOK_FILES) - set(own.files("playbooks")):
            roots.append(Root(path=path, layer="cluster"))
        elif n:
            message = f"{path} is a complete content root, so it must be the first"
            raise PairunError(Problem("PR801", message, hint="write it first"))
        else:
            roots = [own]
    return Content(roots)


_Side = tuple[JobReview, Mapping[str, PlanValues | None]]
"""A job with one side's roots; a role that could not be planned has no values."""


def _side(
    layers: Layers, path: str, text: bytes | PairunError, user: str, only: list[str], vault: Vault
) -> _Side:
    review = review_data(text, path, layers, user, only, vault=vault)
    planned = {p.role.name: dict(_role(p, review, layers.content)) for p in review.plans}
    roles = review.job.roles if review.job else ()
    chosen = (r.name for r in roles if not only or {r.name, r.fc_name} & set(only))
    return review, {name: planned.get(name) for name in chosen}


def _job_diff(path: str, old: _Side, new: _Side) -> JobDiff:
    (was, before), (now, after) = old, new
    had, has = {_same(p) for p in was.problems}, {_same(p) for p in now.problems}
    job = now.job or was.job
    return JobDiff(
        path=path,
        name=job.name if job else None,
        roles={name: _role_diff(before.get(name), values) for name, values in after.items()},
        problems={
            "old": [p for p in was.problems if _same(p) not in has],
            "new": [p for p in now.problems if _same(p) not in had],
            "both": [p for p in now.problems if _same(p) in had],
        },
    )


def _same(p: Problem) -> tuple[str, ...]:
    """What makes a problem the same; in a content root it may be at another line."""
    in_job = p.place is not None and p.place.source.layer == "job"
    return (p.id, p.severity, p.message, str(p.place) if in_job else "")


def _role_diff(old: PlanValues | None, new: PlanValues | None) -> RoleDiff:
    if old is None or new is None:
        return RoleDiff("both" if old is new else "old" if old is None else "new")
    return RoleDiff("", tuple(changes(old, new)))


# --- the values of one side ----------------------------------------------------------------------


def _role(plan: RolePlan, review: JobReview, content: Content) -> Iterator[tuple[_Path, Value]]:
    pod = review.pods[plan.role.name]
    refused = pod.refused(review.problems)
    for path, node in pod.values.items():
        if path not in refused:
            yield ("pod", path), _written(node)
    for phase, tasks in review.tasks[plan.role.name].items():
        draft = plan.effective.drafts[phase]
        place: Any = draft.grace.place if draft.grace is not None else draft.place
        node = Node({} if draft.grace is None else {"grace": draft.grace}, place)
        grace = format_duration(plan.plans[phase].grace_s)
        yield (phase, "grace"), Value(grace, _setter(node, ("grace",), Origins(None, draft.vars)))
        yield (phase, "order"), Value([r.id for r in tasks if r.task and not r.disabled], "")
        for each in tasks:
            own, where = draft.find(each.id), f"{each.layer} {each.where}"
            if each.disabled:
                yield (phase, each.id, "disabled"), Value(True, each.disabled)
            elif each.task is not None and own is not None:
                yield (phase, each.id, TASK), Value(each.module, where)
                if each.group:
                    yield (phase, each.id, "parallel"), Value(each.group, where)
                origins = Origins(own, draft.vars, plan.job.parameters)
                for key, value in _task(each.task, own.node, origins, content.module):
                    yield (phase, each.id, *key), value
    for name in sorted({n for p in plan.plans.values() for n in p.modules}):
        file = content.module_file(name)
        yield ("module", name), Value(file.sha256, f"{content.modules[name][1].layer} {file.path}")
    folders = folder_plugins(content, plan.effective.policy).folders
    for name in sorted({use.plugin for use in plan.uses}):
        if name in folders:
            digest = read_source(name, folders[name].path).sha256()
            yield ("plugin", name), Value(digest, folders[name].path)
        elif name in content.specs:
            document = content.document(*content.specs[name])
            text = json.dumps(document.plain(), sort_keys=True, default=str)
            digest = hashlib.sha256(text.encode()).hexdigest()
            yield ("plugin", name), Value(digest, f"{document.place.source.layer} {document.place}")


def _task(
    task: Task,
    node: Node,
    origins: Origins,
    load: Callable[[str], type[Module]],
) -> Iterator[tuple[_Path, Value]]:
    """All values of a task or an exit handler.

    Args:
        task: as planned.
        node: as written.
        origins: where its values come from.
        load: loads a module's class.
    """
    own = dict((node.get("vars") or Node({}, node.place)).items())
    origins = origins._replace(variables={**origins.variables, **own})

    def flat(path: _Path, value: Any, default: bool = False) -> Iterator[tuple[_Path, Value]]:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                yield from flat((*path, str(key)), inner, default)
        else:
            keys = (task.module, *path[1:]) if path[0] == "args" else path
            yield path, Value(value, DEFAULT if default else _setter(node, keys, origins))

    for argument in arguments(load(task.module)):
        given = argument.name in task.args
        value = task.args[argument.name] if given else argument.default
        yield from flat(("args", argument.name), argument.kind.normal(value), not given)
    yield from flat(("name",), task.title)
    for name, value in keyword_values(task).items():
        if value or name not in ("environment", "exit_codes"):
            yield from flat((name,), value)
    if (lock := node.get("locked")) is not None and lock.value is True:
        yield from flat(("locked",), True)
    for handler, entry in zip(task.on_exit, elements(node, "on_exit"), strict=False):
        place = f"{entry.place.source.layer} {entry.place}"
        event = list(handler.events) if handler.events != EVENTS else "always"
        yield ("on_exit", handler.id, "module"), Value(handler.module, place)
        yield ("on_exit", handler.id, "event"), Value(event, place)
        for path, inner in _task(handler, entry, origins, load):
            yield ("on_exit", handler.id, *path), inner


def _setter(node: Node, path: _Path, origins: Origins) -> str:
    """Who set a value: the deepest explicit place on its path, and what its text uses."""
    at = node.get(path[0])
    if at is None or at.value is None:
        return DEFAULT
    for key in path[1:]:
        inner = at.get(key)
        if inner is None:
            break
        at = inner
    words = f"{at.place.source.layer} {at.place}"
    for name, source in origins.sources(at, bare=path == ("when",)):
        if source is not None:
            words += f", {name.removeprefix('variable ')} from {source.place.source.layer} {source.place}"
    return words


_UNSET: Mapping[_Path, Any] = {
    ("plugin_folders", "roots"): "*",
    ("plugin_folders", "paths"): ["plugins"],
    ("job_yaml",): "js-yaml 3",
}
"""The values of a policy that does not have them."""


def _shared(content: Content) -> PlanValues:
    """The values that all jobs share: the policy in force, exit codes and rules of the diagnosis."""
    values: dict[_Path, Value] = {}

    def put(path: _Path, node: Node) -> None:
        if path == ("pod", "defaults"):
            return  # Every job shows the ones that it gets.
        if isinstance(node.value, dict):
            for key, inner in node.items():
                put((*path, key), inner)
        elif node.value != [] or path[0] != "job_may":  # An empty list allows as much as none.
            is_unset = path in _UNSET and node.plain() == _UNSET[path]
            set_here = _written(node)
            values[("policy", *path)] = Value(set_here.value, DEFAULT) if is_unset else set_here

    # Both sides are valid here, so no document has problems.
    for document in list(content.playbooks("policy", Problems()))[-1:]:
        put((), document)
    for klass, node in own_exit_codes(content).items():
        values[("exit_codes", klass)] = _written(node)
    for root in content.roots:
        for name, path in root.files(RULES_FOLDER).items():
            digest = hashlib.sha256(load_bytes(path)).hexdigest()
            values[("rules", f"{root.layer} {name}")] = Value(digest, f"{root.layer} {path}")
    return values


def _written(node: Node) -> Value:
    return Value(node.plain(), f"{node.place.source.layer} {node.place}")


# --- comparing -----------------------------------------------------------------------------------


def changes(old: PlanValues, new: PlanValues) -> Iterator[Change]:
    """The values that differ, in the new order.

    Of a task that is gone only its module is one, and of the order of tasks what both sides have.
    """
    for path in [*new, *(p for p in old if p not in new)]:
        before, after = old.get(path), new.get(path)
        if before is not None and after is not None:
            if path[-1] == "order" and len(path) == 2:
                before, after = _common(before, after), _common(after, before)
            if _canonical(before.value) == _canonical(after.value):
                continue
            if variables := list(_variables(path, before, after)):
                yield from variables
                continue
        else:
            value = before or after
            is_gone = path[2:] != (TASK,) and (*path[:2], TASK) in old.keys() - new.keys()
            in_use = path[0] in ("module", "plugin")  # Its task is a change already.
            # A default, or an empty value.
            is_nothing = value is None or value.setter == DEFAULT or value.value in (None, {})
            if (is_gone and after is None) or in_use or is_nothing:
                continue
        yield Change(".".join(path), before, after)


def _common(order: Value, other: Value) -> Value:
    return Value([id_ for id_ in order.value if id_ in other.value], order.setter)


def _variables(path: _Path, old: Value, new: Value) -> Iterator[Change]:
    """For a text with the same expressions on both sides, the variables that differ."""
    if _canonical(old.value, vars_too=False) != _canonical(new.value, vars_too=False):
        return
    for one, other in _late_pairs(old.value, new.value):
        for name, value in other.vars.items():
            if _canonical(one.vars.get(name)) != _canonical(value):
                was, is_ = Value(one.vars.get(name), old.setter), Value(value, new.setter)
                yield Change(f"{'.'.join(path)} ({name})", was, is_)


def _late_pairs(one: Any, other: Any) -> Iterator[tuple[Late, Late]]:
    if isinstance(one, Late) and isinstance(other, Late):
        yield one, other
    elif isinstance(one, list) and isinstance(other, list):
        for a, b in zip(one, other, strict=False):
            yield from _late_pairs(a, b)


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
    # A module treats true and 1 differently.
    return (type(value).__name__, value) if isinstance(value, bool) else value
