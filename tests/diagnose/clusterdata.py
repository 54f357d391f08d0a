"""Objects of Kubernetes in the form in which ``kubectl get -o json`` prints them."""

from __future__ import annotations

import json
from typing import Any

import yaml

Object = dict[str, Any]


def pod(name: str, *, phase: str = "Failed", node: str = "node-a", **status: Any) -> Object:
    """A Pod with one container; `status` has the other fields of its status."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, **status},
    }


def ended(code: int, reason: str = "Error", at: str = "2026-03-01T12:04:20Z") -> Object:
    """The status of a container that ended."""
    terminated = {"exitCode": code, "reason": reason, "finishedAt": at}
    return {"containerStatuses": [{"name": "app", "state": {"terminated": terminated}}]}


def waiting(reason: str, message: str = "", last: Object | None = None) -> Object:
    """The status of a container that waits, and how it ended before."""
    container: Object = {
        "name": "app",
        "restartCount": 4 if last else 0,
        "state": {"waiting": {"reason": reason, "message": message}},
    }
    return {"containerStatuses": [container | ({"lastState": last} if last else {})]}


def event(pod_name: str, reason: str, message: str = "", kind: str = "Pod") -> Object:
    """An Event of a Pod or of a node."""
    normal = reason in ("Scheduled", "Started", "Pulled")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod_name}.17a"},
        "involvedObject": {"kind": kind, "name": pod_name, "namespace": "default"},
        "type": "Normal" if normal else "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-03-01T12:04:10Z",
    }


def node(name: str, ready: str = "True") -> Object:
    """A node with its condition Ready."""
    condition = {"type": "Ready", "status": ready, "message": "the kubelet reports"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [condition]}}  # fmt: skip


def as_json(*objects: Object) -> str:
    """A List, as for several objects; one object alone."""
    whole = {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {}}
    return json.dumps(objects[0] if len(objects) == 1 else whole, indent=4)


def as_yaml(*objects: Object) -> str:
    """The same as YAML."""
    return yaml.safe_dump(json.loads(as_json(*objects)))
