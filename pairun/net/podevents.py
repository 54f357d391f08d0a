"""Sends an Event of the own Pod to the cluster's API server."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

from pairun.kube.events import Note, own_pod, pod_event
from pairun.module import Failure
from pairun.net.apianswers import Refused
from pairun.net.apiserver import ApiServer


class Sent(NamedTuple):
    """What became of an Event: why it was not sent, or None; and whether another one may be."""

    why_not: str | None
    is_refused: bool = False


def send_event(note: Note, env: Mapping[str, str], timeout_s: float) -> Sent:
    """Send an Event, once; nothing is raised.

    Args:
        note: what it says; without secrets.
        env: the container's environment.
        timeout_s: seconds for everything.
    """
    pod = own_pod(env)
    if pod is None:
        return Sent("the name or the namespace of this Pod is unknown", is_refused=True)
    event = pod_event(pod, note.reason, note.message, when=time.time(), warning=note.warning)
    try:
        server = ApiServer.in_pod(env)
        try:
            server.post(pod.events_path, json.dumps(event).encode(), timeout_s=timeout_s)
        finally:
            server.close()
    except Failure as e:
        return Sent(e.message, is_refused=isinstance(e, Refused))
    return Sent(None)
