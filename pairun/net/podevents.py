"""Sends Events about this Pod, and about the workload that owns it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.kube.events import Note, PodName, own_pod, pod_event
from pairun.kube.owners import Owner, controller_of
from pairun.kube.paths import object_path
from pairun.module import Failure
from pairun.net.apianswers import Refused
from pairun.net.apicredentials import NoApiServer, access_of_pod, namespace_of_pod

_MAX_BYTES = 4 * 1024 * 1024
"""The largest object to read for its owner, in bytes."""

_LEVELS = 2
"""How many owners to follow: from a Pod to its Job, and to the Job's owner."""


def can_send(env: Mapping[str, str]) -> bool:
    """Whether this container has what an Event needs: the API server and the Pod's name."""
    try:
        access_of_pod(env)
    except Failure:
        return False
    return _pod(env) is not None


def send_event(
    note: Note, env: Mapping[str, str], timeout_s: float, journal: Callable[[dict[str, Any]], None]
) -> bool:
    """Send an Event about this Pod, and one about its workload if that can be found; once.

    Equal Events from Pods of a workload become one Event. Raises nothing. Only the journal says
    what was sent, and why something was not.

    Args:
        timeout_s: seconds for everything.
        journal: takes the record.

    Returns:
        Whether the API server may accept further Events.
    """
    record = {"type": "event", "reason": note.reason, "message": note.message}
    failure: Failure | None = None
    try:
        create_event(note, env, timeout_s, workload=True)
    except Failure as e:
        failure = e
        record["because"] = e.message
    journal(record)
    return not isinstance(failure, Refused | NoApiServer)


def create_event(
    note: Note, env: Mapping[str, str], timeout_s: float, key: str = "", *, workload: bool = False
) -> None:
    """Create an Event about this Pod.

    Args:
        timeout_s: seconds for everything.
        key: Events with equal keys are one Event; by default those with equal content.
        workload: also create one about the workload, if that can be found.

    Raises:
        Failure: the API server cannot be reached or refuses.
        NoApiServer: this container lacks its address, or the Pod's name.
    """
    # Imported here: most phases send no Event, and need no HTTP client for one.
    from pairun.net.apiserver import ApiServer
    from pairun.net.session import Deadline

    pod = _pod(env)
    if pod is None:
        message = "the name or the namespace of this Pod is unknown"
        hint = "set FC_POD_NAME and FC_FRAMEWORK_NAMESPACE"
        raise NoApiServer(message, fault="platform", hint=hint)
    deadline = Deadline(timeout_s)
    with contextlib.closing(ApiServer.in_pod(env)) as server:

        def post(owner: Owner | None = None) -> None:
            event = pod_event(pod, note, when=time.time(), key="" if owner else key, owner=owner)
            server.post(pod.events_path, json.dumps(event).encode(), timeout_s=deadline.left_s())

        def read(path: str) -> dict[str, Any]:
            data = server.ask(path, timeout_s=deadline.left_s(), max_bytes=_MAX_BYTES)
            return parse_record(data or b"{}") or {}

        post()
        with contextlib.suppress(Failure):
            if workload and (owner := _owner_of(pod, read)) is not None:
                post(owner)


def _pod(env: Mapping[str, str]) -> PodName | None:
    return own_pod({"POD_NAMESPACE": namespace_of_pod(env), **env})


def _owner_of(pod: PodName, read: Callable[[str], dict[str, Any]]) -> Owner | None:
    """The workload, as far as this account may read; None if it may not read its own Pod."""
    owner: Owner | None = None
    path: str | None = object_path("v1", "pods", pod.namespace, pod.name)
    with contextlib.suppress(Failure):
        for _ in range(_LEVELS):
            if path is None or (above := controller_of(read(path))) is None:
                break
            owner, path = above, above.path
    return owner if owner is not None and owner.is_workload else None
