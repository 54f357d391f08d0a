"""Queues and groups of Pods: what Kueue, Volcano, YuniKorn and scheduler-plugins read."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.engines.manifest.choices import ENGINES, Engine
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError
from tests.engines.manifest.test_podvalues import pods_in
from tests.engines.test_manifest import ONE, TEXT, job_of, options

KUEUE = "kueue.x-k8s.io/queue-name"


def made(text: str, engine: Engine, pod: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a job with some settings."""
    job = job_of(text)
    return make_objects(job, options(job, engine, pod))


@pytest.mark.parametrize("engine", ["job", "jobset"])
def test_a_job_for_kueue_starts_suspended(engine: Engine) -> None:
    """Kueue resumes what bears its label; the Pods bear none, so it counts them once."""
    workload = made(ONE, engine, {"queue": "research"})[-1]
    assert workload["metadata"]["labels"][KUEUE] == "research"
    assert workload["spec"]["suspend"] is True
    for pod in pods_in(workload):
        assert KUEUE not in pod["metadata"]["labels"]


def test_plain_pods_for_kueue_are_a_group() -> None:
    """Kueue admits them together (https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/)."""
    pods = [o for o in made(TEXT, "pod", {"queue": "research"}) if o["kind"] == "Pod"]
    for pod in pods:
        assert pod["metadata"]["labels"][KUEUE] == "research"
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "train"
        annotations = pod["metadata"]["annotations"]
        assert annotations["kueue.x-k8s.io/pod-group-total-count"] == str(len(pods))
    [alone] = [o for o in made(ONE, "pod", {"queue": "research"}) if o["kind"] == "Pod"]
    assert "kueue.x-k8s.io/pod-group-name" not in alone["metadata"]["labels"]


def test_a_queue_that_is_no_label() -> None:
    """Kueue's label takes no such name."""
    with pytest.raises(PairunError, match="cannot be a label"):
        made(ONE, "job", {"queue": "a/b"})


@pytest.mark.parametrize(
    ("system", "annotations", "scheduler"),
    [
        ("volcano", {"scheduling.volcano.sh/queue-name": "root.a"}, "volcano"),
        (
            "yunikorn",
            {"yunikorn.apache.org/queue": "root.a", "yunikorn.apache.org/app-id": "one"},
            "yunikorn",
        ),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_queue_of_a_scheduler(
    system: str, annotations: dict[str, str], scheduler: str, engine: Engine
) -> None:
    """Every Pod says it, and nothing is suspended: the scheduler itself lets Pods wait."""
    workload = made(ONE, engine, {"queue": "root.a", "queue_system": system})[-1]
    [pod] = pods_in(workload)
    if engine == "framework":
        annotations = {
            k: v if v != "one" else workload["metadata"]["name"] for k, v in annotations.items()
        }
    assert annotations.items() <= pod["metadata"]["annotations"].items()
    assert pod["spec"]["schedulerName"] == scheduler
    assert "suspend" not in workload["spec"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("group", "version", "mark", "key", "scheduler"),
    [
        (
            {"system": "volcano"}, "scheduling.volcano.sh/v1beta1",
            "annotations", "scheduling.k8s.io/group-name", "volcano",
        ),
        (
            {"system": "scheduler-plugins"}, "scheduling.x-k8s.io/v1alpha1",
            "labels", "scheduling.x-k8s.io/pod-group", "scheduler-plugins-scheduler",
        ),
    ],
)  # fmt: skip
def test_a_group_of_pods(
    group: dict[str, Any], version: str, mark: str, key: str, scheduler: str, engine: Engine
) -> None:
    objects = made(ONE, engine, {"pod_group": group, "spec": {"priorityClassName": "high"}})
    [made_group] = [o for o in objects if o["kind"] == "PodGroup"]
    assert made_group["apiVersion"] == version
    assert made_group["spec"] == {"minMember": 1}
    assert objects.index(made_group) < len(objects) - 1
    [pod] = pods_in(objects[-1])
    assert pod["metadata"][mark][key] == made_group["metadata"]["name"]
    assert pod["spec"]["schedulerName"] == scheduler


def test_the_size_of_a_group_and_its_queue() -> None:
    """All instances by default; Volcano's queue is the group's."""
    pod = {"pod_group": {"system": "volcano"}, "queue": "a", "queue_system": "volcano"}
    [group] = [o for o in made(TEXT, "jobset", pod) if o["kind"] == "PodGroup"]
    assert group["spec"] == {"minMember": 4, "queue": "a"}
    pod["pod_group"]["min_member"] = 2  # type: ignore[index]
    pod["spec"] = {"schedulerName": "mine"}
    *_, group, workload = made(TEXT, "jobset", pod)
    assert [p["spec"]["schedulerName"] for p in pods_in(workload)] == ["mine", "mine"]
