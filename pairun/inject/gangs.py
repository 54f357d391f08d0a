"""The gang of a workload: its roles and their sizes, from the kind's own fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import Problems
from pairun.inject.options import InjectOptions
from pairun.inject.templates import Template, mapping_at
from pairun.job.model import fc_name
from pairun.kube.gang import GANG_VARIABLE, POD_NAME, GangRole, IndexPart, gang_text
from pairun.kube.labels import INDEXED

ALONE = "it starts alone, without a barrier"
"""A Pod whose stage has no other."""
_SAY = (
    "set it with --gang N, and --gang N,KEY where the names of its Pods do not end with their "
    "numbers; --gang N,KEY=VALUE names labels other than the template's"
)


class _NoBarrierError(Exception):
    """Why a barrier is impossible."""

    def __init__(self, why: str, hint: str | None = None, *, lone: bool = False) -> None:
        super().__init__(why)
        self.hint, self.lone = hint, lone


@attrs.frozen(kw_only=True)
class InjectedGang:
    """A gang, as an injected Pod describes it to its init container.

    Attributes:
        same: labels with the same values on all its Pods; the values come from this Pod.
        roles: its roles, the leader's first.
        role: the template's role.
    """

    same: Sequence[str]
    roles: tuple[GangRole, ...]
    role: str

    @property
    def size(self) -> int:
        """How many Pods the gang has."""
        return sum(role.instances for role in self.roles)

    def variables(self, name: str) -> list[dict[str, Any]]:
        """The variables of the init container."""
        own = next(r for r in self.roles if r.name == self.role)
        same = {key: f"PAIRUN_GANG_LABEL_{n}" for n, key in enumerate(self.same)}
        index = {part.key: f"PAIRUN_GANG_INDEX_{n}" for n, part in enumerate(own.index)}
        fields = {variable: _label(key) for key, variable in same.items()}
        fields |= {variable: _source(key) for key, variable in index.items()}
        fields["FC_FRAMEWORK_NAMESPACE"] = "metadata.namespace"
        return [
            *(
                {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for variable, path in fields.items()
            ),
            {"name": "FC_FRAMEWORK_NAME", "value": name},
            {"name": GANG_VARIABLE, "value": gang_text(same, self.roles, self.role, index)},
        ]


def gang_of(
    template: Template, siblings: Sequence[Template], options: InjectOptions, problems: Problems
) -> InjectedGang | str:
    """The gang of a template's Pods.

    Returns:
        The gang, or why there is none; `ALONE` if a Pod has nothing to wait for.
    """
    try:
        if _is_alone(template, siblings, options.gang):
            return ALONE
        if options.gang is None:
            return _gang(template, siblings)
        return _asked(template, siblings, options, options.gang)
    except _NoBarrierError as e:
        record = problems.warning if e.lone else problems.error
        why = f"no barrier, because {e}"
        record("PR824", f"{template.label}: {why}", template.spec.place, e.hint)
        return why


def _is_alone(template: Template, siblings: Sequence[Template], size: int | None) -> bool:
    known = template.owner.known
    if known is None or template.rule is None or known.lone or (known.is_single and size):
        return False
    stage = stage_of(template, siblings)
    few = sum(map(_count, stage)) < 2 or not _count(template)
    return few and (size is None or _is_counted(stage))


def _is_counted(templates: Sequence[Template]) -> bool:
    """Whether the manifest sets the numbers of Pods, so that no default counts."""
    paths = [(t, t.rule.count if t.rule else ()) for t in templates]
    return all(counts and all(isinstance(_at(t, p), int) for p in counts) for t, counts in paths)


def _gang(template: Template, siblings: Sequence[Template]) -> InjectedGang:
    known, rule = template.owner.known, template.rule
    if known is None or rule is None or known.lone:
        why = known.lone if known and known.lone else "the number of Pods is unknown"
        raise _NoBarrierError(why, _SAY, lone=True)
    _check_together(template)
    stage = stage_of(template, siblings)
    gang = InjectedGang(
        same=_same(template),
        roles=tuple(_role(t) for t in stage if _count(t)),
        role=_role_name(template),
    )
    names = [role.name for role in gang.roles]
    if len(set(names)) < len(names):
        raise _NoBarrierError(
            "two roles have the same letters and digits in their names: "
            + ", ".join(sorted({t.matched for t in stage}))
        )
    return gang


def _asked(
    template: Template, siblings: Sequence[Template], options: InjectOptions, size: int
) -> InjectedGang:
    """The gang of a size that the user gives."""
    known, rule, selector = template.owner.known, template.rule, options.selector
    numbered = rule is not None and bool(rule.index)
    if selector:
        _check_selector(template, selector)
    else:
        _check_size(template, siblings, size)
        if numbered and (same := _same(template)):
            role = attrs.evolve(_role(template), instances=size)
            return InjectedGang(same=same, roles=(role,), role=role.name)
    labels = dict(selector) or _own_labels(template, siblings)
    same = list(labels) if selector else [*_same(template), *labels]
    if not same:
        message = "its template has no labels that identify its Pods"
        raise _NoBarrierError(message, f"name labels of its Pods: --gang {size},KEY=VALUE")
    unnamed = known is not None and not known.is_single
    several = not selector and len(siblings) > 1
    if options.index_label is None and not numbered and (unnamed or several):
        why = "end with no numbers" if unnamed else "have the same numbers in several templates"
        raise _NoBarrierError(
            f"the names of its Pods {why}",
            f"name a label that has a Pod's number, from 0: --gang {size},KEY",
        )
    index = IndexPart(key=options.index_label or POD_NAME)
    role = GangRole(name="worker", instances=size, labels=labels, index=(index,))
    return InjectedGang(same=list(dict.fromkeys(same)), roles=(role,), role="worker")


def _check_selector(template: Template, selector: Mapping[str, str]) -> None:
    """Refuse labels that none of its Pods has; a controller may add some to a kind's Pods."""
    own = _template_labels(template)
    for key, value in selector.items():
        is_missing = key not in own and template.owner.known is not None and "/" not in key
        if own.get(key, value) != value or (is_missing and key not in _same(template)):
            has = f"has {key}={own[key]}" if key in own else f"has no label {key}"
            raise _NoBarrierError(f"its Pods are not found by {key}={value}: its template {has}")


