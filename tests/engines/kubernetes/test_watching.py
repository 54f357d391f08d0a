"""A job that is read, and followed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.engines.kubernetes import watching
from pairun.errors import PairunError
from pairun.kube.podstates import read_pod
from tests.conftest import SHARED
from tests.engines.kubernetes.samples import (
    EVICTED,
    EVICTION,
    PLACED,
    PODS,
    Serve,
    ended,
    ids,
    pod,
    runs,
)
from tests.fakeapi import Answer, status

OBSERVED = Path(__file__).parent / "observed"
REFUSED = 'Error creating: pods "mnist-0-wc4ww" is forbidden: exceeded quota: q, requested: pods=1'


def test_a_job_whose_pods_are_refused_says_why(serve: Serve) -> None:
    """In the latest words of its controller, not in those for an earlier job of this name."""
    job = {
        "metadata": {
            "name": "mnist",
            "creationTimestamp": "2024-01-01T00:00:10Z",
            "labels": {"pairun/job": "mnist"},
        },
        "spec": {"completions": 2},
        "status": {"startTime": "2024-01-01T00:00:10Z"},
    }

    def event(name: str, second: int, text: str) -> dict[str, Any]:
        when = f"2024-01-01T00:00:{second}Z"
        return {"involvedObject": {"name": name}, "lastTimestamp": when, "message": text}

    events = [
        event("mnist", 11, "first"), event("mnist", 12, REFUSED),
        event("mnistify", 13, "another job's"),
    ]  # fmt: skip

    def handler(_: str, path: str, query: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/events"):
            assert "reason=FailedCreate" in query["fieldSelector"]
            return 200, {"items": events}
        if path.endswith("/jobs/mnist"):
            return 200, job
        if path == PODS:
            return 200, {"items": [], "metadata": {"resourceVersion": "1"}}
        return status(404, "NotFound", "not found")

    cluster, _ = serve(handler)
    state = watching.read_job(cluster, "mnist")
    assert (state.refused, state.because) == (
        True,
        REFUSED.replace('pods "mnist-0-wc4ww"', "its Pods"),
    )
    job["metadata"]["creationTimestamp"] = "2024-01-01T00:01:00Z"  # type: ignore[index]
    assert watching.read_job(cluster, "mnist").because == ""


@pytest.mark.parametrize("name", ["Mnist", "a b", "x" * 64, "a,b=c", ""])
def test_a_name_that_no_job_has(serve: Serve, name: str) -> None:
    """Nothing is asked with it, and the answer is the same."""
    cluster, _ = serve(lambda *_: (200, {"items": []}))
    with pytest.raises(PairunError) as e:
        watching.read_job(cluster, name)
    assert ids(e) == ["PR789"]


class Following:
    """A job whose Pods change as the events of one watch say; the next one has no event."""

    def __init__(self, pod: dict[str, Any], *events: tuple[str, dict[str, Any]]) -> None:
        self.pods = [pod]
        self.events = events
        self.job: dict[str, Any] | None = None
        self.config_map: dict[str, Any] | None = None

    def __call__(self, _: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path == PODS and "watch" in query:
            events, self.events = self.events, ()
            self.pods = [] if events else self.pods
            lines = [json.dumps({"type": kind, "object": obj}) for kind, obj in events]
            return 200, "".join(f"{line}\n" for line in lines).encode()
        if path == PODS:
            return 200, {"items": self.pods, "metadata": {"resourceVersion": "1"}}
        if path.endswith("/jobs/mnist") and self.job is not None:
            return 200, {**self.job, "metadata": {"labels": {"pairun/job": "mnist"}}}
        if path.endswith("/configmaps/mnist-job") and self.config_map is not None:
            return 200, self.config_map
        return status(404, "NotFound", "not found")


def test_an_eviction_is_remembered_when_its_pod_is_deleted(serve: Serve) -> None:
    """A gang Job fails with its backoff limit; the instance and its eviction are the reason."""
    running = pod(phase="Running", conditions=PLACED, containerStatuses=[runs("app")])
    running["metadata"]["ownerReferences"] = [{"kind": "Job"}]
    said = [ended("app", 143)]
    evicted = {**running, "status": {"phase": "Failed", "conditions": [EVICTED],
                                     "containerStatuses": said}}  # fmt: skip
    following = Following(running, ("MODIFIED", evicted), ("DELETED", evicted))
    following.job = {"spec": {"completions": 1}, "status": {"active": 1}}
    states = []
    for state in watching.follow(serve(following)[0], "mnist"):
        states.append(state)
        following.job = json.loads((OBSERVED / "jgevict.json").read_text())
    assert states[-1].state == "failed"
    assert states[-1].because.startswith(f"worker-0: {EVICTION}; BackoffLimitExceeded: ")
    assert states[-1].exit_code == 143


def test_a_plain_pod_that_is_deleted_fails_its_job(serve: Serve) -> None:
    """Nothing creates it again."""
    running = pod(phase="Running", conditions=PLACED, containerStatuses=[runs("app")])
    following = Following(running, ("DELETED", running))
    role = {"name": "worker", "taskNumber": 1}
    framework = json.dumps({"spec": {"taskRoles": [role]}})
    following.config_map = {
        "metadata": {"labels": {"pairun/job": "mnist"}},
        "data": {"framework.json": framework},
    }
    cluster, _ = serve(following)
    *_, last = watching.follow(cluster, "mnist")
    assert (last.state, last.because) == ("failed", "worker-0: its Pod was deleted")
    now = watching.read_job(cluster, "mnist")
    assert (now.state, now.because) == (
        "waiting",
        "no Pod of worker-0; nothing creates plain Pods again",
    )


def test_a_job_that_is_deleted_is_gone(serve: Serve) -> None:
    """With its ConfigMap: that its Pods were deleted is no failure then."""
    running = pod(phase="Running", conditions=PLACED, containerStatuses=[runs("app")])
    cluster, _ = serve(Following(running, ("DELETED", running)))
    with pytest.raises(PairunError) as e:
        list(watching.follow(cluster, "mnist"))
    assert ids(e) == ["PR789"]


class Recorded:
    """A recorded Job on Kubernetes 1.32, with an outage of its API server.

    Each watch shows the next event of a Pod. The outage begins after ``seen`` events, and lasts until
    the recording has ended.

    Args:
        name: the Job.
        seen: how many events of Pods come before the outage.
        left: what of the last state of the Pods is there after the outage.
    """

    def __init__(self, name: str, seen: int, left: Callable[[list[Any]], list[Any]]) -> None:
        self._name, self._seen, self._left = name, seen, left
        self._events = list(recorded(name))
        self._next = self._broken = 0
        self.pods: dict[str, Any] = {}
        self.job: dict[str, Any] = {}
        self._play()

    def _play(self) -> dict[str, Any] | None:
        """Move to the next event of a Pod, and return it."""
        while self._next < len(self._events):
            event = self._events[self._next]
            self._next += 1
            thing = event["object"]
            if thing["kind"] == "Job":
                self.job = thing
            else:
                self.pods[thing["metadata"]["uid"]] = thing
                if event["type"] == "DELETED":
                    del self.pods[thing["metadata"]["uid"]]
                return event
        return None

    def __call__(self, _: str, path: str, query: dict[str, str], __: Any) -> Answer:
        """Answer."""
        if path == PODS and "watch" in query and not self._broken:
            self._seen -= 1
            if self._seen > 0 and (event := self._play()):
                return 200, json.dumps(event).encode() + b"\n"
            self._broken = 1
            while self._play():
                pass
            self.pods = {p["metadata"]["uid"]: p for p in self._left([*self.pods.values()])}
        if self._broken in (1, 2):
            self._broken += 1
            return None if self._broken == 2 else status(403, "Forbidden", "cannot list")
        if path == PODS:
            items = (
                b""
                if "watch" in query
                else {"items": [*self.pods.values()], "metadata": {"resourceVersion": "1"}}
            )
            return 200, items
        if path.endswith("/jobs"):
            return 200, {"items": [self.job], "metadata": {}}
        if path.endswith(f"/jobs/{self._name}"):
            return 200, self.job
        return status(404, "NotFound", "not found")


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The recorded events of a Job and its Pods."""
    path = SHARED / "kubernetes" / "observed" / "1.32" / "01-jobs" / "conversation.jsonl"
    for line in path.read_text().splitlines():
        event = json.loads(line).get("event")
        meta = event["object"]["metadata"] if event else {}
        if event and event["type"] != "BOOKMARK" and f"{meta.get('name')}-".startswith(f"{name}-"):
            meta.setdefault("labels", {})["pairun/job"] = name
            yield event


