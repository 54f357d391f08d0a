"""What earlier attempts in a cluster say of a retry."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.engines.kubernetes.watching import read_job
from pairun.runtime.termination import Summary, message
from tests.engines.kubernetes.samples import PODS, Serve, ended, pod
from tests.fakeapi import Answer, status

WHY = {
    "class": "nccl_timeout", "fault": "unknown", "retry": "retry", "confidence": 0.9,
    "headline": "a collective waited too long", "evidence": "timeout", "advice": "run it again",
}  # fmt: skip


def end(**why: str) -> dict[str, Any]:
    """The end of a container, with its PID 1's termination message."""
    said = message(Summary(exit_code=1, user_exit_code=1, diagnosis={**WHY, **why}))
    return ended("app", 1, message=said)


def restarted(why: dict[str, Any]) -> dict[str, Any]:
    """A Pod whose container ran twice, and ended alike."""
    return pod(
        phase="Failed",
        containerStatuses=[{**why, "restartCount": 1, "lastState": why["state"]}],
    )


def replaced(node: str, made: int, why: dict[str, Any]) -> dict[str, Any]:
    """One of the Pods that a Job made for one index."""
    each = pod(phase="Failed", containerStatuses=[why])
    each["metadata"] |= {
        "uid": f"u-{node}-{made}", "name": f"mnist-{made}",
        "creationTimestamp": f"2024-01-01T00:00:0{made}Z",
    }  # fmt: skip
    each["spec"]["nodeName"] = node
    return each


def because(serve: Serve, pods: list[dict[str, Any]], logs: dict[tuple[str, bool], str]) -> str:
    """Why a failed job of plain Pods failed; a log that is not given cannot be read."""

    def handler(_: str, path: str, query: dict[str, str], ___: Any) -> Answer:
        if path == PODS:
            return 200, {"items": pods, "metadata": {"resourceVersion": "1"}}
        if path.endswith("/log"):
            text = logs.get((path.split("/")[-2], "previous" in query))
            return status(403) if text is None else (200, text.encode())
        if path.endswith("/configmaps"):
            return 200, {"items": [], "metadata": {}}
        return status(404, "NotFound", "not found")

    cluster, _ = serve(handler)
    return read_job(cluster, "mnist").because


@pytest.mark.parametrize(
    ("step", "words"),
    [(40, ("the same failure 2 times, without progress: step 40 after step 40; "
      "do not run it again before a correction")),
     (90, "the same failure 2 times, with progress: step 90 after step 40; retry 3 times at most")],
)  # fmt: skip
def test_the_previous_log_shows_whether_the_job_came_further(
    serve: Serve, step: int, words: str
) -> None:
    """Kubelet keeps the end and the log of the container's run before."""
    name = "mnist-worker-0"
    logs = {(name, True): "step 40 loss 1\n", (name, False): f"step {step} loss 1\n"}
    assert because(serve, [restarted(end())], logs).endswith(f"; {words}")


def test_earlier_pods_on_one_node_ask_for_another(serve: Serve) -> None:
    """A failure of the node, twice on the same one."""
    lost = end(**{"class": "gpu_lost", "retry": "retry_elsewhere"})
    pods = [replaced("n7", 1, lost), replaced("n7", 2, lost)]
    assert because(serve, pods, {}).endswith("the same failure 2 times on n7; choose another node")


def test_attempts_that_differ_say_nothing(serve: Serve) -> None:
    """And neither does one attempt."""
    pods = [replaced("n7", 1, end(headline="another")), replaced("n7", 2, end())]
    assert "times" not in because(serve, pods, {})
    assert "times" not in because(serve, pods[1:], {})


def test_logs_that_may_not_be_read_leave_the_progress_unknown(serve: Serve) -> None:
    """Two equal failures of a class that a retry often mends."""
    said = because(serve, [restarted(end())], {})
    assert said.endswith("the same failure 2 times; no progress is known, so retry once more")