def _check_size(template: Template, siblings: Sequence[Template], size: int) -> None:
    """Refuse a size that differs from the manifest's, if the manifest gives one."""
    known, rule = template.owner.known, template.rule
    if known is None or known.lone or known.is_single or rule is None or _is_elastic(template):
        return
    if rule.index:
        _check_together(template)
    together = [template] if rule.index else stage_of(template, siblings)
    count = sum(map(_count, together))
    if _is_counted(together) and count != size:
        message = f"the manifest has {count} Pods, but --gang is {size}"
        raise _NoBarrierError(message, "omit --gang, or correct the manifest")


def _is_elastic(template: Template) -> bool:
    return bool(mapping_at(template.owner.data, ("spec",)).get("elasticPolicy"))


def _check_together(template: Template) -> None:
    """Refuse a template whose Pods are not all created together."""
    rule = template.rule
    assert rule is not None  # only templates of the table are in a gang
    if need := rule.need:
        value = _at(template, need.path)
        if value != need.value and not (value is None and need.is_default):
            field = need.path.rpartition(".")[2]
            raise _NoBarrierError(need.why, f"set {field}: {need.value}")
    if rule.completions:
        completions = _number(template, rule.completions, math.inf)
        if math.inf > completions > _number(template, rule.count[-1]):
            raise _NoBarrierError(
                "not all of its Pods run at once: completions exceeds parallelism"
            )
    if _is_elastic(template):
        message = "elasticPolicy changes its number of Pods while it runs"
        raise _NoBarrierError(message, "set the number that starts together with --gang N")


def stage_of(template: Template, siblings: Sequence[Template]) -> list[Template]:
    """The templates whose Pods are created together with those of a template.

    A barrier never passes if some of its Pods are created only after others run.
    """
    spec = mapping_at(template.owner.data, ("spec",))
    policy = spec.get("startupPolicy")
    order = policy.get("startupPolicyOrder") if isinstance(policy, dict) else policy
    waits = spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    if waits or order in ("InOrder", "LeaderReady"):
        return [template]
    needed = {id(t): _needed(t, siblings) for t in siblings}
    return [t for t in siblings if t.rule and needed[id(t)] == needed[id(template)]]


