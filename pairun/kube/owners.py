"""Finds the workload of a Pod by its owner references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.kube.paths import object_path

Object = dict[str, Any]
"""An object of the cluster, as JSON."""

_BETWEEN = {"Job": "jobs", "ReplicaSet": "replicasets", "ConfigMap": "configmaps"}
"""Kinds that workloads make, with their plurals; a Framework makes ConfigMaps."""


class Owner(NamedTuple):
    """An object that controls another one, from an owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str

    @property
    def path(self) -> str | None:
        """The object's path at the API server, if other workloads make objects of its kind."""
        plural = _BETWEEN.get(self.kind)
        return plural and object_path(self.api_version, plural, self.namespace, self.name)

    @property
    def is_workload(self) -> bool:
        """Whether the object is a workload to its users."""
        return self.kind != "ConfigMap"

    @property
    def reference(self) -> dict[str, Any]:
        """The object reference of an Event."""
        return {
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
            "namespace": self.namespace,
        }  # fmt: skip


def controller_of(item: Mapping[str, Any]) -> Owner | None:
    """The controller of an object; None if it has none."""
    meta = item.get("metadata") or {}
    for reference in meta.get("ownerReferences") or ():
        if isinstance(reference, dict) and reference.get("controller"):
            keys = ("apiVersion", "kind", "name", "uid")
            version, kind, name, uid = (str(reference.get(key) or "") for key in keys)
            owner = Owner(version, kind, name, uid, str(meta.get("namespace") or ""))
            return owner if all(owner) else None
    return None
