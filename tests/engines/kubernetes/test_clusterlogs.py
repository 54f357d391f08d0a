"""Logs of Pods, printed and followed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.engines.kubernetes import clusterlogs as podlogs
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.clusterlogs import LogSelection, follow_logs, lines, print_logs
from pairun.errors import PairunError
from tests.engines.kubernetes.samples import INIT_LOG, INIT_WORDS, PODS, Serve, ended, ids, pod
from tests.fakeapi import Answer, Handler, status


@given(
    text=st.lists(st.text("ab\u00e9 ", max_size=9), max_size=9),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_lines_are_the_same_however_the_bytes_come(text: list[str], cuts: list[int]) -> None:
    """Cut anywhere, also inside a character."""
    data = "".join(f"{t}\n" for t in text).encode()
    ends = sorted({0, *(min(c, len(data)) for c in cuts), len(data)})
    parts = [data[a:b] for a, b in itertools.pairwise(ends)]
    assert list(lines(iter(parts))) == text


def test_a_line_without_an_end_comes_in_parts() -> None:
    """So that memory stays bounded."""
    got = list(lines(iter([b"x" * 100_000] * 3)))
    assert max(map(len, got)) <= 100_000
    assert "".join(got) == "x" * 300_000


class Logs:
    """Two Pods that print; the first breaks off once, the second starts late."""

    def __init__(self) -> None:
        self.reads = 0
        self.asked = 0
        self.since: list[str] = []

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path.endswith("worker-0/log"):
            self.reads += 1
            if query.get("sinceTime"):
                self.since.append(query["sinceTime"])
            first = "2024-01-01T00:00:01.5Z one\n2024-01-01T00:00:01.5Z two\n"
            return 200, (first + "2024-01-01T00:00:02Z three\n" * (self.reads > 1)).encode()
        if path.endswith("worker-1/log"):
            if self.reads < 2:
                return status(400, "BadRequest", "waiting to start: PodInitializing")
            return 200, b"2024-01-01T00:00:03Z late\n"
        done = self.reads > 1
        phase = "Succeeded" if done else "Running"
        pods = [pod(index=0, phase=phase), pod(index=1, phase=phase if done else "Pending")]
        if path == PODS:
            return 200, {"items": pods, "metadata": {}}
        if path.startswith(PODS):
            return 200, pods[int(path[-1])]
        return status(404, "NotFound", "not found")


def test_followed_logs_come_whole_and_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a connection that broke the next line follows; a late Pod is waited for."""
    monkeypatch.setattr(podlogs, "AGAIN_S", 0.01)
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    logs = Logs()
    cluster, _ = serve(logs)
    seen: list[tuple[str, str]] = []
    follow_logs(cluster, "mnist", LogSelection(), lambda i, t: seen.append((i.label, t)), print)
    assert [t for who, t in seen if who == "worker-0"] == ["one", "two", "three"]
    assert [t for who, t in seen if who == "worker-1"] == ["late"]
    assert logs.since[0] == "2024-01-01T00:00:01Z"


def test_logs_that_are_not_there_yet_are_said(serve: Serve) -> None:
    """Without --follow what there is is printed, and who has none is named with its phase."""
    cluster, _ = serve(Logs())
    seen: list[str] = []
    said: list[str] = []
    whole = print_logs(
        cluster, "mnist", LogSelection(), lambda i, _: seen.append(i.label), said.append
    )
    assert not whole
    assert seen == ["worker-0"] * 2
    assert said == ["worker-1: no log: it is pending"]


def ended_pod(pod: dict[str, Any], log: Answer) -> Handler:
    """A job of one plain Pod that has ended, and what the API server says of its log."""

    def handler(_: str, path: str, __: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/log"):
            return log
        if path == PODS:
            return 200, {"items": [pod], "metadata": {}}
        return (200, pod) if path.startswith(PODS) else status(404)

    return handler


@pytest.mark.parametrize("read", [print_logs, follow_logs])
def test_a_command_that_never_began_has_no_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, read: Callable[..., object]
) -> None:
    """Init failed: that is said with its reason and where its log is, also with --follow."""
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    one = pod(phase="Failed", initContainerStatuses=[ended("init", 254, message=INIT_LOG)])
    refused = status(400, "BadRequest", "waiting to start: PodInitializing")
    cluster, _ = serve(ended_pod(one, refused))
    said: list[str] = []
    read(cluster, "mnist", LogSelection(), lambda *_: None, said.append)
    reason = f"{INIT_WORDS}; --init shows that phase's log"
    assert said == [f"worker-0: no log: it is failed: {reason}"]


def test_the_kubelets_own_words_are_no_log(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers for a container that it has removed is not what the user printed."""
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    one = pod(phase="Succeeded", containerStatuses=[ended("app", 0)])
    log = b"2024-01-01T00:00:01.5Z one\nunable to retrieve container logs for containerd://4461"
    cluster, _ = serve(ended_pod(one, (200, log)))
    seen: list[str] = []
    follow_logs(cluster, "mnist", LogSelection(), lambda _, text: seen.append(text), print)
    assert seen == ["one"]


def test_an_instance_that_is_not_there(serve: Serve) -> None:
    """The roles that are there are named."""
    cluster, _ = serve(Logs())
    with pytest.raises(PairunError) as e:
        print_logs(cluster, "mnist", LogSelection(role="wroker"), lambda *_: None, print)
    assert ids(e) == ["PR789"]
    assert "worker" in str(e.value.problems[0].hint)


def test_too_many_logs_to_follow(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with what to choose by, instead of a connection for each."""
    monkeypatch.setattr(podlogs, "MOST_STREAMS", 1)
    cluster, _ = serve(Logs())
    with pytest.raises(PairunError) as e:
        follow_logs(cluster, "mnist", LogSelection(), lambda *_: None, print)
    assert ids(e) == ["PR801"]


@pytest.mark.parametrize(("end", "resource"), [("/log", "pods/log"), ("/mnist-worker-0", "pods")])
def test_logs_of_a_cluster_that_refuses_them(serve: Serve, end: str, resource: str) -> None:
    """A right that is missing ends the following, and is named."""
    logs = Logs()

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path.endswith(end):
            return status(403, "Forbidden", f'User "x" cannot get resource "{resource}"')
        return logs(method, path, query, body)

    cluster, _ = serve(handler)
    with pytest.raises(ClusterRefusal) as e:
        follow_logs(cluster, "mnist", LogSelection(), lambda *_: None, print)
    assert f"get {resource} " in str(e.value)
