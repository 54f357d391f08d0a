"""The backend that reads the Pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import Object, World, fails, framework, passes


@pytest.fixture
def pods_env(harness: Harness) -> dict[str, str]:
    """The variables of a Pod that pairun made, of a gang of two."""
    file = harness.tmp / "framework.json"
    made = framework(2, 0)
    del made["status"]
    annotations = {
        "rest-server/port-scheduling-spec": json.dumps(
            {"schedulePortStart": 20000, "schedulePortEnd": 40000, "ports": {"tcp": {"count": 1}}}
        )
    }
    made["spec"]["taskRoles"][0]["task"] = {"pod": {"metadata": {"annotations": annotations}}}
    file.write_text(json.dumps(made))
    return {"PAIRUN_FRAMEWORK_FILE": str(file)}


def pod(index: int, made: str = "2020", index_as: str = "label", **more: Any) -> Object:
    """A Pod with an address."""
    labels, annotations = {"pairun/role": "w"}, {}
    if index_as == "label":
        labels["pairun/index"] = str(index)
    else:
        annotations["batch.kubernetes.io/job-completion-index"] = str(index)
    meta = {"name": f"p{index}", "uid": f"uid-{index}", "creationTimestamp": made,
            "labels": labels, "annotations": annotations}  # fmt: skip
    return {"metadata": {**meta, **more}, "status": {"podIP": f"10.0.0.{index}"}}


def test_the_pods_of_a_job(
    harness: Harness, world: Callable[..., World], pods_env: dict[str, str]
) -> None:
    """By index of a label or of an Indexed Job; the young one counts, those that go do not."""
    listed = [
        pod(0, index_as="annotation"),
        pod(1, made="2021", uid="young"),
        pod(1, made="2020", uid="old"),
        pod(1, made="2022", uid="going", deletionTimestamp="x"),
        pod(7),
        {"metadata": {"labels": {"pairun/role": "w", "pairun/index": "-1"}}},
        {"metadata": {"labels": None}},
    ]
    ctx = world(lambda *_: {"items": listed}, **pods_env)
    found = passes(harness, ctx, backend="pods")
    (role,) = found["status"]["attemptStatus"]["taskRoleStatuses"]
    assert [t["attemptStatus"]["podUID"] for t in role["taskStatuses"]] == ["uid-0", "young"]
    said = role["taskStatuses"][1]["attemptStatus"]
    assert (said["podIP"], said["podHostIP"], said["podName"]) == ("10.0.0.1", "10.0.0.1", "p1")
    ((_, path, form),) = ctx.asked
    assert path == "/api/v1/namespaces/ns/pods"
    assert form == "labelSelector=pairun/job=fw;resourceVersion=0;"


@pytest.mark.parametrize(
    ("listed", "args", "says"),
    [
        ([pod(0)], {}, "missing: w-1 (no Pod yet)"),
        ([], {"gang": False}, "0 of 1 instances have addresses; missing: w-0 (no Pod yet)"),
        ([pod(0, uid="other"), pod(1)], {}, "they refer to another Pod instead of this one"),
        ([pod(0), {**pod(1), "status": {"podIP": "x", "phase": "Failed"}}], {}, "w-1 (failed: "),
        ([pod(0), pod(1)], {"ready": "port", "port": "tcp"}, "w-1 (its port tcp does not answer)"),
        ([pod(0), pod(1)], {"ready": "init"}, "missing: w-1"),
    ],
)
def test_pods_that_are_missing(
    harness: Harness,
    world: Callable[..., World],
    pods_env: dict[str, str],
    listed: list[Object],
    args: Object,
    says: str,
) -> None:
    """Who is missing is told from the last list, without another question."""
    ctx = world(lambda *_: {"items": listed}, **pods_env)
    failure = fails(harness, ctx, backend="pods", timeout="1s", **args)
    assert failure.kind == "timeout"
    assert says in failure.message


def test_a_port_that_the_role_does_not_have(
    harness: Harness, world: Callable[..., World], pods_env: dict[str, str]
) -> None:
    """Is a slip of whoever wrote the playbook."""
    ctx = world(lambda *_: {"items": [pod(0), pod(1)]}, **pods_env)
    failure = fails(harness, ctx, backend="pods", ready="port", port="udp")
    assert (failure.kind, failure.message) == ("permanent", "the role w has no port 'udp'")
