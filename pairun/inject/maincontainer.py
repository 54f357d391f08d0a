"""Finds the container of a Pod that runs the user's command."""

from __future__ import annotations

from typing import Any

from pairun.errors import Problems
from pairun.inject.templates import Template
from pairun.inject.tree import Mapping, Sequence, target

_ANNOTATIONS = ("kubectl.kubernetes.io/default-container",)


def main_container(template: Template, asked: str | None, problems: Problems) -> Mapping | None:
    """Find the main container.

    Args:
        template: the Pod template.
        asked: its name, if the user gave it.
        problems: takes an error if several containers match.

    Returns:
        The container; None if there is an error.
    """
    containers = containers_of(template.spec)
    by_name = {str(_value(c, "name")): c for c in containers}
    if asked is not None:
        if asked not in by_name:
            problems.error(
                "PR823",
                f"{template.label} has no container '{asked}'",
                template.spec.place,
                f"its containers: {', '.join(by_name)}",
            )
        return by_name.get(asked)
    if len(containers) == 1:
        return containers[0]
    known = template.owner.known
    for name in (_annotated(template), known.containers if known else ""):
        if name in by_name:
            return by_name[name]
    if known and known.first_is_main and template.rule is not None:
        return containers[0]
    fast = [c for c in containers if _has_device(c)]
    if len(fast) == 1:
        return fast[0]
    problems.error(
        "PR823",
        f"{template.label} has {len(containers)} containers, and any could be the main one",
        template.spec.place,
        f"name it: --container {'|'.join(by_name)}",
    )
    return None


def containers_of(spec: Mapping) -> list[Mapping]:
    """The containers of a Pod, without the init containers."""
    containers = spec.get("containers")
    items = containers.items if isinstance(containers, Sequence) else []
    return [c for c in map(target, items) if isinstance(c, Mapping)]


def _value(part: Mapping, key: str) -> Any:
    value = part.get(key)
    return None if value is None else value.plain()


def _annotated(template: Template) -> str:
    holder: Any = template.owner.data
    for step in template.path:
        holder = holder[step]
    annotations = (holder.get("metadata") or {}).get("annotations") or {}
    return next((str(annotations[a]) for a in _ANNOTATIONS if a in annotations), "")


def _has_device(container: Mapping) -> bool:
    resources = _value(container, "resources")
    asked = (resources.get("limits") or resources.get("requests")) if resources else None
    return isinstance(asked, dict) and any("/" in str(name) for name in asked)
