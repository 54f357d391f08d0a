"""The state of a Pod: where it runs, and why it is not ready yet.

Source: Kubernetes documentation, "Pod Lifecycle".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.kube.labels import INDEXES, ROLES

STUCK = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
})  # fmt: skip
"""Reasons for which a container waits until a person changes something."""

_CREATING = ("ContainerCreating", "PodInitializing")
_REASON_CHARS = 160


def place_of(pod: Mapping[str, Any]) -> tuple[str, int | None]:
    """The role of a Pod and its number in it; empty and None if its labels do not show them."""
    meta = pod.get("metadata") or {}
    labels = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    role = next((str(labels[name]) for name in ROLES if labels.get(name)), "")
    numbers = (str(labels.get(name, "")) for name in INDEXES)
    return role, next((int(n) for n in numbers if re.fullmatch("[0-9]{1,9}", n)), None)


def conditions_of(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions in an object's status, by type."""
    conditions = status.get("conditions") or ()
    return {str(c.get("type")): c for c in conditions if isinstance(c, dict)}


def statuses_of(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The statuses of a Pod's containers, those of init first."""
    status = pod.get("status") or {}
    names = ("initContainerStatuses", "containerStatuses")
    return [container for name in names for container in status.get(name) or ()]


def states_of(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The state of a container; unless it has ended, the end of its last run, too."""
    state = container.get("state") or {}
    return [state] if state.get("terminated") else [state, container.get("lastState") or {}]


def statements_of(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The messages and reasons for which a Pod waits or ended.

    Yields the field, its text, and the status of the container; empty for the Pod's own.
    """
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return
    conditions = conditions_of(status)
    parts = [status]
    for kind, problem in (("DisruptionTarget", "True"), ("PodScheduled", "False")):
        condition = conditions.get(kind, {})
        parts += [condition] if condition.get("status") == problem else []
    for part in parts:
        yield from ((key, str(part.get(key) or ""), {}) for key in ("message", "reason"))
    for container in statuses_of(pod):
        for state in states_of(container):
            for kind in ("waiting", "terminated"):
                yield "reason", str((state.get(kind) or {}).get("reason") or ""), container


def init_succeeded(pod: Mapping[str, Any]) -> bool:
    """Whether a Pod has init containers, and all of them exited with 0."""
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    ended = [(s.get("state") or {}).get("terminated") for s in statuses]
    return bool(ended) and all(e and e.get("exitCode") == 0 for e in ended)


def of_main_containers(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A Pod with the statuses of only those containers that run PID 1: they mount its volume."""
    containers = (pod.get("spec") or {}).get("containers") or []
    main = {
        container.get("name")
        for container in containers
        if any(m.get("mountPath") == DEFAULT_PAI_DIR for m in container.get("volumeMounts") or ())
    }
    status = pod.get("status") or {}
    statuses = [s for s in status.get("containerStatuses") or () if s.get("name") in main]
    return {**pod, "status": {**status, "containerStatuses": statuses}}


def is_done(pod: Mapping[str, Any]) -> bool:
    """Whether a Pod or its main container has succeeded."""
    succeeded = (pod.get("status") or {}).get("phase") == "Succeeded"
    return succeeded or _each_main(pod, _succeeded)


def is_running(pod: Mapping[str, Any]) -> bool:
    """Whether a Pod's main container is running or has succeeded."""
    return _each_main(pod, lambda state: "running" in state or _succeeded(state))


def _succeeded(state: Mapping[str, Any]) -> bool:
    return (state.get("terminated") or {}).get("exitCode") == 0


def _each_main(pod: Mapping[str, Any], holds: Callable[[Mapping[str, Any]], bool]) -> bool:
    states = [s.get("state") or {} for s in of_main_containers(pod)["status"]["containerStatuses"]]
    return bool(states) and all(map(holds, states))


def unscheduled(status: Mapping[str, Any]) -> str | None:
    """Why the scheduler finds no node; empty without a reason, None before it has tried."""
    condition = conditions_of(status).get("PodScheduled", {})
    if condition.get("status") != "False":
        return None
    return str(condition.get("message") or condition.get("reason") or "")


def is_scheduled(status: Mapping[str, Any]) -> bool:
    """Whether the Pod has a node."""
    return conditions_of(status).get("PodScheduled", {}).get("status") == "True"


def why_missing(pod: Mapping[str, Any]) -> str:
    """Why a Pod is not ready for its peers, in a few words."""
    status, meta = pod.get("status") or {}, pod.get("metadata") or {}
    if meta.get("deletionTimestamp"):
        return "its Pod is being deleted"
    if (reason := unscheduled(status)) is not None:
        return f"unscheduled: {_line(reason)}"
    for container in statuses_of(pod):
        if reason := _container_reason(container):
            return reason
    if status.get("phase") == "Failed":
        return f"failed: {_line(status.get('message') or status.get('reason'))}"
    if meta.get("name") and not (pod.get("spec") or {}).get("nodeName"):
        return "not scheduled yet"
    return (
        "it received its address a moment ago" if status.get("podIP") else "it has no address yet"
    )


def _container_reason(container: Mapping[str, Any]) -> str:
    state = container.get("state") or {}
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if ended.get("exitCode"):
        return f"{container.get('name')} failed with {ended['exitCode']}"
    reason = waiting.get("reason")
    if reason in _CREATING:
        return "its containers are being created: image, volumes, network"
    if not reason:
        return ""
    message = waiting.get("message")
    return f"{container.get('name')}: {reason}" + (f", {_line(message)}" if message else "")


def _line(text: Any) -> str:
    return " ".join(str(text or "no reason given").split())[:_REASON_CHARS]
