"""The architectures of the nodes on which a Pod may run, from the Pod's own fields."""

from __future__ import annotations

from typing import Any

from pairun.inject.tree import Mapping

_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


def architectures_of(spec: Mapping) -> tuple[str, ...]:
    """The architectures that ``nodeSelector`` or a required node affinity names; empty means any.

    Source: Kubernetes documentation, "Assigning Pods to Nodes": one of the terms must match, with
    all of its expressions.

    Args:
        spec: the Pod's spec.
    """
    pod = spec.plain()
    selector = pod.get("nodeSelector")
    for label in _LABELS:
        if isinstance(selector, dict) and label in selector:
            return (str(selector[label]),)
    affinity: Any = pod
    for key in (
        "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ):  # fmt: skip
        affinity = affinity.get(key) if isinstance(affinity, dict) else None
    named = [_of_term(term) for term in affinity] if isinstance(affinity, list) else []
    if not named or not all(named):
        return ()
    return tuple(dict.fromkeys(name for names in named for name in names))


def _of_term(term: Any) -> list[str]:
    """The architectures of one term; empty if it names none."""
    expressions = term.get("matchExpressions") if isinstance(term, dict) else None
    for expression in expressions if isinstance(expressions, list) else ():
        if isinstance(expression, dict) and expression.get("key") in _LABELS:
            values = expression.get("values")
            if expression.get("operator") == "In" and isinstance(values, list):
                return [str(value) for value in values]
    return []
