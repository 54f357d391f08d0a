"""The player of FrameworkController by itself: what a job sees of the original holds."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from pairun.kube.statuses import task_statuses
from tests.node.conftest import Node, Run
from tests.node.framework_controller import COMPRESS_FROM, GROUP, FrameworkController

Object = dict[str, Any]
SHOW = "env | grep ^FC_ | sort | tee /dev/termination-log"

pytestmark = pytest.mark.nightly


@pytest.fixture
def busybox(podman: Any, node_env: dict[str, str]) -> str:
    """A small image in the node's registry."""
    name: str = podman.image("busybox")
    return name


def framework(image: str, script: str, **roles: int) -> Object:
    """A Framework whose tasks run a script."""

    def container(name: str, *argv: str) -> Object:
        return {"name": name, "image": image, "command": ["sh", "-c", *argv]}

    pod = {"spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
        "initContainers": [container("init", "true")], "containers": [container("app", script)],
    }}  # fmt: skip
    task = {"retryPolicy": {"fancyRetryPolicy": False, "maxRetryCount": 0}, "pod": pod}
    return {
        "apiVersion": GROUP, "kind": "Framework", "metadata": {"name": "job"},
        "spec": {
            "executionType": "Start",
            "retryPolicy": {"fancyRetryPolicy": True, "maxRetryCount": 0},
            "taskRoles": [
                {"name": name, "taskNumber": number, "task": task,
                 "frameworkAttemptCompletionPolicy":
                    {"minFailedTaskCount": 1, "minSucceededTaskCount": -1}}
                for name, number in roles.items()
            ],
        },
    }  # fmt: skip


def end(node: Node) -> Object:
    """The status of the Framework once it is over."""

    def look() -> Object | None:
        found = node.api.get(f"{node.frameworks}/job").get("status") or {}
        return found if found.get("state") == "Completed" else None

    return node.wait("the end of the Framework", look)


def tasks(status: Object) -> list[Object]:
    """The tasks of all roles."""
    roles = status["attemptStatus"]["taskRoleStatuses"]
    return [task for role in roles for task in role["taskStatuses"]]


@pytest.mark.usefixtures("controller")
def test_success(node: Node, busybox: str) -> None:
    """Every task has its Pod with its own variables; in the end only the status has where it was."""
    node.apply(framework(busybox, f"{SHOW}; sleep 3", chief=1, worker=2))
    names = ("job-chief-0", "job-worker-0", "job-worker-1")
    node.running(*names)
    pods = node.pods()
    status = end(node)
    assert status["attemptStatus"]["completionStatus"]["code"] == 0
    assert node.wait("the Pods to go", lambda: node.pods() == {})
    for task in tasks(status):
        attempt = task["attemptStatus"]
        pod = pods[attempt["podName"]]
        assert attempt["podUID"] == pod["metadata"]["uid"]
        assert attempt["podHostIP"] == pod["status"]["hostIP"]
        assert attempt["completionStatus"]["code"] == 0
        assert task["state"] == "Completed"
    init, app = tasks(status)[2]["attemptStatus"]["completionStatus"]["pod"]["containers"]
    assert (init["name"], init["code"], init["reason"]) == ("init", 0, "Completed")
    words = app["message"].split()
    pod = pods["job-worker-1"]
    assert "FC_TASK_INDEX=1" in words
    assert f"FC_POD_UID={pod['metadata']['uid']}" in words
    assert f"FC_TASK_ATTEMPT_INSTANCE_UID=0_{pod['metadata']['uid']}" in words
    assert pod["metadata"]["labels"]["FC_TASKROLE_NAME"] == "worker"
    assert pod["metadata"]["annotations"]["FC_FRAMEWORK_ATTEMPT_ID"] == "0"


