"""What an init phase learns of the Pods that it waits for, and what it does then."""

from __future__ import annotations

import base64
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.base.paths import KEY_FILE, PLACE_FILE, PLAIN_FILES
from pairun.module import Transient
from pairun.net.apiserver import ApiServer
from pairun.rendezvous.otherpods import OtherPods
from pairun.rendezvous.peers import JobPeers, MemberPlace, peers_of, write_place
from pairun.rendezvous.roster import Gang
from tests.fakeapi import Answer, Fake, status
from tests.rendezvous.conftest import JOB, KEY, Gathering

FRAMEWORK = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/ns/frameworks/job"
POD = "/api/v1/namespaces/ns/pods/job-worker-0"
PODS = "/api/v1/namespaces/ns/pods"
GANG = Gang.of({"worker": 3})


def pod(phase: str, *init_codes: int) -> dict[str, Any]:
    """A Pod, with init containers that have ended."""
    inits = [{"state": {"terminated": {"exitCode": code}}} for code in init_codes]
    return {"status": {"phase": phase, "initContainerStatuses": inits}}


def framework(state: str) -> dict[str, Any]:
    """A Framework whose controller says that of worker 0."""
    task = {"index": 0, "state": state, "attemptStatus": {}}
    roles = [{"name": "worker", "taskStatuses": [task]}]
    return {"status": {"attemptStatus": {"taskRoleStatuses": roles}}}


@pytest.fixture
def cluster() -> Iterator[Callable[..., OtherPods]]:
    """An API server with these objects, asked from a Pod of a Framework or of another engine."""
    objects: dict[str, Any] = {}

    def answer(_: str, path: str, *__: Any) -> Answer:
        found = objects.get(path)
        return status(404, "NotFound") if found is None else (200, found)

    fake = Fake(answer)
    client = ApiServer(fake.url)

    def make(content: dict[str, Any], barrier: str = "framework") -> OtherPods:
        objects.update(content)
        env = {"FC_FRAMEWORK_NAMESPACE": "ns", "FC_FRAMEWORK_NAME": "job"}
        return OtherPods({**env, "PAIRUN_BARRIER": barrier}, client)

    yield make
    client.close()
    fake.close()


@pytest.mark.parametrize(
    ("barrier", "objects", "has_ended", "is_past_init"),
    [
        ("framework", {POD: pod("Running", 0)}, False, True),
        ("framework", {POD: pod("Pending")}, False, False),
        ("framework", {POD: pod("Failed", 1)}, True, True),
        ("framework", {FRAMEWORK: framework("Completed")}, True, True),
        ("framework", {FRAMEWORK: framework("AttemptCreationPending")}, False, False),
        ("framework", {}, False, False),
        ("pods", {PODS: {"items": [pod("Succeeded", 0)]}}, True, True),
        ("pods", {PODS: {"items": [pod("Failed", 0), pod("Pending")]}}, False, False),
        ("pods", {PODS: {"items": []}}, False, False),
    ],
)
def test_what_a_pod_can_still_tell(
    cluster: Callable[..., OtherPods],
    barrier: str,
    objects: dict[str, Any],
    has_ended: bool,
    is_past_init: bool,
) -> None:
    """By its phase, by a newer Pod in its place, by the task's state where the Pod is deleted."""
    pods = cluster(objects, barrier)
    assert pods.has_ended("worker", 0) == has_ended
    assert pods.is_past_init("worker", 0) == is_past_init


def test_a_server_that_does_not_respond_leaves_it_open() -> None:
    """The caller then waits as it did before."""
    env = {"FC_FRAMEWORK_NAMESPACE": "ns", "FC_FRAMEWORK_NAME": "job"}
    pods = OtherPods(env, ApiServer("http://127.0.0.1:1"))
    assert not pods.has_ended("worker", 0)
    assert not OtherPods(env).is_past_init("worker", 0)


def test_a_verdict_of_an_ended_leader_is_not_waited_for(
    gathering: Callable[[int], Gathering], cluster: Callable[..., OtherPods]
) -> None:
    """An instance that is retried after its leader's end runs the task itself."""
    job = gathering(3)
    job.lead()
    job.stop()
    pods = cluster({FRAMEWORK: framework("Completed")})
    peers = JobPeers(MemberPlace(job.address or ("", 0), JOB, 1, GANG), job.facts(), "init", pods)
    with pytest.raises(Transient, match="the leader has ended"):
        peers.take(peers.topic("first_of_role", "image_check"), 3600.0)


def test_the_runtime_phase_knows_that_the_leader_had_ended(
    gathering: Callable[[int], Gathering],
    cluster: Callable[..., OtherPods],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no API token: init leaves it on the volume, and every task runs where it stands."""
    job = gathering(3)
    job.lead()
    job.stop()
    monkeypatch.setenv(PLAIN_FILES, "1")
    write_key(tmp_path)
    write_place(str(tmp_path), MemberPlace(job.address or ("", 0), JOB, 1, GANG))
    pods = cluster({FRAMEWORK: framework("Completed")})
    init = peers_of(str(tmp_path), "init", pods)
    assert init is not None
    assert init.first("first_of_role") == "worker-0"
    with pytest.raises(Transient, match="the leader has ended"):
        init.give("task init a", {"outcome": "ok"}, 3600.0)
    runtime = peers_of(str(tmp_path), "runtime")
    assert runtime is not None
    assert runtime.first("first_of_role") is None
    runtime.give("task runtime a", {"outcome": "ok"}, 3600.0)


def write_key(volume: pathlib.Path) -> None:
    """The job's key, as the platform mounts it."""
    path = volume / KEY_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(base64.b64encode(KEY))
    (volume / PLACE_FILE).parent.mkdir(exist_ok=True)


def test_a_verdict_that_a_replaced_leader_lost_is_not_waited_for(
    gathering: Callable[[int], Gathering], cluster: Callable[..., OtherPods]
) -> None:
    """The leader is there, and who gave the verdict is past its init phase and gives it no more."""
    job = gathering(3)
    job.lead()
    pods = cluster({POD: pod("Running", 0)})
    peers = JobPeers(MemberPlace(job.address or ("", 0), JOB, 1, GANG), job.facts(), "init", pods)
    with pytest.raises(Transient, match="was not set in time"):
        peers.take(peers.topic("first_of_role", "image_check"), 3600.0)