def first_code(name: str) -> int:
    """How many events of Pods there are up to the first exit code."""
    pods = [e["object"] for e in recorded(name) if e["object"]["kind"] == "Pod"]
    return next(n for n, each in enumerate(pods, 1) if read_pod(each).code)


def nothing(_: list[Any]) -> list[Any]:
    """The Pods are gone."""
    return []


def unknown(pods: list[Any]) -> list[Any]:
    """The kubelet has lost the containers, and writes the code of a SIGKILL."""
    lost = {"exitCode": 137, "reason": "ContainerStatusUnknown"}
    for each in pods:
        for container in each["status"]["containerStatuses"]:
            container["state"] = {"terminated": lost}
    return pods


def replaced(pods: list[Any]) -> list[Any]:
    """The Job's controller has created Pods that never began."""
    for each in pods:
        each["metadata"] |= {
            "uid": f"new-{each['metadata']['uid']}",
            "creationTimestamp": "2027-01-01T00:00:00Z",
        }
        each["status"] = {"phase": "Pending"}
    return pods


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "later", "left"),
    [
        (name, later, left)
        for name in ("fail0", "fail2")
        for later in (0, 99)
        for left in (nothing, list, unknown, replaced)
        # What was never seen of the last attempt's Pod cannot win.
        if left is not unknown or name == "fail0" or later == 99
    ],
)
def test_a_code_once_seen_wins(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, later: int, left: Any
) -> None:
    """What is left of the Pods after an outage does not change the job's exit code."""
    monkeypatch.setattr(watching, "WINDOW_S", 0)
    cluster, _ = serve(Recorded(name, first_code(name) + later, left))
    *_, last = watching.follow(cluster, name)
    assert (last.state, last.exit_code) == ("failed", 7)
    assert "the command ended with 7" in last.because
