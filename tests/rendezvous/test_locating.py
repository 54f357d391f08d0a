"""The leader's Pod is found with as few calls as can be, against a small API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.kube.ports import rendezvous_port
from pairun.net.apiserver import ApiServer
from pairun.rendezvous.locating import Leader, LeaderEnded, LeaderPod, NotAllowed
from tests.fakeapi import Answer, Fake

FOUND = Leader(("10.1.2.3", rendezvous_port("uid-1")))


def pod(**status: Any) -> dict[str, Any]:
    """The leader's Pod."""
    return {"metadata": {"uid": "uid-1", "resourceVersion": "7"}, "status": status}


READY = pod(podIP="10.1.2.3")


class FakeApi:
    """Answers with what it is given, in order, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.events: list[Any] = []
        self.watch_status = 200
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.fake = Fake(self._answer)

    def _answer(self, _: str, path: str, query: dict[str, str], __: Any) -> Answer:
        self.asked.append((path, query))
        if "watch" not in query:
            return self.answers.pop(0)
        lines = "\n".join(json.dumps(event) for event in self.events)
        return self.watch_status, lines.encode() or b"{}"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """An API server."""
    made = FakeApi()
    yield made
    made.fake.close()


@pytest.fixture
def search(api: FakeApi) -> Iterator[Callable[..., LeaderPod]]:
    """Make what finds the leader."""
    client = ApiServer(api.fake.url)

    def make(**how: Any) -> LeaderPod:
        return LeaderPod(client, "ns", **(how or {"name": "job-worker-0"}))

    yield make
    client.close()


def test_a_leader_that_is_there_costs_one_small_read(
    api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """Its address is in its Pod, its port follows from the Pod's UID."""
    api.answers = [(200, READY)]
    assert search()(30) == FOUND
    assert api.asked == [("/api/v1/namespaces/ns/pods/job-worker-0", {})]


def test_a_leader_with_a_random_name_is_found_by_its_labels(
    api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """One Pod of a list is asked for."""
    api.answers = [(200, {"items": [READY]})]
    assert search(labels="pairun/job=a,pairun/role=b")(30) == FOUND
    path, query = api.asked[0]
    assert path == "/api/v1/namespaces/ns/pods"
    assert query == {"labelSelector": "pairun/job=a,pairun/role=b"}


@pytest.mark.parametrize(
    "first",
    [
        (200, pod()),
        (404, {"kind": "Status", "reason": "NotFound"}),
        (200, pod(podIP="10.9.9.9", phase="Failed")),
    ],
)
def test_a_leader_without_an_address_is_watched(
    first: tuple[int, Any], api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """A second call waits for the change, however long it takes; what is over does not count."""
    gone = {"metadata": {"uid": "old", "deletionTimestamp": "now"}, "status": {"podIP": "10.9.9.9"}}
    api.answers = [first]
    api.events = [
        {"type": "MODIFIED", "object": gone},
        {"type": "DELETED", "object": pod(podIP="10.9.9.9")},
        {"type": "BOOKMARK"},
        {"type": "ADDED", "object": pod()},
        {"type": "MODIFIED", "object": READY},
    ]
    assert search()(30) == FOUND
    assert len(api.asked) == 2
    path, query = api.asked[1]
    assert path == "/api/v1/namespaces/ns/pods"
    assert query["fieldSelector"] == "metadata.name=job-worker-0"
    assert query.get("resourceVersion") == ("7" if first[0] == 200 else None)


@pytest.mark.parametrize(
    ("first", "ends"),
    [
        ((200, pod(podIP="10.9.9.9", phase="Succeeded")), False),
        ((404, {"kind": "Status", "reason": "NotFound"}), True),
    ],
)
def test_a_leader_that_has_ended_is_not_waited_for(
    first: tuple[int, Any], ends: bool, api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """Its Pod has succeeded, or its controller has deleted the Pod and has the task's end."""
    api.answers = [first]
    with pytest.raises(LeaderEnded, match="the job's leader has ended"):
        search(name="job-worker-0", has_ended=lambda: ends)(30)


@pytest.mark.slow
def test_where_watching_is_forbidden_it_is_asked_again(
    api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """A 403 of the watch is remembered; a reading one says so."""
    api.answers = [(200, pod()), (503, b""), (200, b"no JSON"), (200, READY)]
    api.watch_status = 403
    leader = search()
    assert leader(60) == FOUND
    assert sum("watch" in query for _, query in api.asked) == 1


@pytest.mark.parametrize(("status", "word"), [(403, "may not get"), (401, "requires a token")])
def test_a_missing_right_is_said(
    status: int, word: str, api: FakeApi, search: Callable[..., LeaderPod]
) -> None:
    """So that the caller can look another way."""
    api.answers = [(status, {})]
    with pytest.raises(NotAllowed, match=word):
        search()(30)


def test_a_search_ends_in_time(search: Callable[..., LeaderPod], api: FakeApi) -> None:
    """What cannot be reached is no error here: the caller knows its deadline."""
    api.answers = [(500, b"")]
    assert search()(0.3) is None
