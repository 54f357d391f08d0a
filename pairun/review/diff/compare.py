"""Compares two plans of one job: tasks, values, modules, plugin specs, problems.

The first side becomes plain data before pairun plans the second: both sides may have modules with
the same name, and Python keeps only one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import Problem
from pairun.module import Phase
from pairun.review.diff.values import Value, ValueChange, changes


@attrs.frozen(kw_only=True)
class TaskSide:
    """A task on one side.

    Attributes:
        id: its id.
        name: its description.
        module: its module.
        layer: the layer that added it.
        where: the place where it is written.
        disabled: the place that disabled it, if any.
        values: all its values, with who set each.
    """

    id: str
    name: str
    module: str
    layer: str
    where: str
    disabled: str | None
    values: Mapping[tuple[str, ...], Value]


@attrs.frozen(kw_only=True)
class RoleSide:
    """A role on one side.

    Attributes:
        tasks: phase to its tasks in order, including disabled ones.
        grace: phase to its grace time.
        modules: name to file and digest of each module in use.
        plugins: name to spec (as plain data) or folder digest of each plugin in use.
        pod: the settings of its Pods, with who set each.
    """

    tasks: Mapping[Phase, Sequence[TaskSide]]
    grace: Mapping[Phase, Value]
    modules: Mapping[str, tuple[str, str]]
    plugins: Mapping[str, Any]
    pod: Mapping[tuple[str, ...], Value]


@attrs.frozen(kw_only=True)
class TaskChange:
    """The change of one task.

    Attributes:
        old: the old task; None if it is new.
        new: the new task; None if it was removed.
        because: why one side lacks it, if known.
        moved: the ids of its old and new predecessors (empty: it was or is first).
        values: the values that differ.
    """

    old: TaskSide | None
    new: TaskSide | None
    because: str | None = None
    moved: tuple[str, str] | None = None
    values: tuple[ValueChange, ...] = ()

    @property
    def task(self) -> TaskSide:
        """The new task, or the old one if it was removed."""
        task = self.new or self.old
        assert task is not None
        return task

    @property
    def kind(self) -> str:
        """``added``, ``removed`` or ``changed``."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"


@attrs.frozen(kw_only=True)
class RoleDiff:
    """The differences of one role.

    Attributes:
        missing: the side on which pairun could not plan it, if any.
        tasks: phase to the changes of its tasks.
        grace: phase to its grace time, if that changed.
        modules: name to old and new file and digest, if they differ.
        plugins: the plugins whose specs differ.
        pod: the Pod settings that differ.
    """

    missing: str | None = None
    tasks: Mapping[Phase, Sequence[TaskChange]] = attrs.field(factory=dict)
    grace: Mapping[Phase, ValueChange] = attrs.field(factory=dict)
    modules: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = attrs.field(factory=dict)
    plugins: Sequence[str] = ()
    pod: Sequence[ValueChange] = ()

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        differing = (self.grace, self.modules, self.plugins, self.pod)
        return bool(self.missing or any(self.tasks.values()) or any(differing))


def diff_role(old: RoleSide | None, new: RoleSide | None) -> RoleDiff:
    """Compare both sides of a role; a side that could not be planned is None."""
    if old is None or new is None:
        return RoleDiff(missing="both" if old is new else "old" if old is None else "new")
    now = {t.id: p for p, tasks in new.tasks.items() for t in tasks if not t.disabled}
    before = {t.id: p for p, tasks in old.tasks.items() for t in tasks if not t.disabled}
    grace = {p: list(changes({(): old.grace[p]}, {(): new.grace[p]})) for p in old.grace}
    return RoleDiff(
        tasks={p: list(_phase(old.tasks[p], new.tasks[p], before, now)) for p in new.tasks},
        grace={p: grace_changes[0] for p, grace_changes in grace.items() if grace_changes},
        modules={
            n: (old.modules[n], file)
            for n, file in new.modules.items()
            if n in old.modules and old.modules[n][1] != file[1]
        },
        plugins=[
            n for n, spec in new.plugins.items() if n in old.plugins and old.plugins[n] != spec
        ],
        pod=tuple(changes(old.pod, new.pod)),
    )


def _phase(
    old: Sequence[TaskSide],
    new: Sequence[TaskSide],
    before: Mapping[str, Phase],
    now: Mapping[str, Phase],
) -> Iterator[TaskChange]:
    """The changes of one phase: removed tasks first, then the others in their new order."""
    was = {t.id: t for t in old if not t.disabled}
    is_ = {t.id: t for t in new if not t.disabled}
    taken_out = {t.id: t.disabled for t in (*old, *new) if t.disabled}
    for id_, task in was.items():
        if id_ not in is_:
            elsewhere = f"it is in {now[id_]} now" if id_ in now else None
            out = f"disabled by {taken_out[id_]}" if id_ in taken_out else None
            yield TaskChange(old=task, new=None, because=out or elsewhere)
    moved = _moved(list(was), list(is_))
    for id_, task in is_.items():
        if id_ not in was:
            elsewhere = f"it was in {before[id_]}" if id_ in before else None
            out = f"was disabled by {taken_out[id_]}" if id_ in taken_out else None
            yield TaskChange(old=None, new=task, because=out or elsewhere)
            continue
        first = was[id_]
        values = tuple(changes(first.values, task.values))
        if values or id_ in moved or first.module != task.module:
            yield TaskChange(old=first, new=task, moved=moved.get(id_), values=values)


def _moved(old: list[str], new: list[str]) -> dict[str, tuple[str, str]]:
    """The smallest set of moved tasks that explains the new order, with their predecessors."""
    positions = [old.index(i) for i in new if i in old]
    # The longest increasing run of old positions stays (patience sorting); the rest has moved.
    ends: list[int] = []
    chains: list[list[int]] = []
    for position in positions:
        at = bisect.bisect_left(ends, position)
        chain = [*(chains[at - 1] if at else []), position]
        ends[at : at + 1] = [position]
        chains[at : at + 1] = [chain]
    kept = set(chains[-1]) if chains else set()
    behind_old = dict(zip(old, ["", *old], strict=False))
    behind_new = dict(zip(new, ["", *new], strict=False))
    return {old[p]: (behind_old[old[p]], behind_new[old[p]]) for p in positions if p not in kept}


@attrs.frozen(kw_only=True)
class ProblemDiff:
    """The problems of a job's two sides.

    Attributes:
        old: problems that only the old side has.
        new: problems that only the new side has.
        both: problems of both sides.
    """

    old: Sequence[Problem]
    new: Sequence[Problem]
    both: Sequence[Problem]


def diff_problems(old: Sequence[Problem], new: Sequence[Problem]) -> ProblemDiff:
    """Compare problems; in a content root, the same problem may be at another line."""
    had, has = {_same(p) for p in old}, {_same(p) for p in new}
    return ProblemDiff(
        old=[p for p in old if _same(p) not in has],
        new=[p for p in new if _same(p) not in had],
        both=[p for p in new if _same(p) in had],
    )


def _same(p: Problem) -> tuple[str, ...]:
    in_job = p.place is not None and p.place.source.layer == "job"
    return (p.id, p.severity, p.message, str(p.place) if in_job else "")
