"""Finds the workload of a Pod by its owner references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_BETWEEN = {"Job": "jobs", "ReplicaSet": "replicasets", "ConfigMap": "configmaps"}
"""Kinds that workloads make, with their collections' names; a Framework makes ConfigMaps."""


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
        from urllib.parse import quote

        collection = _BETWEEN.get(self.kind)
        if collection is None:
            return None
        namespace, name = quote(self.namespace, safe=""), quote(self.name, safe="")
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/namespaces/{namespace}/{collection}/{name}"

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
    """The controller of an object; None if it has none.

    Args:
        item: the object from the API server.
    """
    meta = item.get("metadata") or {}
    for reference in meta.get("ownerReferences") or ():
        if isinstance(reference, dict) and reference.get("controller"):
            keys = ("apiVersion", "kind", "name", "uid")
            version, kind, name, uid = (str(reference.get(key) or "") for key in keys)
            owner = Owner(version, kind, name, uid, str(meta.get("namespace") or ""))
            return owner if all(owner) else None
    return None
