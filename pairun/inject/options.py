"""The options of `pairun inject`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import attrs


class ImageCommand(NamedTuple):
    """The command of an image.

    Attributes:
        entrypoint: its ENTRYPOINT.
        cmd: its CMD.
        pinned: the image's name with the digest that the registry returned, or None.
    """

    entrypoint: Sequence[str]
    cmd: Sequence[str]
    pinned: str | None


AskImage = Callable[[str, Sequence[str]], ImageCommand]
"""Takes an image and the architectures of its nodes (empty: any)."""

DEFAULT_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
"""The init container's resources, as in the built-in policy."""

ANNOTATED = "annotated"
"""Chooses the objects with the annotation."""

_T = TypeVar("_T")


@attrs.frozen(kw_only=True)
class InjectOptions:
    """What to put into which templates.

    `container`, `entrypoint` and `pod_group` have a value for each name of a role, an object or
    (`entrypoint`) a container; the value of the empty name is for all others.

    Attributes:
        image: pairun's, for the init container.
        container: the main containers' names; a search finds the others.
        entrypoint: the commands of images if containers set none, as argv.
        only: the objects to inject, as ``KIND/NAME`` or `ANNOTATED`; empty means all.
        kind_template: the paths of the Pod templates of kinds that pairun does not know.
        playbook: changes of the playbooks, as in a job's ``extras.pairun``.
        ask: asks the registry for an image's command; None if that is not allowed.
        barrier: wait in the init container until the whole gang has addresses.
        ssh: the Pods of the gang connect to each other by ssh.
        events: Pods create Events on their workload.
        env: the programs whose gang variables are exported: torchrun, mpi, jax.
        gang: the number of its Pods, if the kind's own fields do not give it.
        selector: labels of its Pods, if the kind's own fields do not give them.
        index_label: the label with a Pod's number; None uses the end of its name.
        pod_group: the PodGroups of Pods; has names as `container` has.
        service_account: an account that may read the Pods; None creates one.
        key_secret: a Secret with the gang's key; empty creates one, None uses no key.
        resources: of the init container; empty sets none.
        used: the names in options that matched; filled by an injection.
    """

    image: str
    container: Mapping[str, str] = attrs.field(factory=dict)
    entrypoint: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    only: Sequence[str] = ()
    kind_template: Sequence[str] = ()
    playbook: Mapping[str, Any] = attrs.field(factory=dict)
    barrier: bool = False
    ssh: bool = False
    events: bool = False
    env: Sequence[str] = ()
    gang: int | None = None
    selector: Mapping[str, str] = attrs.field(factory=dict)
    index_label: str | None = None
    pod_group: Mapping[str, str] = attrs.field(factory=dict)
    service_account: str | None = None
    key_secret: str | None = ""
    ask: AskImage | None = None
    resources: Mapping[str, Any] = attrs.field(factory=lambda: DEFAULT_RESOURCES)
    used: set[str] = attrs.field(factory=set)

    def of(self, values: Mapping[str, _T], option: str, *names: str) -> _T | None:
        """The value of the first of some names; else the one for all; else None."""
        for name in filter(None, names):
            if name in values:
                self.used.add(f"{option} {name}")
                return values[name]
        return values.get("")

    def unused(self) -> list[str]:
        """The names in options that matched nothing."""
        given = [
            *(f"--container {name}" for name in self.container if name),
            *(f"--entrypoint {name}" for name in self.entrypoint if name),
            *(f"--pod-group {name}" for name in self.pod_group if name),
            *(f"--only {name}" for name in self.only if name != ANNOTATED),
            *(f"--kind-template {path}" for path in self.kind_template),
        ]
        return [name for name in given if name not in self.used]
