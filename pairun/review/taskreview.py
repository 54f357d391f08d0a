"""Reviews a task: its verdict, and who overrode which value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pairun.module import Context, Module, Verdict
from pairun.plan import Late, Plan, Task
from pairun.review.verdict import judge

if TYPE_CHECKING:
    # The user's container, which has no YAML library, reviews finished plans, too.
    from pairun.playbook.content import Content
    from pairun.playbook.document.reading import Node
    from pairun.playbook.drafts import Draft, TaskDraft

SCHEMA = 1


class Override(NamedTuple):
    """A value that a higher layer set.

    Attributes:
        path: ``retries``, ``args.depth``.
        value: the value as written.
        layer: the layer that set it.
        where: the place where it is written.
        before: the value that it replaced, with layer and place.
    """

    path: str
    value: Any
    layer: str
    where: str
    before: tuple[Any, str, str]


class Reviewed(NamedTuple):
    """A reviewed task.

    Attributes:
        task: the planned task; None if it is disabled.
        id: its id.
        name: its description.
        module: its module.
        layer: the layer that added it.
        verdict: what it would do.
        group: the description of its parallel group.
        overrides: the values that higher layers set.
        disabled: the place that disabled it.
    """

    task: Task | None
    id: str
    name: str
    module: str
    layer: str
    where: str
    verdict: Verdict
    group: str | None
    overrides: tuple[Override, ...]
    disabled: str | None = None

    @property
    def skipped(self) -> bool:
        """Whether it is disabled, or its condition is false."""
        return self.task is None or self.verdict.because.startswith("skipped")


def review_phase(plan: Plan, draft: Draft, content: Content, context: Context) -> list[Reviewed]:
    """Review every task of a phase, including disabled ones.

    Args:
        plan: the phase.
        draft: the playbook of the plan, for the history of its values.
        content: the content roots.
        context: the context for verdicts; must not be changed.
    """
    from pairun.playbook.drafts import GroupDraft

    planned = {t.id: t for t in plan.tasks()}
    groups = {t.id: s.name for s in draft.steps if isinstance(s, GroupDraft) for t in s.tasks}
    out = []
    for item in draft.tasks():
        task = planned.get(item.id)
        if item.disabled or task is None:
            out.append(_disabled(item, groups.get(item.id)))
            continue
        out.append(
            Reviewed(
                task=task,
                id=task.id,
                name=task.name,
                module=task.module,
                layer=item.origin,
                where=str(item.place),
                verdict=_verdict(task, content.module, context, item.node.get("when"))
                if task.args or all(node.value is None for _, node in item.args.items())
                else Verdict("unknown", "its arguments are invalid"),
                group=groups.get(task.id),
                overrides=tuple(overrides_of(item)),
            )
        )
    return out


def review_plan(
    plan: Plan, load: Callable[[str], type[Module]], context: Context
) -> list[Reviewed]:
    """Review every task of an existing plan, without the history of its values."""
    return [
        Reviewed(
            task=task, id=task.id, name=task.name, module=task.module, layer="", where=task.where,
            verdict=_verdict(task, load, context), group=None, overrides=(),
        )
        for task in plan.tasks()
    ]  # fmt: skip


def _verdict(
    task: Task,
    load: Callable[[str], type[Module]],
    context: Context,
    when: Node | None = None,
) -> Verdict:
    if task.when is False:
        condition = "its condition" if when is None or when.value is False else str(when.value)
        return Verdict("no_change", f"skipped: {condition} is false")
    verdict = judge(task, load(task.module), context)
    if isinstance(task.when, Late):
        return Verdict("unknown", f"whether it runs depends on {task.when.because}")
    return verdict


def _disabled(item: TaskDraft, group: str | None) -> Reviewed:
    name = item.node.get("name")
    return Reviewed(
        task=None,
        id=item.id,
        name=str(name.value) if name else "",
        module=item.module,
        layer=item.origin,
        where=str(item.place),
        verdict=Verdict("no_change", "disabled"),
        group=group,
        overrides=(),
        disabled=f"{item.disabled} ({item.disabled.source.layer})" if item.disabled else None,
    )


def overrides_of(item: TaskDraft) -> Iterator[Override]:
    """The values of a task that higher layers set."""
    from pairun.playbook.document.reading import Node

    for keyword, node in item.node.items():
        if node.overrides is None and node.place.source is not item.place.source:
            # The task did not have this keyword, so it overrides a default.
            unset = Node(None, item.place)
            node = Node(node.value, node.place, node.key, unset)  # noqa: PLW2901
        path = "args" if keyword == item.module else keyword
        for leaf, where in _changed(node, path):
            before = leaf.overrides
            assert before is not None
            yield Override(
                path=where,
                value=leaf.plain(),
                layer=leaf.place.source.layer,
                where=str(leaf.place),
                before=(before.plain(), before.place.source.layer, str(before.place)),
            )


def _changed(node: Node, path: str) -> Iterator[tuple[Node, str]]:
    from pairun.playbook.document.reading import Node

    if isinstance(node.value, dict) and (
        node.overrides is None or isinstance(node.overrides.value, dict)
    ):
        low = node.overrides.value if node.overrides is not None else {}
        for key, child in node.items():
            if child.overrides is not None:
                yield from _changed(child, f"{path}.{key}")
            elif node.overrides is not None and key not in low:
                # The lower layer did not have this key, so it overrides a default.
                unset = Node(None, node.overrides.place)
                yield Node(child.value, child.place, child.key, unset), f"{path}.{key}"
    elif node.overrides is not None:
        yield node, path
