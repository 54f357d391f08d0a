"""The layers of a Pod's settings: the policies' defaults, the job, its role, the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairun.base.records import field, record
from pairun.errors import Place, Problem, Problems, did_you_mean
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import merged
from pairun.playbook.pod.bounds import check_bounds
from pairun.playbook.pod.sizes import size_warnings
from pairun.playbook.pod.table import POD_SETTINGS
from pairun.playbook.policy import Policy

COMMAND_LINE = "command line"
"""The layer of command-line options."""


@record(kw_only=False)
class PodSettings:
    """The settings of a role's Pods after every layer.

    Attributes:
        values: the effective values with their history, by the key in the table.
    """

    values: Mapping[str, Node] = field(factory=dict)

    def get(self, key: str) -> Any:
        """The value of a setting as plain data; None if no layer sets it."""
        node = self.values.get(key)
        return None if node is None else node.plain()

    def at(self, path: str) -> Node | None:
        """The node at ``queue`` or ``init_resources.limits.memory``; a name may contain dots."""
        for key, node in self.values.items():
            if path == key:
                return node
            if path.startswith(f"{key}."):
                return node.get(path.removeprefix(f"{key}."))
        return None

    def refused(self, problems: Iterable[Problem]) -> set[str]:
        """The settings that have an error in their value or in a part of it."""
        places = refusal_places(problems)
        return {k for k, node in self.values.items() if not places.isdisjoint(places_of(node))}

    def above(self, *layers: str) -> dict[str, Node]:
        """The settings that layers other than these set."""
        return {k: n for k, n in self.values.items() if n.place.source.layer not in layers}

    def place(self, key: str) -> Place | None:
        """Where a setting was written."""
        node = self.values.get(key)
        return None if node is None else node.key or node.place


def refusal_places(problems: Iterable[Problem]) -> set[Place]:
    """The places of errors."""
    return {p.place for p in problems if p.severity == "error" and p.place is not None}


def places_of(node: Node) -> Iterator[Place]:
    """The places of a value, its key, and all its parts."""
    yield node.place
    if node.key is not None:
        yield node.key
    for inner in (*(n for _, n in node.items()), *node.elements()):
        yield from places_of(inner)


NO_POD_SETTINGS = PodSettings()
_NOTHING_ASKED: Mapping[str, Node] = {}


def pod_settings(
    policy: Policy,
    job: Node | None,
    flags: Node | None,
    role: str,
    aliases: Iterable[str],
    problems: Problems,
    asked: Mapping[str, Node] = _NOTHING_ASKED,
) -> PodSettings:
    """Stack the layers for one role, and check them against the policy.

    A policy's ``job_may`` applies to the job only; its ``bounds`` apply to the command line, too.

    Args:
        policy: the effective policy, with the defaults of every root.
        job: ``extras.pairun.pod``, valid by its schema.
        flags: the settings of command-line options, in the same form.
        role: the role's name.
        aliases: other names that the job may use for it.
        problems: takes what the policy does not allow.
        asked: what the role requests in other places, by the key of the setting that overrides it;
            the limits apply to it, too.
    """
    layers = list(policy.pod_defaults)
    if job is not None:
        own = {k: n for k, n in job.items() if k != "roles"}
        of_job = [Node(own, job.place, job.key)]
        roles = job.get("roles")
        of_job += [n for k, n in (roles.items() if roles else ()) if k in (role, *aliases)]
        for each in of_job:
            _check_permitted(policy, each, problems)
        layers += of_job
    if flags is not None:
        layers.append(flags)
    stacked: Node | None = None
    for layer in layers:
        stacked = merged(stacked, layer)
    values = {
        key: node
        for key, setting in POD_SETTINGS.items()
        if stacked is not None
        and setting.schema is not None
        and (node := stacked.at(tuple(key.split(".")))) is not None
        and node.value is not None
    }
    check_bounds(policy, values, asked, problems)
    problems.extend(size_warnings(values))
    _check_mounts(values, problems)
    return PodSettings(values)


def check_roles(job: Node | None, roles: Iterable[str], problems: Problems) -> None:
    """Report settings for roles that the job does not have."""
    names = list(roles)
    listed = job.get("roles") if job is not None else None
    for name, node in listed.items() if listed else ():
        if name not in names:
            problems.error(
                "PR509",
                f"the job has no role '{name}'",
                node.key or node.place,
                did_you_mean(name, names),
            )


def _check_mounts(values: Mapping[str, Node], problems: Problems) -> None:
    """Report mounts of volumes that no layer defines."""
    volumes, mounts = values.get("volumes"), values.get("mounts")
    names = [_name(each) for each in (volumes.elements() if volumes else ())]
    for mount in mounts.elements() if mounts else ():
        if (name := _name(mount)) not in names:
            hint = did_you_mean(name, names)
            problems.error("PR783", f"there is no volume '{name}' to mount", mount.place, hint)


def _name(node: Node) -> str:
    name = node.get("name")
    return "" if name is None else str(name.value)


def _check_permitted(policy: Policy, layer: Node, problems: Problems) -> None:
    for key, node in leaves(layer):
        policy.may_set_pod(key).granted(problems, f"set 'pod.{key}'", node.key or node.place)


def leaves(layer: Node) -> list[tuple[str, Node]]:
    """The settings of a layer, with their keys; for volumes also each kind."""
    found = []
    for key, setting in POD_SETTINGS.items():
        *path, last = key.split(".")
        if setting.schema is not None:
            node = layer.at((*path, last))
            found += [(key, node)] if node is not None else []
        else:
            listed = layer.at(tuple(path))
            for element in listed.elements() if listed else ():
                found += [(key, part)] if (part := element.get(last)) is not None else []
    return found
