"""Which Pods of a workload are created together, before any of them has started.

A barrier never passes if some of its Pods are created only after others run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairun.errors import Problems
from pairun.inject.templates import Template


def stage_of(template: Template, siblings: Sequence[Template]) -> list[Template]:
    """The templates whose Pods are created together with those of a template.

    Args:
        template: the template.
        siblings: all templates of its object.
    """
    if starts_one_by_one(template.owner.data):
        return [template]
    needed = {id(t): _needed(t, siblings) for t in siblings}
    return [t for t in siblings if needed[id(t)] == needed[id(template)]]


def starts_one_by_one(data: dict[str, Any]) -> bool:
    """Whether an object's templates start in order, each when the previous one is ready."""
    spec = data.get("spec") or {}
    policy = spec.get("startupPolicy")
    order = policy.get("startupPolicyOrder") if isinstance(policy, dict) else policy
    waits = spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    return order in ("InOrder", "LeaderReady") or waits


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


def check_order(template: Template, problems: Problems) -> bool:
    """Refuse the barrier if the Pods of one template are not created together.

    Returns:
        Whether the barrier is possible.
    """
    data, label = template.owner.data, template.label
    spec = template.item
    kind = template.owner.kind
    why, hint = "", None
    if kind == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel":
        why = "its Pods start one by one, each when the one before it is ready"
        hint = "set podManagementPolicy: Parallel"
    elif kind in ("Job", "CronJob") and str(data.get("apiVersion")).startswith("batch/"):
        if spec.get("completionMode") != "Indexed":
            why, hint = "its Pods have no numbers", "set completionMode: Indexed"
        elif (spec.get("completions") or 0) > (spec.get("parallelism") or 1):
            why = "not all of its Pods run at once: completions exceeds parallelism"
    elif (data.get("spec") or {}).get("elasticPolicy"):
        why = "elasticPolicy changes its number of Pods while it runs"
    if why:
        problems.error("PR824", f"{label}: no barrier, because {why}", template.spec.place, hint)
    return not why
