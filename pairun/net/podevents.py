"""Sends Events about this Pod, and about the workload that owns it, to the API server."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from pairun.base.foreignjson import parse_record
from pairun.kube.events import Note, PodName, own_pod, pod_event
from pairun.kube.owners import Owner, controller_of
from pairun.module import Failure
from pairun.net.apianswers import Refused
from pairun.net.apicredentials import namespace_of_pod
from pairun.net.apiserver import ApiServer
from pairun.net.exchange import Deadline

_MAX_BYTES = 4 * 1024 * 1024
"""The largest object to read for its owner, in bytes."""

_LEVELS = 2
"""How many owners to follow: from a Pod to its Job, and to the Job's owner."""


class Sent(NamedTuple):
    """The result of sending an Event: why it failed, or None; and whether to send more."""

    why_not: str | None
    is_refused: bool = False


def send_event(note: Note, env: Mapping[str, str], timeout_s: float) -> Sent:
    """Send an Event about this Pod, and one about its workload if that can be found; once.

    Equal Events from Pods of a workload become one Event. Raises nothing.

    Args:
        note: its text; without secrets.
        env: the container's environment.
        timeout_s: seconds for everything.
    """
    pod = own_pod({"POD_NAMESPACE": namespace_of_pod(env), **env})
    if pod is None:
        return Sent("the name or the namespace of this Pod is unknown", is_refused=True)
    deadline = Deadline(timeout_s)
    try:
        server = ApiServer.in_pod(env)
    except Failure as e:
        return Sent(e.message, is_refused=isinstance(e, Refused))
    try:
        _post(server, pod, note, deadline)
        with contextlib.suppress(Failure):
            if (owner := _owner_of(server, pod, deadline)) is not None:
                _post(server, pod, note, deadline, owner)
    except Failure as e:
        return Sent(e.message, is_refused=isinstance(e, Refused))
    finally:
        server.close()
    return Sent(None)


def _post(
    server: ApiServer, pod: PodName, note: Note, deadline: Deadline, owner: Owner | None = None
) -> None:
    event = pod_event(
        pod, note.reason, note.message, when=time.time(), warning=note.warning, owner=owner
    )
    server.post(pod.events_path, json.dumps(event).encode(), timeout_s=deadline.left_s())


def _owner_of(server: ApiServer, pod: PodName, deadline: Deadline) -> Owner | None:
    """The workload, as far as this account may read; None if it may not read its own Pod."""
    path: str | None = (
        f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
    )
    owner: Owner | None = None
    for _ in range(_LEVELS):
        if path is None:
            break
        try:
            data = server.ask(path, timeout_s=deadline.left_s(), max_bytes=_MAX_BYTES)
        except Failure:
            break
        above = controller_of(parse_record(data or b"{}") or {})
        if above is None:
            break
        owner, path = above, above.path
    return owner if owner is not None and owner.is_workload else None
