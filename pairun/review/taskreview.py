"""Reviews a task: what it would change, without running it, and who overrode which value."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from pairun.contract.arguments import build, error_text
from pairun.module import (
    CheckModule,
    Context,
    Failure,
    Module,
    Skip,
    StateModule,
    UnknownUntilRun,
    Verdict,
    format_duration,
    unknown,
)
from pairun.plan import Late, Plan, Task
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    # The user's container, which has no YAML library, reviews finished plans, too.
    from pairun.playbook.content import Content
    from pairun.playbook.document.reading import Node
    from pairun.playbook.drafts import Draft, Origins, Setter, TaskDraft


CHECKED = "checked at run time"
"""The beginning of a verdict on a check that will really check."""


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
        overrides: the values that higher layers set, as `overrides_of` yields them.
        disabled: the place that disabled it.
        origins: where its values come from; None if that is unknown.
    """

    task: Task | None
    id: str
    name: str
    module: str
    layer: str
    where: str
    verdict: Verdict
    group: str | None = None
    overrides: tuple[tuple[str, Setter, Setter], ...] = ()
    disabled: str | None = None
    origins: Origins | None = None

    @property
    def skipped(self) -> bool:
        """Whether it is disabled, or its condition is false."""
        return self.task is None or self.verdict.because.startswith("skipped")

    @property
    def kind(self) -> str:
        """What a reader wants to know: whether it runs or writes something, else its verdict's kind."""
        if self.skipped:
            return "disabled" if self.disabled else "skipped"
        return self.verdict.does or self.verdict.kind.replace("will_change", "writes")


_KEYWORDS = tuple(
    field.name
    for field in attrs.fields(Task)
    if field.name not in ("id", "name", "module", "args", "on_exit", "events", "of_plugin", "where")
)


def keyword_values(task: Task) -> dict[str, Any]:
    """The keywords of a task, in the form of a playbook; those of retries only if it has any."""
    values: dict[str, Any] = {}
    for name in _KEYWORDS:
        value, keyword = getattr(task, name), name.removesuffix("_s")
        if not task.retries and keyword in ("delay", "retry_on"):
            continue
        if keyword != name and value is not None:
            value = format_duration(value)
        values[keyword] = list(value) if isinstance(value, tuple) else value
    return values


_DEFAULTS = keyword_values(Task(id="", name="", module="", args={}))


def is_unset(keyword: str, value: Any) -> bool:
    """Whether a keyword has its default, and a reader need not know it."""
    is_of_interest = keyword in ("retries", "failure_policy")
    return not is_of_interest and (keyword, value) in _DEFAULTS.items()


def review_phase(
    plan: Plan,
    draft: Draft,
    content: Content,
    context: Context,
    parameters: Node | None = None,
) -> list[Reviewed]:
    """Review every task of a phase, including disabled ones.

    Args:
        plan: the phase.
        draft: the playbook of the plan, for the history of its values.
        content: the content roots.
        context: the context for verdicts; must not be changed.
        parameters: those of the job, for who set a value.
    """
    from pairun.playbook.drafts import GroupDraft, Origins

    planned = {t.id: t for t in plan.tasks()}
    groups = {t.id: s.name for s in draft.steps if isinstance(s, GroupDraft) for t in s.tasks}
    out = []
    for item in draft.tasks():
        task, name = planned.get(item.id), item.node.get("name")
        seen = Reviewed(
            task=None,
            id=item.id,
            name=str(name.value) if name else "",
            module=item.module,
            layer=item.origin,
            where=str(item.place),
            verdict=Verdict("no_change", "disabled"),
            group=groups.get(item.id),
            disabled=f"{item.disabled} ({item.disabled.source.layer})" if item.disabled else None,
        )
        if task is not None and not item.disabled:
            is_sound = task.args or all(node.value is None for _, node in item.args.items())
            seen = seen._replace(
                task=task,
                name=task.title,
                verdict=_verdict(task, content.module, context, item.node.get("when"))
                if is_sound
                else Verdict("unknown", "its arguments are invalid"),
                overrides=tuple(overrides_of(item)),
                origins=Origins(item, draft.vars, parameters),
            )
        out.append(seen)
    return out


