"""Selects the journal records that matter to an operator, and sends them as Events.

An Event is about this Pod, and about the workload that owns it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from pairun.base.foreignjson import parse_record
from pairun.kube.events import Note, PodName, own_pod, pod_event
from pairun.kube.owners import Owner, controller_of
from pairun.module import Failure, format_duration
from pairun.net.apianswers import Refused
from pairun.net.apicredentials import NoApiServer, access_of_pod, namespace_of_pod

_MAX_BYTES = 4 * 1024 * 1024
"""The largest object to read for its owner, in bytes."""

_LEVELS = 2
"""How many owners to follow: from a Pod to its Job, and to the Job's owner."""

LATE_S = 60.0
"""Seconds after which a task that a retry fixed is reported, and a gang counts as incomplete."""

REPEAT_S = 600.0
"""Seconds after which an incomplete gang is reported again."""

MOST = 10
"""The maximum number of Events of a phase."""


class Noteworthy:
    """Reads the records of a phase, and selects those that deserve an Event.

    Args:
        clock: returns seconds; `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent = 0
        self._barrier = ""
        self._gang = ""
        self._due: float | None = None
        self._last_failure: dict[str, str] = {}

    def note_of(self, record: Mapping[str, Any]) -> Note | None:
        """The Event for a record, or None."""
        kind, task = record.get("type"), str(record.get("task"))
        if kind == "attempt_begin" and record.get("module") == "barrier" and self._due is None:
            self._barrier, self._due = task, self._clock() + LATE_S
        elif kind == "output" and task == self._barrier:
            self._gang = str(record.get("line"))
        elif kind == "attempt_end" and record.get("outcome") == "failed":
            self._last_failure[task] = str(record.get("message"))
        elif kind == "task_end":
            if task == self._barrier:
                self._due = None
            return self._counted(self._of_end(record, task))
        elif kind == "diagnosis":
            advice = f"; {record['advice']}" if record.get("advice") else ""
            about = f"the command exited with {record['exit_code']}: {record['headline']}"
            return Note("CommandFailed", f"{about} ({record['class']}){advice}", True)
        return None

    def due_s(self) -> float | None:
        """Seconds until `overdue` has an Event; None if it waits for nothing."""
        return None if self._due is None else max(0.0, self._due - self._clock())

    def overdue(self) -> Note | None:
        """The Event about a gang that has long been incomplete; the next one is due later."""
        if self._due is None or self._clock() < self._due:
            return None
        self._due = self._clock() + REPEAT_S
        missing = self._gang or "no instance has an address yet"
        return self._counted(Note("GangIncomplete", f"waiting for the gang: {missing}", True))

    def _of_end(self, record: Mapping[str, Any], task: str) -> Note | None:
        outcome, seconds = record.get("outcome"), float(record.get("seconds") or 0)
        if outcome == "failed":
            hint = f"; {record['hint']}" if record.get("hint") else ""
            return Note("TaskFailed", f"{task} failed: {record.get('message')}{hint}", True)
        attempts = int(record.get("attempts") or 0)
        if attempts > 1 and seconds >= LATE_S and outcome in ("ok", "changed"):
            message = f"{task} succeeded at attempt {attempts} after {format_duration(seconds)}"
            return Note("TaskHealed", f"{message}; before: {self._last_failure.get(task)}", False)
        return None

    def _counted(self, note: Note | None) -> Note | None:
        if note is None or self._sent >= MOST:
            return None
        self._sent += 1
        return note


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
        note: its text; without secrets.
        env: the container's environment.
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
        note: its text; without secrets.
        env: the container's environment.
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
        raise NoApiServer(
            "the name or the namespace of this Pod is unknown",
            fault="platform",
            hint="set FC_POD_NAME and FC_FRAMEWORK_NAMESPACE",
        )
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
    path: str | None = (
        f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
    )
    with contextlib.suppress(Failure):
        for _ in range(_LEVELS):
            if path is None or (above := controller_of(read(path))) is None:
                break
            owner, path = above, above.path
    return owner if owner is not None and owner.is_workload else None
