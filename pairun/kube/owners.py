"""Which workload a Pod belongs to, by its owner references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_BETWEEN = {"Job": "jobs", "ReplicaSet": "replicasets", "ConfigMap": "configmaps"}
"""Kinds that workloads make, with the names of their collections; a Framework makes ConfigMaps."""


class Owner(NamedTuple):
    """An object that controls another one, as an owner reference names it."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str

    @property
    def path(self) -> str | None:
        """The path of the object at the API server, if other workloads make objects of its kind."""
        from urllib.parse import quote

        collection = _BETWEEN.get(self.kind)
        if collection is None:
            return None
        namespace, name = quote(self.namespace, safe=""), quote(self.name, safe="")
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/namespaces/{namespace}/{collection}/{name}"

    @property
    def is_workload(self) -> bool:
        """Whether people know the object as their workload."""
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
        item: the object, as the API server sends it.
    """
    meta = item.get("metadata") or {}
    for reference in meta.get("ownerReferences") or ():
        if isinstance(reference, dict) and reference.get("controller"):
            keys = ("apiVersion", "kind", "name", "uid")
            version, kind, name, uid = (str(reference.get(key) or "") for key in keys)
            owner = Owner(version, kind, name, uid, str(meta.get("namespace") or ""))
            return owner if all(owner) else None
    return None
