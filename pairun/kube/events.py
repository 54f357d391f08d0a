"""Events of Pods, which `kubectl describe` and dashboards show."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.kube.owners import Owner
from pairun.kube.paths import object_path

MAX_MESSAGE_BYTES = 1024
"""The longest message that the API server accepts (Kubernetes API reference, Event v1)."""


class PodName(NamedTuple):
    """A Pod: its namespace, its name, and its uid if known."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def events_path(self) -> str:
        """The path of its namespace's Events at the API server."""
        return object_path("v1", "events", self.namespace)


class Note(NamedTuple):
    """The content of an Event: a reason in CamelCase, one sentence, and whether it is a warning."""

    reason: str
    message: str
    warning: bool


def subject_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reference to the object of an Event, as v1 or events.k8s.io/v1 names it."""
    return event.get("involvedObject") or event.get("regarding") or {}


def time_of(event: Mapping[str, Any]) -> str:
    """When an Event happened last (RFC 3339); empty if unknown."""
    times = ("lastTimestamp", "eventTime", "deprecatedLastTimestamp", "firstTimestamp")
    return next((str(event[name]) for name in times if event.get(name)), "")


def own_pod(env: Mapping[str, str]) -> PodName | None:
    """The Pod of this process, from its container's variables; None if these do not contain it."""
    namespace = env.get("FC_FRAMEWORK_NAMESPACE") or env.get("POD_NAMESPACE")
    name = env.get("FC_POD_NAME") or env.get("POD_NAME") or env.get("HOSTNAME")
    return PodName(namespace, name, env.get("FC_POD_UID", "")) if namespace and name else None


def pod_event(
    pod: PodName, note: Note, *, when: float, key: str = "", owner: Owner | None = None
) -> dict[str, Any]:
    """An Event of a Pod, or of the workload that owns it (Kubernetes API reference, Event v1 core).

    Args:
        pod: the subject and reporter of the Event.
        note: its content; the message is cut at `MAX_MESSAGE_BYTES`.
        when: seconds since the epoch.
        key: Events with equal keys are one Event, even if sent several times; default: the content.
        owner: the workload, for an Event about it with the Pod as the related object.
    """
    import hashlib  # Imported here: every module's process imports this file.

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    text = f"{owner.uid if owner else pod.uid}\0{note.reason}\0{note.message}"
    message = f"{pod.name}: {note.message}" if owner else note.message
    key = key or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    about = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "namespace": pod.namespace}
    about |= {"uid": pod.uid} if pod.uid else {}
    involved = {"involvedObject": owner.reference, "related": about} if owner else {}
    name = owner.name if owner else pod.name
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": f"{name[:200]}.{key[:16]}", "namespace": pod.namespace},
        "involvedObject": about, **involved,
        "type": "Warning" if note.warning else "Normal", "reason": note.reason,
        "message": message.encode("utf-8", "replace")[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore"),
        "source": {"component": "pairun"}, "reportingComponent": "pairun",
        "reportingInstance": pod.name[:128], "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    }  # fmt: skip
