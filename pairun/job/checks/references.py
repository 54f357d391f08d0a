"""Checks the references between names in a job, which a schema cannot check."""

from __future__ import annotations

from collections.abc import Iterable

from pairun.errors import Problems, did_you_mean
from pairun.job.model import Prerequisite, fc_name
from pairun.kube.ports import MAX_PORTS
from pairun.playbook.document.nodes import elements, entries
from pairun.playbook.document.reading import Node

REFERENCES = {
    "dockerImage": "dockerimage",
    "script": "script",
    "data": "data",
    "output": "output",
}
"""A role's keys, and the types of the prerequisites that they name."""


def check_references(
    node: Node, prerequisites: tuple[Prerequisite, ...], problems: Problems
) -> None:
    """Report every prerequisite that a role names and the job does not define."""
    all_names = {p.name: None for p in prerequisites}
    of_type = {
        type_: {p.name: None for p in prerequisites if p.type == type_}
        for type_ in REFERENCES.values()
    }
    for _, role in entries(node, "taskRoles"):
        for key, type_ in REFERENCES.items():
            named = role.get(key)
            names = of_type[type_]
            if named is not None and isinstance(named.value, str) and named.value not in names:
                problems.error(
                    "PR505",
                    f"there is no prerequisite '{named.value}' of type {type_}",
                    named.place,
                    _did_you_mean(named.value, names),
                )
        for named in elements(role, "prerequisites"):
            if isinstance(named.value, str) and named.value not in all_names:
                problems.error(
                    "PR505",
                    f"there is no prerequisite '{named.value}'",
                    named.place,
                    _did_you_mean(named.value, all_names),
                )


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names) or "add it to the job's prerequisites"


def check_ports(node: Node, problems: Problems) -> None:
    """Report roles with more ports than a Pod can have; the schema checks each label."""
    for name, role in entries(node, "taskRoles"):
        ports = role.at(("resourcePerInstance", "ports"))
        counts = {p: n.value for p, n in ports.items() if type(n.value) is int} if ports else {}
        total = sum(({"ssh": 1, "http": 1} | counts).values())
        if ports and max(counts.values(), default=0) <= MAX_PORTS < total:
            message = (
                f"the role '{name}' has {total} ports with ssh and http; a Pod can have {MAX_PORTS}"
            )
            problems.error("PR503", message, ports.key or ports.place)


def check_role_names(node: Node, problems: Problems) -> None:
    """Report roles whose Pods would have the same name."""
    first: dict[str, tuple[str, Node]] = {}
    for raw, role in entries(node, "taskRoles"):
        sanitised = fc_name(raw)
        if not sanitised:
            problems.error(
                "PR507",
                f"the role name '{raw}' has no letter or digit, so its Pods have no name",
                role.key,
            )
        elif sanitised in first:
            other, place = first[sanitised]
            problems.error(
                "PR507",
                f"the roles '{other}' and '{raw}' both become '{sanitised}'",
                role.key,
                also=[("the other role", place.key or place.place)],
            )
        else:
            first[sanitised] = raw, role


def check_deployments(node: Node, problems: Problems) -> None:
    """Report deployments with the same name, and a selected one that does not exist."""
    first: dict[str, Node] = {}
    for entry in elements(node, "deployments"):
        name = entry.get("name")
        if name is None or not isinstance(name.value, str):
            continue
        if name.value in first:
            problems.error(
                "PR508",
                f"two deployments are named '{name.value}'",
                name.place,
                also=[("the first one", first[name.value].place)],
            )
        first.setdefault(name.value, name)
    chosen = node.at(("defaults", "deployment"))
    if chosen is not None and isinstance(chosen.value, str) and chosen.value not in first:
        problems.error(
            "PR515",
            f"there is no deployment '{chosen.value}'",
            chosen.place,
            did_you_mean(chosen.value, first) or "add it to the job's deployments",
        )
