"""What Pods say: phase, reason, identity."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.engines.kubernetes.jobstate import state_of
from pairun.kube.podstates import newest, read_pod
from tests.engines.kubernetes.samples import (
    DIAGNOSED,
    EVICTED,
    EVICTION,
    INIT_LOG,
    INIT_WORDS,
    PLACED,
    SAID,
    UNCLEAR,
    UNPLACED,
    ended,
    instances,
    objects,
    pod,
    runs,
    waits,
)

NEVER = (
    "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
"""As Kubernetes 1.32 was observed to say it."""


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ({}, "pending", ""),
        ({"phase": "Pending"}, "pending", ""),
        ({"phase": "Pending", "conditions": UNPLACED}, "unschedulable",
         "0/3 nodes are available: 3 cpu."),
        ({"phase": "Pending", "conditions": [{**UNPLACED[0], "message": NEVER}]}, "stuck", NEVER),
        ({"phase": "Pending", "conditions": PLACED,
          "initContainerStatuses": [waits("init", "PodInitializing")]}, "starting", ""),
        ({"phase": "Pending", "conditions": PLACED,
          "initContainerStatuses": [waits("init", "ImagePullBackOff", "no such image")]}, "stuck",
         "ImagePullBackOff: no such image"),
        ({"phase": "Pending", "conditions": PLACED, "initContainerStatuses": [runs("init")]},
         "init", ""),
        ({"phase": "Pending", "conditions": PLACED, "initContainerStatuses": [
            {**waits("init", "CrashLoopBackOff"), "lastState": {"terminated": {"exitCode": 252}}}]},
         "stuck", "CrashLoopBackOff: init ended with 252 (the barrier cannot pass)"),
        ({"phase": "Running", "conditions": PLACED, "initContainerStatuses": [ended("init", 0)],
          "containerStatuses": [runs("sidecar"), runs("app")]}, "running", ""),
        ({"phase": "Succeeded", "containerStatuses": [ended("app", 0)]}, "succeeded", ""),
        ({"phase": "Failed", "initContainerStatuses": [ended("init", 251)],
          "containerStatuses": [waits("app", "PodInitializing")]}, "failed",
         "init ended with 251 (the gang was not complete in time)"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=SAID)]}, "failed",
         "the command ended with 3: CUDA out of memory"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=DIAGNOSED)]}, "failed",
         "the command ended with 3: the GPU's memory is full (gpu_oom): CUDA out of memory"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=UNCLEAR)]}, "failed",
         "the command ended with 3: bye"),
        ({"phase": "Failed", "initContainerStatuses": [ended("init", 254, message=INIT_LOG)]},
         "failed", INIT_WORDS),
        ({"phase": "Failed", "containerStatuses": [ended("app", 137, reason="OOMKilled")]},
         "failed", "the command ended with 137 (out of memory)"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 143)]}, "failed",
         "the command ended with 143 (ended by SIGTERM)"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on disk\x1b[31m"}, "failed",
         "evicted (low on disk\N{REPLACEMENT CHARACTER}[31m)"),
        ({"phase": "Running", "conditions": [*PLACED, EVICTED],
          "containerStatuses": [runs("app")]}, "failed", EVICTION),
        ({"phase": "Failed", "conditions": [EVICTED], "containerStatuses": [ended("app", 143)]},
         "failed", EVICTION),
        ({"phase": "Succeeded", "conditions": [EVICTED], "containerStatuses": [ended("app", 0)]},
         "failed", EVICTION),
        ({"phase": "Unknown"}, "lost", "its node does not answer"),
    ],
)  # fmt: skip
def test_what_a_pod_says(status: dict[str, Any], phase: str, reason: str) -> None:
    """Phase and reason in words, whatever the Pod waits for or fell by."""
    found = read_pod(pod(**status))
    assert (found.phase, found.reason) == (phase, reason)


@pytest.mark.parametrize(
    ("labels", "annotations", "label"),
    [
        ({"pairun/role": "ps", "pairun/index": "3"}, {}, "ps-3"),
        ({"FC_TASKROLE_NAME": "ps"}, {"FC_TASK_INDEX": "7"}, "ps-7"),
        ({"pairun/role": "ps"}, {"batch.kubernetes.io/job-completion-index": "2"}, "ps-2"),
        ({}, {"FC_TASK_INDEX": "x"}, "pod-0"),
    ],
)
def test_which_instance_a_pod_is(
    labels: dict[str, str], annotations: dict[str, str], label: str
) -> None:
    """Role and number, by our labels, FrameworkController's, or an Indexed Job's."""
    meta = {"name": "p", "uid": "u", "labels": labels, "annotations": annotations}
    assert read_pod({"metadata": meta}).label == label


def test_the_newest_pod_counts_those_before_it() -> None:
    """Of two Pods of one instance the later one is shown, with a restart more."""
    old, new = pod(phase="Failed"), pod(phase="Running", containerStatuses=[runs("app")])
    new["metadata"] |= {"uid": "later", "creationTimestamp": "2024-01-01T00:01:00Z"}
    (found,) = newest(map(read_pod, (new, old)))
    assert (found.uid, found.restarts) == ("later", 2)


def test_a_pod_that_was_deleted_says_so() -> None:
    """Also where its kubelet never told how the containers ended; init is not blamed for it."""
    gone = pod(phase="Failed", initContainerStatuses=[ended("init", 0)])
    gone["metadata"]["deletionTimestamp"] = "2024-01-01T00:01:00Z"
    assert read_pod(gone).reason == "its Pod was deleted"
    assert state_of(objects("pod"), "d", instances(gone)).because == "worker-0 ended with 1"


def test_an_evicted_pod_that_its_controller_counts_as_a_success_stays_one() -> None:
    """The Job's own status decides; a contradiction would help nobody."""
    saved = pod(phase="Succeeded", conditions=[EVICTED], containerStatuses=[ended("app", 0)])
    saved["metadata"]["ownerReferences"] = [{"kind": "Job"}]
    assert read_pod(saved).phase == "succeeded"
