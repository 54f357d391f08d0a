"""The gang of a workload: its roles and their sizes, from the kind's own fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import Problems
from pairun.inject.kinds import INDEXED
from pairun.inject.stages import check_order, stage_of
from pairun.inject.templates import Template
from pairun.job.model import fc_name
from pairun.kube.gang import POD_NAME, VARIABLE, GangRole, IndexPart, gang_text

_SAY = (
    "set it with --gang N, and --index-label KEY where the names of its Pods do not end with their "
    "numbers; --selector KEY=VALUE names labels other than the template's"
)


@attrs.frozen(kw_only=True)
class Gang:
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
        """The variables of the init container.

        Args:
            name: of the workload.
        """
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
            {"name": VARIABLE, "value": gang_text(same, self.roles, self.role, index)},
        ]


def gang_of(
    template: Template,
    siblings: Sequence[Template],
    size: int | None,
    selector: Mapping[str, str],
    problems: Problems,
    index_label: str | None = None,
) -> Gang | None:
    """The gang of a template's Pods.

    Args:
        template: the template.
        siblings: all templates of its object.
        size: the gang's size, if the user gives it.
        selector: labels of its Pods, if the user gives them.
        problems: takes an error if the barrier would never pass; a warning if there is no gang, or
            only this Pod.
        index_label: the label with a Pod's number, with `size`; None uses the end of its name.

    Returns:
        The gang, or None.
    """
    known, rule, label = template.owner.known, template.rule, template.label
    if size is not None:
        return _asked(template, siblings, size, selector, index_label, problems)
    if known is None or rule is None or known.lone:
        why = known.lone if known and known.lone else "the number of Pods is unknown"
        problems.warning("PR824", f"{label}: no barrier, because {why}", template.spec.place, _SAY)
        return None
    if not check_order(template, problems):
        return None
    stage = stage_of(template, siblings)
    gang = Gang(
        same=_same(template),
        roles=tuple(_role(t) for t in stage if _count(t)),
        role=_role_name(template),
    )
    names = [role.name for role in gang.roles]
    if len(set(names)) < len(names):
        problems.error(
            "PR824",
            f"{label}: no barrier, because two roles have the same letters and digits in their "
            f"names: {', '.join(sorted({t.matched for t in stage}))}",
            template.spec.place,
        )
        return None
    if gang.size < 2:
        problems.warning(
            "PR824", f"{label}: no barrier, because this Pod starts alone", template.spec.place
        )
        return None
    return gang


def _asked(
    template: Template,
    siblings: Sequence[Template],
    size: int,
    selector: Mapping[str, str],
    index_label: str | None,
    problems: Problems,
) -> Gang | None:
    """The gang of a size that the user gives; None if its Pods cannot be distinguished."""
    rule, label = template.rule, template.label
    numbered = rule is not None and bool(rule.index)
    if not selector and not _agrees(template, siblings, size, problems):
        return None
    if numbered and not selector and (same := _same(template)):
        role = attrs.evolve(_role(template), instances=size)
        return Gang(same=same, roles=(role,), role=role.name)
    labels = dict(selector) or _own_labels(template, siblings)
    same = [*_same(template), *labels] if not selector else list(labels)
    if not same:
        problems.error(
            "PR824",
            f"{label}: no barrier, because its template has no labels that identify its Pods",
            template.spec.place,
            "name labels of its Pods: --selector KEY=VALUE",
        )
        return None
    known = template.owner.known is not None and not _is_pod(template)
    several = not selector and len(siblings) > 1
    if index_label is None and not numbered and (known or several):
        why = "end with no numbers" if known else "have the same numbers in several templates"
        problems.error(
            "PR824",
            f"{label}: no barrier, because the names of its Pods {why}",
            template.spec.place,
            "name a label that has a Pod's number, from 0: --index-label KEY",
        )
        return None
    index = IndexPart(key=index_label or POD_NAME)
    role = GangRole(name="worker", instances=size, labels=labels, index=(index,))
    return Gang(same=list(dict.fromkeys(same)), roles=(role,), role="worker")


def _agrees(
    template: Template, siblings: Sequence[Template], size: int, problems: Problems
) -> bool:
    """Whether the user's size equals the manifest's, if the manifest gives one."""
    known, rule = template.owner.known, template.rule
    spec = template.owner.data.get("spec") or {}
    if known is None or known.lone or rule is None or spec.get("elasticPolicy"):
        return True
    if rule.index and not check_order(template, problems):
        return False
    together = [template] if rule.index else stage_of(template, siblings)
    if not all(_is_counted(t) for t in together):
        return True
    count = sum(_count(t) for t in together)
    if count != size:
        problems.error(
            "PR824",
            f"{template.label}: no barrier, because the manifest has {count} Pods, but --gang is "
            f"{size}",
            template.spec.place,
            "omit --gang, or correct the manifest",
        )
    return count == size


def _is_counted(template: Template) -> bool:
    """Whether the manifest sets the number of Pods, so that the controller uses no default."""
    rule = template.rule
    paths = ("size",) if template.owner.kind == "LeaderWorkerSet" else rule.count if rule else ()
    for path in paths:
        value: Any = template.item
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if not isinstance(value, int):
            return False
    return bool(paths)


def _is_pod(template: Template) -> bool:
    return template.owner.kind == "Pod"


def _own_labels(template: Template, siblings: Sequence[Template]) -> dict[str, str]:
    """The labels by which a workload finds its Pods, or else the labels all its templates share."""
    spec = template.owner.data.get("spec")
    if template.path == ("spec", "template") and (selected := _selected(spec or {})):
        return selected
    each = [_template_labels(t) for t in siblings]
    return {k: v for k, v in _template_labels(template).items() if all(o.get(k) == v for o in each)}


def _template_labels(template: Template) -> dict[str, str]:
    holder: Any = template.owner.data
    for step in template.path:
        holder = holder[step]
    labels = (holder.get("metadata") or {}).get("labels") or {}
    return {str(k): str(v) for k, v in labels.items()} if isinstance(labels, Mapping) else {}


def _role(template: Template) -> GangRole:
    rule = template.rule
    assert rule is not None  # only templates of the table are in a gang
    counts = [_number(template.item, path) for path in rule.count] or [1]
    parts = [
        IndexPart(key=key, weight=math.prod(counts[n + 1 :])) for n, key in enumerate(rule.index)
    ]
    labels = {k: v.replace("*", _label_value(template)) for k, v in rule.labels.items()}
    instances, offset = _count(template), rule.offset
    if template.owner.kind == "LeaderWorkerSet" and _is_worker(template) and _has_leader(template):
        offset = 1
    spec = template.owner.data.get("spec") or {}
    if template.owner.kind == "MPIJob" and spec.get("runLauncherAsWorker") and rule.index:
        offset = 1  # the launcher is then number 0
    if template.owner.kind == "StatefulSet":
        labels |= _match_labels(template)
        offset = int((template.item.get("ordinals") or {}).get("start") or 0)
    return GangRole(
        name=_role_name(template),
        instances=instances,
        labels=labels,
        index=tuple(parts),
        offset=offset,
    )


def _role_name(template: Template) -> str:
    """The name of a role in variables: letters and digits, starting with a letter."""
    name = fc_name(template.role)
    return name if name[:1].isalpha() else f"role{name}"


def _count(template: Template) -> int:
    """How many Pods of a template are in one gang."""
    rule = template.rule
    assert rule is not None
    if template.owner.kind == "LeaderWorkerSet":
        size = _number(template.item, "size")
        return (
            size - 1
            if _is_worker(template) and _has_leader(template)
            else (size if _is_worker(template) else 1)
        )
    return math.prod(_number(template.item, path) for path in rule.count)


def _is_worker(template: Template) -> bool:
    return template.path[-1] == "workerTemplate"


def _has_leader(template: Template) -> bool:
    return bool(template.item.get("leaderTemplate"))


def _same(template: Template) -> Sequence[str]:
    known = template.owner.known
    if template.owner.kind == "StatefulSet":
        return list(_match_labels(template))
    return known.same if known else ()


def _match_labels(template: Template) -> dict[str, str]:
    return _selected(template.item)


def _selected(spec: Mapping[str, Any]) -> dict[str, str]:
    selector = spec.get("selector")
    labels = (selector.get("matchLabels") if isinstance(selector, Mapping) else None) or {}
    return {str(k): str(v) for k, v in labels.items()}


def _label_value(template: Template) -> str:
    # The training operator writes replica types in lower case.
    small = template.owner.kind.endswith("Job") and isinstance(template.path[-2], str)
    return template.matched.lower() if small else template.matched


def _number(item: Mapping[str, Any], path: str) -> int:
    value: Any = item
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _label(key: str) -> str:
    return f"metadata.labels['{key}']"


def _source(key: str) -> str:
    if key == POD_NAME:
        return key
    # Kubernetes sets it as an annotation, and since 1.28 also as a label.
    return f"metadata.annotations['{key}']" if key == INDEXED else _label(key)
