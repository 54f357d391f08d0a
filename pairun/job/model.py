"""A job of protocol v2 as records, each with the place where it was written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import attrs

from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text

RUNTIME_PLUGIN = "com.microsoft.pai.runtimeplugin"
"""The key of a job's plugins in ``extras``, and what a prerequisite's plugin begins with."""

DEFAULT_SHM_MB = 512


def fc_name(raw: str) -> str:
    """A role's name as FrameworkController and the Pods bear it: letters and digits only."""
    return re.sub("[^a-z0-9]", "", raw.lower())


@attrs.frozen(kw_only=True)
class Prerequisite:
    """Something that tasks need: an image, a script, data, an output.

    Attributes:
        name: unique among the prerequisites of its type.
        type: ``dockerimage``, ``script``, ``data`` or ``output``.
        plugin: the runtime plugin that handles it, or None when nothing does.
        requires: names of the prerequisites it needs, in order.
        failure_policy: what a failing plugin does to the job.
        node: the whole entry.
    """

    name: str
    type: str
    plugin: str | None
    requires: tuple[str, ...]
    failure_policy: FailurePolicy
    node: Node


@attrs.frozen(kw_only=True)
class Storage:
    """A storage that the platform mounts.

    Attributes:
        name: of the claim.
        path: the mount point in the container.
        node: the whole entry.
    """

    name: str
    path: str
    node: Node


@attrs.frozen(kw_only=True)
class PluginEntry:
    """One item of the job's list of runtime plugins.

    Attributes:
        plugin: its name.
        roles: the roles it is for, as the job writes them; None means all.
        failure_policy: what its failure does to the job.
        parameters: as written, tags included; None when there are none.
        node: the whole item.
    """

    plugin: str
    roles: tuple[str, ...] | None
    failure_policy: FailurePolicy
    parameters: Node | None
    node: Node

    def is_for(self, role: Role) -> bool:
        """Whether the item applies to a role; a filter may use either form of its name."""
        return self.roles is None or role.name in self.roles or role.fc_name in self.roles


@attrs.frozen(kw_only=True)
class Resources:
    """What one instance of a role gets.

    Attributes:
        shm_mb: size of ``/dev/shm`` as the job asks for it, or None.
        ports: label to number of ports, in the order of the port-scheduling annotation.
    """

    cpu: int
    memory_mb: int
    gpu: int
    shm_mb: int | None
    infiniband: bool
    ports: Mapping[str, int]


@attrs.frozen(kw_only=True)
class Role:
    """A group of equal tasks.

    Attributes:
        name: as the user wrote it.
        fc_name: as the Pods bear it.
        instances: number of tasks.
        min_failed: failed tasks that end the job; -1 for never.
        min_succeeded: succeeded tasks that end the job; -1 for all.
        retry_count: retries of one task, which only count without gang allocation; None if unset.
        image: the image prerequisite.
        script: the one that ``$script`` stands for; likewise ``data`` and ``output``.
        prerequisites: names, in order.
        commands: the user's commands.
        node: the whole entry.
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
        user: who submits it.
        virtual_cluster: where it is to run.
        roles: in file order.
        prerequisites: in file order.
        parameters: what ``$parameters`` stands for, or None.
        secrets: what ``$secrets`` stands for, or None (also where they were masked).
        extras: everything below ``extras``, or None.
        plugins: the items of the runtime plugins' list.
        deployment: the deployment in force, or None.
        retry_count: retries of the whole job.
        gang: whether the tasks start together or not at all.
        node: the whole document.
        text: the job file of protocol v2, as it was read or as it was converted.
        secrets_unknown: the job has secrets, and only the cluster knows their values.
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

    @property
    def framework_name(self) -> str:
        """``user~job``, the name that users know the job by."""
        return f"{self.user}~{self.name}"

    @property
    def framework_id(self) -> str:
        """The name of the job's Framework object, made as OpenPAI's REST server makes it."""
        return hashlib.md5(self.framework_name.encode(), usedforsecurity=False).hexdigest()

    @property
    def storages(self) -> list[Storage]:
        """The entries in ``extras.storages`` that have a name."""
        entries = self.extras.get("storages") if self.extras else None
        storages = []
        for entry in entries.elements() if entries else []:
            if name := _scalar(entry.get("name")):
                path = _scalar(entry.get("mountPath")) or f"/mnt/{name}"
                storages.append(Storage(name=name, path=path, node=entry))
        return storages

    def role(self, name: str) -> Role | None:
        """The role of that name: the raw one first, then the one of the Pods."""
        by_raw = [r for r in self.roles if r.name == name]
        return next(iter(by_raw + [r for r in self.roles if r.fc_name == name]), None)

    def prerequisite(self, name: str) -> Prerequisite | None:
        """The prerequisite that a role's list means by a name.

        A name is unique per type only. One that has something to execute is preferred, then the
        last one, which is the one the original runtime took.
        """
        named = [p for p in self.prerequisites if p.name == name]
        return next(iter([p for p in named[::-1] if p.plugin] + named[::-1]), None)

    @property
    def plugin_overrides(self) -> Node | None:
        """What the job says to pairun itself, ``extras.pairun``."""
        return self.extras.get("pairun") if self.extras else None


def _scalar(node: Node | None) -> str:
    if node is None or node.value is None or isinstance(node.value, dict | list):
        return ""
    return js_text(node.value)
