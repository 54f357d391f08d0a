"""Finds the leader's Pod at the API server: one small read, then a watch for its address."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_record
from pairun.kube.paths import object_path
from pairun.kube.pods import init_succeeded
from pairun.kube.ports import PORT_ANNOTATION, PortPlan, rendezvous_port
from pairun.module import TimedOut, Transient
from pairun.net.apianswers import Refused
from pairun.net.apiserver import ApiServer
from pairun.rendezvous.roster import Address

_READ_S = 10.0
_MAX_POD_BYTES = 1024 * 1024
_WATCH_S = 300.0
_LEAST_WATCH_S = 1.0
_PAUSE_S = 1.0
_MAX_PAUSE_S = 30.0
_ENDED = ("Failed", "Succeeded")


class NotAllowed(Exception):
    """This Pod may not read the leader's Pod; the message names the missing right."""


class LeaderEnded(Exception):
    """The leader's Pod has ended, and no other Pod will replace it."""


class Leader(NamedTuple):
    """The leader.

    Attributes:
        address: where it listens.
        runs: whether its init containers had succeeded when it was found.
        ports: the half-open range of its other ports; None if it has none.
    """

    address: Address
    runs: bool = False
    ports: tuple[int, int] | None = None


class LeaderPod:
    """Finds the leader by its Pod; see `pairun.rendezvous.gathering.Locate`.

    Args:
        api: the API server.
        namespace: the job's namespace.
        name: the leader's Pod, if its name follows from the job's.
        labels: otherwise, a selector for that one Pod.
        has_ended: whether the leader has ended for good; called if its Pod does not exist.
    """

    def __init__(
        self,
        api: ApiServer,
        namespace: str,
        *,
        name: str | None = None,
        labels: str = "",
        has_ended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._labels = labels
        self._has_ended = has_ended
        self._may_watch = True

    def __call__(self, timeout_s: float) -> Leader | None:
        """Wait for the leader's address; None after the timeout.

        Raises:
            NotAllowed: this Pod may not read Pods.
            LeaderEnded: the leader has ended and will not be replaced.
            pairun.module.Failure: the request to the API server fails for good.
        """
        end, pause_s = time.monotonic() + timeout_s, _PAUSE_S
        while True:
            retry_after = 0.0
            try:
                data = self._read(end - time.monotonic())
                pod, version = self._pod(parse_record(data or b"{}") or {})
                if leader := self._leader(pod):
                    return leader
                if self._is_over(pod, exists=data is not None):
                    raise LeaderEnded("the job's leader has ended")
                if leader := self._watch(version, min(_WATCH_S, end - time.monotonic())):
                    return leader
            except (Transient, TimedOut) as e:
                retry_after = e.retry_after_s or 0.0  # may be temporary; the caller reports it
            wait_s = max(retry_after, pause_s * random.uniform(0.5, 1.0))  # noqa: S311
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)
            if time.monotonic() + wait_s >= end:
                return None
            time.sleep(wait_s)

    def _read(self, left_s: float) -> bytes | None:
        try:
            return self._api.ask(
                object_path("v1", "pods", self._namespace, self._name or ""),
                query=None if self._name else {"labelSelector": self._labels},
                timeout_s=max(0.1, min(_READ_S, left_s)),
                max_bytes=_MAX_POD_BYTES,
            )
        except Refused as e:
            raise NotAllowed(e.message) from None

    def _pod(self, answer: dict[str, Any]) -> tuple[Any, str]:
        """The Pod in a response, and the version from which to watch."""
        version = _part(answer, "metadata").get("resourceVersion", "")
        items = [answer] if self._name else answer.get("items")
        pods = items if isinstance(items, list) else []
        # A retried instance has an older Pod besides the new one.
        pod = next(filter(self._leader, pods), pods[0] if pods else None)
        return pod, version if isinstance(version, str) else ""

    def _is_over(self, pod: Any, *, exists: bool) -> bool:
        """Whether the leader has ended for good. A Pod that failed may be replaced."""
        if _part(pod, "status").get("phase") == "Succeeded":
            return True
        return not exists and self._has_ended()

    def _watch(self, version: str, wait_s: float) -> Leader | None:
        """Wait until the Pod has an address; an empty version starts with the current Pods."""
        if not self._may_watch or wait_s < _LEAST_WATCH_S:
            return None
        selector = (
            {"fieldSelector": f"metadata.name={self._name}"}
            if self._name
            else {"labelSelector": self._labels}
        )
        query = selector | ({"resourceVersion": version} if version else {})
        try:
            path = object_path("v1", "pods", self._namespace)
            for event in self._api.watch(path, query=query, timeout_s=wait_s):
                if _part(event).get("type") in ("ADDED", "MODIFIED"):
                    if leader := self._leader(event.get("object")):
                        return leader
                elif _part(event).get("type") == "ERROR":
                    return None
        except Refused:
            self._may_watch = False
        return None

    def _leader(self, pod: Any) -> Leader | None:
        metadata, status = _part(pod, "metadata"), _part(pod, "status")
        uid, ip = metadata.get("uid"), status.get("podIP")
        has_ended = bool(metadata.get("deletionTimestamp")) or status.get("phase") in _ENDED
        if isinstance(uid, str) and isinstance(ip, str) and uid and ip and not has_ended:
            ports = _range(_part(metadata, "annotations").get(PORT_ANNOTATION))
            return Leader((ip, rendezvous_port(uid)), init_succeeded(pod), ports)
        return None


def _range(annotation: Any) -> tuple[int, int] | None:
    """The range in a port-scheduling annotation; the older form has none."""
    try:
        return PortPlan(annotation).range
    except ValueError:
        return None


def _part(owner: Any, name: str | None = None) -> dict[str, Any]:
    """A mapping, or the mapping under a name in it; empty if there is none."""
    part = owner.get(name) if name and isinstance(owner, dict) else owner
    return part if isinstance(part, dict) else {}