def probe_phase(
    plan: Plan, draft: Draft, content: Content, env: Mapping[str, str], pai_dir: str, vault: Vault
) -> list[Reviewed]:
    """Review a phase in its own container, which pairun probes but does not change."""
    from pairun.host.context import ProbeContext

    context = ProbeContext(env=env, pai_dir=pai_dir, emit_hidden=vault.add)
    return review_phase(plan, draft, content, context)


def probe_plan(plan: Plan, env: Mapping[str, str], pai_dir: str, vault: Vault) -> list[Reviewed]:
    """Review the plan that init made; the history of its values is unknown here."""
    from pairun.contract.loading import plan_loader
    from pairun.host.context import ProbeContext
    from pairun.volume.door import Door

    context = ProbeContext(env=env, pai_dir=pai_dir, emit_hidden=vault.add)
    load = plan_loader(plan.modules, Door(pai_dir))
    return [
        Reviewed(
            task=task, id=task.id, name=task.title, module=task.module, layer="", where=task.where,
            verdict=_verdict(task, load, context),
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


def judge(task: Task, cls: type[Module], context: Context) -> Verdict:
    """Make the verdict on a task; the context must not be changed.

    Args:
        task: the task; its arguments may be unknown until it runs.
        cls: its module's class.
        context: a read-only context.
    """
    late = next((v for v in late_values(task.args) if v is not task.when), None)
    if issubclass(cls, CheckModule):
        depends = f": depends on {late.because}" if late else ""
        return Verdict("check", f"{CHECKED}{depends}")
    if late is not None:
        certain = cls.certainly if issubclass(cls, StateModule) else ""
        return Verdict("unknown", f"depends on {late.because}", does=certain)
    try:
        # Standard output may be JSON (--json): keep a module's prints out of it.
        with contextlib.redirect_stdout(sys.stderr):
            return _planned(task, cls, context)
    except UnknownUntilRun as e:
        return unknown(e.because)
    except Skip as e:
        return Verdict("no_change", e.because)
    except Failure as e:
        return unknown(f"it would fail: {e.message}")
    except (Exception, SystemExit) as e:  # noqa: BLE001 - a module's code may raise anything
        return unknown(f"the module's probe failed: {error_text(e)}")


def _planned(task: Task, cls: type[Module], context: Context) -> Verdict:
    module, problems = build(cls, task.args)
    if module is None:
        return unknown("; ".join(p.message for p in problems))
    assert isinstance(module, StateModule)
    verdict: object = module.plan(module.probe(context))
    if isinstance(verdict, Verdict):
        return verdict
    what = type(verdict).__name__
    return unknown(f"the module's probe failed: plan returned {what}, not a verdict")


def late_values(value: Any) -> Iterator[Late]:
    """Every late value in a task's data."""
    if isinstance(value, Late):
        yield value
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from late_values(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from late_values(v)


def sources_of(origins: Origins) -> Iterator[tuple[str, Setter]]:
    """The parameters and variables in the values of a task, with the path of the value."""
    task = origins.task
    for keyword, node in task.node.items() if task else ():
        path = "args" if task and keyword == task.module else keyword
        is_entries = isinstance(node.value, dict)
        for key, value in node.items() if is_entries else ((path, node),):
            for setter in origins.setters(value, bare=path == "when"):
                if setter.source:
                    yield f"{path}.{key}" if is_entries else path, setter


def overrides_of(item: TaskDraft) -> Iterator[tuple[str, Setter, Setter]]:
    """The values of a task that higher layers set: path, who set it, and what it replaced."""
    from pairun.playbook.document.reading import Node
    from pairun.playbook.drafts import setter_of

    for keyword, node in item.node.items():
        if node.overrides is None and node.place.source is not item.place.source:
            # The task did not have this keyword, so it overrides a default.
            unset = Node(None, item.place)
            node = Node(node.value, node.place, node.key, unset)  # noqa: PLW2901
        for leaf, path in _changed(node, "args" if keyword == item.module else keyword):
            assert leaf.overrides is not None
            yield path, setter_of(leaf), setter_of(leaf.overrides)


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
