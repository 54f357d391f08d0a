"""Statuses that a real FrameworkController wrote: what pairun reads in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pairun.engines.kubernetes.jobobjects import JobObjects
from pairun.engines.kubernetes.jobstate import JobState, state_of
from pairun.kube.frameworkpods import framework_instances, log_folder
from pairun.kube.podstates import PodState, read_pod
from pairun.kube.workloads import KINDS

OBSERVED = Path(__file__).parent / "observed"
BOOM = (
    "worker-0: the command ended with 7: the job's own code failed: RuntimeError: boom "
    "(user_code_error): RuntimeError: boom"
)
NO_IMAGE = (
    "worker-0: init ended with 254 (the image does not exist, or the registry refuses this job): "
    "image_check: there is no image 127.0.0.1:5000/lab/nothere:7 [permanent; fault: user]"
)


def observed(name: str) -> dict[str, Any]:
    """An object that a real controller wrote."""
    found: dict[str, Any] = json.loads((OBSERVED / f"{name}.fw.json").read_text())
    return found


def state(framework: dict[str, Any], *pods: PodState) -> JobState:
    """The state of the job."""
    job = JobObjects(framework["metadata"]["name"], KINDS[0], framework)
    return state_of(job, "default", job.instances(pods))


@pytest.mark.parametrize(
    ("name", "word", "code", "because"),
    [
        ("fok", "succeeded", 0, ""),
        ("ffail", "failed", 7, BOOM),
        ("fcount", "failed", 5, "worker-0: the command ended with 5"),
        ("fperm", "failed", 139, "worker-0: the command ended with 139 (ended by SIGSEGV): "),
        ("ftask", "failed", 9, "worker-1: the command ended with 9: 00:53:29"),
        ("fretry2", "succeeded", 0, ""),
        ("ftrans", "succeeded", 0, ""),
        ("fgang", "succeeded", 0, ""),
        ("fminfail", "failed", 12, "worker-1: the command ended with 12"),
        ("fminsucc", "succeeded", 0, ""),
        ("fimg", "failed", 254, NO_IMAGE),
        ("big", "waiting", None, "AttemptPreparing"),
    ],
)
def test_a_framework_whose_pods_are_deleted(
    name: str, word: str, code: int | None, because: str
) -> None:
    """State, exit code and reason come from the status, and no JSON is in the reason."""
    now = state(observed(name))
    assert (now.state, now.exit_code) == (word, code)
    assert now.because.startswith(because)
    assert bool(now.because) == bool(because)
    assert "{" not in now.because


@pytest.mark.parametrize(
    ("name", "instances"),
    [
        ("fgang", [("worker-0", "succeeded", 0), ("worker-1", "succeeded", 0),
                   ("worker-2", "succeeded", 0)]),
        ("fminfail", [("worker-0", "failed", 11), ("worker-1", "failed", 12),
                      ("worker-2", "stopped", None)]),
        ("fminsucc", [("worker-0", "stopped", None), ("worker-1", "succeeded", 0),
                      ("worker-2", "stopped", None)]),
        ("ftask", [("worker-0", "succeeded", 0), ("worker-1", "failed", 9)]),
        ("fimg", [("worker-0", "failed", 254)]),
    ],
)  # fmt: skip
def test_the_instances_of_a_framework(
    name: str, instances: list[tuple[str, str, int | None]]
) -> None:
    """Each task is named with its end; what the job's end stopped is no failure."""
    found = state(observed(name)).instances
    assert [(i.label, i.phase, i.exit_code) for i in found] == instances
    assert all(i.gone and i.pod and i.node == "lab-node" for i in found if i.phase != "stopped")


def test_a_task_that_the_jobs_end_stopped_says_so() -> None:
    """In the controller's words."""
    reason = state(observed("fminfail")).instances[2].reason
    assert reason == "FrameworkAttemptCompletion: Stop to complete current FrameworkAttempt"


def test_the_diagnosis_of_an_instance_without_a_pod() -> None:
    """Comes whole from the message in the status, for programs."""
    (only,) = state(observed("ffail")).instances
    assert only.diagnosis["class"] == "user_code_error"
    assert only.diagnosis["fault"] == "user"


@pytest.mark.parametrize(
    ("name", "restarts"), [("fcount", [2]), ("ftask", [0, 2]), ("ftrans", [1]), ("fok", [0])]
)
def test_retries_of_job_and_task_are_restarts(name: str, restarts: list[int]) -> None:
    """Whether the controller counted them or not."""
    assert [i.restarts for i in state(observed(name)).instances] == restarts


def pod(uid: str, **status: Any) -> PodState:
    """A Pod of worker-0 that the API server has."""
    labels = {"FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0"}
    meta = {"name": "p", "uid": uid, "labels": labels, "creationTimestamp": "2026-11-22T00:00:00Z"}
    return read_pod({"metadata": meta, "status": status})


def test_a_task_that_runs_is_read_from_its_pod() -> None:
    """A compressed status names the Pod; a Pod of an earlier attempt is not shown."""
    framework = observed("big")
    assert state(framework).total == 0  # the fixture has no specification
    running = pod("new", phase="Running", containerStatuses=[{"state": {"running": {}}}])
    (only,) = framework_instances({"metadata": {}}, [running])
    assert (only.phase, only.gone) == ("running", False)
    ended = framework_instances(observed("ftask"), [pod("of an earlier attempt", phase="Failed")])
    assert [(i.label, i.phase) for i in ended] == [
        ("worker-0", "succeeded"),
        ("worker-1", "failed"),
    ]


def test_a_status_that_cannot_be_read_leaves_the_pods() -> None:
    """A broken status is no reason to show nothing."""
    framework = {"status": {"attemptStatus": {"taskRoleStatusesCompressed": "H4sI"}}}
    assert [i.uid for i in framework_instances(framework, [pod("a", phase="Pending")])] == ["a"]


def test_where_the_log_of_a_deleted_pod_is() -> None:
    """In the folder of the node that the Framework mounts for logs, where it mounts one."""
    framework = observed("fok")
    (only,) = framework_instances(framework, ())
    assert log_folder(framework, only) == ""
    mount = {"name": "host-log", "subPath": "user/fok/worker", "mountPath": "/usr/local/pai/logs"}
    spec = {
        "volumes": [{"name": "host-log", "hostPath": {"path": "/var/log/pai"}}],
        "containers": [{"name": "app", "volumeMounts": [mount]}],
    }
    framework["spec"] = {"taskRoles": [{"name": "worker", "task": {"pod": {"spec": spec}}}]}
    assert log_folder(framework, only) == f"/var/log/pai/user/fok/worker/{only.uid}"