def _needed(template: Template, siblings: Sequence[Template]) -> frozenset[str]:
    """The names of all templates that must start before a template's Pods are created."""
    direct = {t.matched: _depends_on(t) for t in siblings}
    needed: set[str] = set()
    waiting = [template.matched]
    while waiting:
        for name in direct.get(waiting.pop(), []):
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    return frozenset(needed)


def _depends_on(template: Template) -> list[str]:
    given = template.item.get("dependsOn")
    if isinstance(given, dict):  # Volcano's form
        given = given.get("name") or []
    items = given if isinstance(given, list) else []
    return [str(i.get("name")) if isinstance(i, dict) else str(i) for i in items]


def _own_labels(template: Template, siblings: Sequence[Template]) -> dict[str, str]:
    """The labels by which a workload finds its Pods, or else the labels all its templates share."""
    if template.path == ("spec", "template") and (selected := _selected(template)):
        return selected
    each = [_template_labels(t) for t in siblings]
    return {k: v for k, v in _template_labels(template).items() if all(o.get(k) == v for o in each)}


def _template_labels(template: Template) -> dict[str, str]:
    labels = template.metadata.get("labels") or {}
    return {str(k): str(v) for k, v in labels.items()} if isinstance(labels, Mapping) else {}


def _role(template: Template) -> GangRole:
    rule = template.rule
    assert rule is not None
    counts = [_number(template, path) for path in rule.count] or [1]
    parts = [
        IndexPart(key=key, weight=int(math.prod(counts[n + 1 :])))
        for n, key in enumerate(rule.index)
    ]
    # The training operator writes replica types in lower case.
    small = template.owner.kind.endswith("Job") and isinstance(template.path[-2], str)
    matched = template.matched.lower() if small else template.matched
    labels = {k: v.replace("*", matched) for k, v in rule.labels.items()}
    if template.owner.known and template.owner.known.has_selector:
        labels |= _selected(template)
    return GangRole(
        name=_role_name(template),
        instances=_count(template),
        labels=labels,
        index=tuple(parts),
        offset=_offset(template),
    )


def _role_name(template: Template) -> str:
    """The name of a role in variables: letters and digits, starting with a letter."""
    name = fc_name(template.role)
    return name if name[:1].isalpha() else f"role{name}"


def _count(template: Template) -> int:
    """How many Pods of a template are in one gang."""
    rule = template.rule
    assert rule is not None
    counts = [_number(template, path) for path in rule.count]
    if rule.completions:
        counts[-1] = min(counts[-1], _number(template, rule.completions, math.inf))
    return int(math.prod(counts)) - (_offset(template) if rule.is_rest else 0)


def _offset(template: Template) -> int:
    """What is subtracted from a Pod's number."""
    path = template.rule.offset if template.rule else ""
    value = _at(template, path) if path else None
    return value if isinstance(value, int) else int(bool(value))


def _same(template: Template) -> Sequence[str]:
    known = template.owner.known
    if known is None:
        return ()
    return list(_selected(template)) if known.has_selector else known.same


def _selected(template: Template) -> dict[str, str]:
    labels = mapping_at(template.owner.data, ("spec", "selector", "matchLabels"))
    return {str(k): str(v) for k, v in labels.items()}


def _at(template: Template, path: str) -> Any:
    """The value at a rule's path; None if there is none."""
    start = template.owner.data if path.startswith("/") else template.item
    *steps, last = path.removeprefix("/").split(".")
    return mapping_at(start, tuple(steps)).get(last)


def _number(template: Template, path: str, default: float = 1) -> float:
    value = _at(template, path)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        name = path.rpartition(".")[2]
        raise _NoBarrierError(f"{name} is '{value}', not a number", "inject the final manifest")
    return value


def _label(key: str) -> str:
    return f"metadata.labels['{key}']"


def _source(key: str) -> str:
    if key == POD_NAME:
        return key
    # Kubernetes sets it as an annotation, and since 1.28 also as a label.
    return f"metadata.annotations['{key}']" if key == INDEXED else _label(key)
