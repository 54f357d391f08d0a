"""What a Pod object says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.kube.pods import init_succeeded, is_scheduled, unscheduled, why_missing

NODE = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """A status with a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "app", "state": state}]}


def condition(status: str, **more: str) -> dict[str, Any]:
    """A status that tells what the scheduler did."""
    return {"conditions": [{"type": "PodScheduled", "status": status, **more}]}


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        ({"metadata": {"deletionTimestamp": "t"}}, "its Pod is being deleted"),
        ({"status": condition("False", message="0/3\n nodes")}, "unscheduled: 0/3 nodes"),
        ({"status": condition("False", reason="Unschedulable")}, "unscheduled: Unschedulable"),
        ({"status": condition("False")}, "unscheduled: no reason given"),
        ({"metadata": {"name": "p"}}, "not scheduled yet"),
        (NODE, "it has no address yet"),
        (NODE | {"status": {"podIP": "10.0.0.1"}}, "it received its address a moment ago"),
        (NODE | {"status": waiting("PodInitializing")},
         "its containers are being created: image, volumes, network"),
        (NODE | {"status": waiting("ErrImagePull", "no such image")},
         "app: ErrImagePull, no such image"),
        (NODE | {"status": waiting("CrashLoopBackOff")}, "app: CrashLoopBackOff"),
        (NODE | {"status": {"initContainerStatuses": [
            {"name": "init", "state": {"terminated": {"exitCode": 253}}}]}},
         "init failed with 253"),
        (NODE | {"status": {"phase": "Failed", "reason": "Evicted"}}, "failed: Evicted"),
    ],
)  # fmt: skip
def test_why_a_pod_is_missing(pod: dict[str, Any], why: str) -> None:
    """Each way to be late has its words."""
    assert why_missing(pod) == why


def test_a_reason_is_short() -> None:
    """The words of a scheduler can be long."""
    assert len(why_missing({"status": condition("False", message="x" * 999)})) < 200


def test_what_the_scheduler_did() -> None:
    """No word of it is not a refusal."""
    assert unscheduled({}) is None
    assert not is_scheduled({})
    assert unscheduled(condition("True")) is None
    assert is_scheduled(condition("True"))


def test_init_containers_that_succeeded() -> None:
    """All have ended with 0, and there is one."""
    ended = [{"state": {"terminated": {"exitCode": code}}} for code in (0, 1)]
    assert init_succeeded({"status": {"initContainerStatuses": ended[:1]}})
    assert not init_succeeded({"status": {"initContainerStatuses": ended}})
    assert not init_succeeded({"status": {"initContainerStatuses": [*ended[:1], {}]}})
    assert not init_succeeded({})
