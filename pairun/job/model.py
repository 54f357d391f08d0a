"""A job of protocol v2 as records, each with the place where it was written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import attrs

from pairun.base.cpulimit import CpuBudget
from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.playbook.expressions.template import MAX_SECONDS

RUNTIME_PLUGIN = "com.microsoft.pai.runtimeplugin"
"""The key of a job's plugins in ``extras``, and the prefix of a prerequisite's plugin."""

DEFAULT_SHM_MB = 512


def fc_name(raw: str) -> str:
    """A role's name in FrameworkController and the Pods: lower-case letters and digits only."""
    return re.sub("[^a-z0-9]", "", raw.lower())


class Prerequisite(NamedTuple):
    """Something that tasks need: an image, a script, data, an output.

    Attributes:
        name: unique among the prerequisites of its type.
        type: ``dockerimage``, ``script``, ``data`` or ``output``.
        plugin: the runtime plugin that handles it, or None.
        requires: names of the prerequisites that it needs, in order.
        failure_policy: whether its failure fails the job.
    """

    name: str
    type: str
    plugin: str | None
    requires: tuple[str, ...]
    failure_policy: FailurePolicy
    node: Node


class Storage(NamedTuple):
    """A storage that the platform mounts.

    Attributes:
        name: the claim's name.
        path: the mount point in the container.
    """

    name: str
    path: str
    node: Node


class PluginEntry(NamedTuple):
    """One item of the job's list of runtime plugins.

    Attributes:
        roles: the roles that it applies to, as the job writes them; None means all.
        failure_policy: whether its failure fails the job.
        parameters: as written, with tags; None if there are none.
    """

    plugin: str
    roles: tuple[str, ...] | None
    failure_policy: FailurePolicy
    parameters: Node | None
    node: Node

    def is_for(self, role: Role) -> bool:
        """Whether the item applies to a role; a filter may use either form of its name."""
        return self.roles is None or role.name in self.roles or role.fc_name in self.roles


class Resources(NamedTuple):
    """The resources of one instance of a role.

    Attributes:
        shm_mb: the requested size of ``/dev/shm`` in MB, or None.
        ports: label to number of ports, in the order of the port-scheduling annotation.
    """

    cpu: int
    memory_mb: int
    gpu: int
    shm_mb: int | None
    infiniband: bool
    ports: Mapping[str, int]


class Role(NamedTuple):
    """A group of equal tasks.

    Attributes:
        name: as the user wrote it.
        fc_name: as in the Pods' names.
        min_failed: how many failed tasks end the job; -1 for never.
        min_succeeded: how many succeeded tasks end the job; -1 for all.
        retry_count: retries of one task, without effect for a gang; None if unset.
        script: the prerequisite of ``$script``; likewise ``data`` and ``output``.
        prerequisites: names, in order.
    """

    name: str
    fc_name: str
    instances: int
    min_failed: int
    min_succeeded: int
    retry_count: int | None
    resources: Resources
    image: Prerequisite
    script: Prerequisite | None
    data: Prerequisite | None
    output: Prerequisite | None
    prerequisites: tuple[str, ...]
    commands: tuple[Node, ...]
    node: Node


@attrs.frozen(kw_only=True)
class Job:
    """A job.

    Attributes:
        name: as the user wrote it.
        roles: in file order.
        prerequisites: in file order.
        parameters: the value of ``$parameters``, or None.
        secrets: the value of ``$secrets``, or None (also if they are masked).
        extras: everything below ``extras``, or None.
        plugins: the items of the runtime plugins' list.
        deployment: the selected deployment, or None.
        gang: whether the tasks start together or not at all.
        text: the job file of protocol v2, as read or converted.
        secrets_unknown: the job has secrets whose values only the cluster has.
    """

    name: str
    user: str
    virtual_cluster: str
    roles: tuple[Role, ...]
    prerequisites: tuple[Prerequisite, ...]
    parameters: Node | None
    secrets: Node | None
    extras: Node | None
    plugins: tuple[PluginEntry, ...]
    deployment: Node | None
    retry_count: int
    gang: bool
    node: Node
    text: str
    secrets_unknown: bool = False

    @cached_property
    def budget(self) -> CpuBudget:
        """The CPU time that its expressions may take together; each role adds 10 ms."""
        return CpuBudget(MAX_SECONDS + 0.01 * len(self.roles))

    @property
    def framework_name(self) -> str:
        """``user~job``, the job's name in messages."""
        return f"{self.user}~{self.name}"

    @property
    def framework_id(self) -> str:
        """The name of the job's Framework object, computed as in OpenPAI's REST server."""
        return hashlib.md5(self.framework_name.encode(), usedforsecurity=False).hexdigest()

    @cached_property
    def storages(self) -> list[Storage]:
        """The entries in ``extras.storages`` that have a name."""
        entries = self.extras.get("storages") if self.extras else None
        storages = []
        for entry in entries.elements() if entries else []:
            if name := scalar_text(entry.get("name")):
                path = scalar_text(entry.get("mountPath")) or f"/mnt/{name}"
                storages.append(Storage(name=name, path=path, node=entry))
        return storages

    def role(self, name: str) -> Role | None:
        """The role with a name: searches the names in the job first, then those in the Pods."""
        by_raw = [r for r in self.roles if r.name == name]
        return next(iter(by_raw + [r for r in self.roles if r.fc_name == name]), None)

    def prerequisite(self, name: str) -> Prerequisite | None:
        """The prerequisite with a name in a role's list.

        Names are unique per type only. A prerequisite with a plugin is preferred, then the last
        one, as in the original runtime.
        """
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Prerequisite]:
        last = {p.name: p for p in self.prerequisites}
        return last | {p.name: p for p in self.prerequisites if p.plugin}

    @cached_property
    def role_list(self) -> list[dict[str, Any]]:
        """The roles as every role's expressions see them."""
        return [
            {"name": r.name, "fc_name": r.fc_name, "instances": r.instances} for r in self.roles
        ]

    @property
    def plugin_overrides(self) -> Node | None:
        """The job's settings for pairun, ``extras.pairun``."""
        return self.extras.get("pairun") if self.extras else None


def scalar_text(node: Node | None) -> str:
    """The text of a scalar; empty for null, a mapping, a list, or None."""
    if node is None or node.value is None or isinstance(node.value, dict | list):
        return ""
    return js_text(node.value)