@pytest.mark.usefixtures("controller")
def test_failure_and_retry(node: Node, busybox: str) -> None:
    """A failed attempt is followed by another while there are any; the last words are its own."""
    made = framework(busybox, 'echo "attempt $FC_FRAMEWORK_ATTEMPT_ID"; exit 3', worker=1)
    made["spec"]["retryPolicy"]["maxRetryCount"] = 1
    node.apply(made)
    status = end(node)
    assert status["attemptStatus"]["id"] == 1
    (task,) = tasks(status)
    done = task["attemptStatus"]["completionStatus"]
    assert done["code"] == 3
    assert done["phrase"] == "ContainerUnrecognizedFailed"
    matched = json.loads(done["diagnostics"].removeprefix("Pod failed: PodPattern unmatched: "))
    assert matched["containers"] == done["pod"]["containers"]
    container = matched["containers"][1]
    assert (container["name"], container["message"]) == ("app", "attempt 1\n")
    end_of_job = status["attemptStatus"]["completionStatus"]
    assert (end_of_job["code"], end_of_job["trigger"]["taskRoleName"]) == (3, "worker")


@pytest.mark.usefixtures("controller")
def test_retry_of_a_task(node: Node, busybox: str) -> None:
    """A task with retries of its own gets a new Pod of the same name, in the same attempt."""
    made = framework(busybox, 'test "$FC_TASK_ATTEMPT_ID" = 1', worker=1)
    made["spec"]["taskRoles"][0]["task"]["retryPolicy"]["maxRetryCount"] = 1
    node.apply(made)
    status = end(node)
    assert status["attemptStatus"]["id"] == 0
    (task,) = tasks(status)
    assert task["attemptStatus"]["id"] == 1
    assert task["attemptStatus"]["completionStatus"]["code"] == 0


@pytest.mark.usefixtures("controller")
def test_stop(node: Node, busybox: str) -> None:
    """`executionType: Stop` stops what runs; the status has the stop, and no exit code of the command."""
    node.apply(
        framework(busybox, "trap 'exit 7' TERM; echo on; while :; do sleep 0.1; done", worker=1)
    )
    node.wait("the command", lambda: "on" in _log(node))
    node.api.merge(f"{node.frameworks}/job", {"spec": {"executionType": "Stop"}})
    status = end(node)
    (task,) = tasks(status)
    assert task["attemptStatus"]["completionStatus"]["code"] == -220
    assert status["attemptStatus"]["completionStatus"]["code"] == -210


def _log(node: Node) -> str:
    pod = node.pods().get("job-worker-0", {"status": {}})
    return (
        node.kubectl("logs", "job-worker-0", "-c", "app")
        if pod["status"].get("phase") == "Running"
        else ""
    )


@pytest.mark.parametrize("compress_from", [COMPRESS_FROM, 1], ids=["plain", "compressed"])
def test_a_controller_that_is_restarted_changes_nothing(
    node: Node, pairun: Run, busybox: str, compress_from: int
) -> None:
    """The next one goes on with the same attempt and the same Pod; meanwhile `status` is the same."""
    with FrameworkController(node.api, node.namespace, compress_from=compress_from):
        node.apply(framework(busybox, "sleep 8; exit 3", worker=1))
        node.running("job-worker-0")
        uid = node.pods()["job-worker-0"]["metadata"]["uid"]
    assert "is running" in pairun("status", "job")
    with FrameworkController(node.api, node.namespace, compress_from=compress_from):
        status = end(node)
    (task,) = [t for role in task_statuses({"status": status}) for t in role["taskStatuses"]]
    assert (status["attemptStatus"]["id"], task["attemptStatus"]["id"]) == (0, 0)
    assert task["attemptStatus"]["podUID"] == uid
    assert "is failed: worker-0: the command ended with 3" in pairun("status", "job")


def test_compressed(node: Node, busybox: str) -> None:
    """Large statuses are stored as the original stores them: gzip, base64, and no list."""
    with FrameworkController(node.api, node.namespace, compress_from=1):
        node.apply(framework(busybox, "true", worker=1))
        attempt = end(node)["attemptStatus"]
    assert attempt["taskRoleStatuses"] is None
    (role,) = json.loads(gzip.decompress(base64.b64decode(attempt["taskRoleStatusesCompressed"])))
    assert role["taskStatuses"][0]["attemptStatus"]["completionStatus"]["code"] == 0
