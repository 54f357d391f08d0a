"""Workloads that know nothing of pairun, injected and run on a node."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.api import Object
from tests.node.conftest import Ended, Node

GANG = 3
START = """\
echo "started $(date +%s%N)" >> /data/started
test ! -e /var/run/secrets/kubernetes.io
exit 0
"""
FAIL = 'if [ "$(hostname | tail -c 2)" = 1 ]; then echo "ModuleNotFoundError: No module named apex" >&2; exit 9; fi'


def pod_template(image: str, node: Node, script: str = START) -> Object:
    """A Pod template as a user writes it: one container, with the test's folder at /data."""
    return {
        "metadata": {"labels": {"app": "train"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "pytorch",
                    "image": image,
                    "command": ["bash", "-c", script],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [{"name": "data", "hostPath": {"path": str(node.data)}}],
        },
    }


def control(node: Node, workload: Object) -> list[str]:
    """Make the Pods that the workload's controller makes; returns their names."""
    made: list[str] = []
    for name, labels, notes, template in pods_of(workload):
        own = template.get("metadata", {}).get("labels", {})
        node.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {**own, **labels}, "annotations": notes},
                "spec": template["spec"],
            }
        )
        made.append(name)
    return made


def pods_of(workload: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    """Name, labels, annotations and template of each Pod, as the kind's controller makes them."""
    is_volcano = workload["apiVersion"].startswith("batch.volcano.sh/")
    pods = _of_volcano_job if is_volcano else _CONTROLLERS[workload["kind"]]
    yield from pods(workload["metadata"]["name"], workload["spec"])


def _of_job(name: str, spec: Object, **more: str) -> Iterator[tuple[str, Object, Object, Object]]:
    for index in range(spec["parallelism"]):
        # Kubernetes has the index as both since 1.28.
        annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
        labels = {"job-name": name, "batch.kubernetes.io/job-name": name, **annotations, **more}
        yield f"{name}-{index}", labels, annotations, copy.deepcopy(spec["template"])


def _of_job_set(name: str, spec: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    prefix = "jobset.sigs.k8s.io"
    for job in spec["replicatedJobs"]:
        for number in range(job["replicas"]):
            labels = {
                f"{prefix}/jobset-name": name, f"{prefix}/replicatedjob-name": job["name"],
                f"{prefix}/job-index": str(number), f"{prefix}/restart-attempt": "0",
            }  # fmt: skip
            yield from _of_job(f"{name}-{job['name']}-{number}", job["template"]["spec"], **labels)


def _of_training_job(name: str, spec: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    prefix = "training.kubeflow.org"
    for kind, replica in (spec.get("pytorchReplicaSpecs") or spec["mpiReplicaSpecs"]).items():
        for index in range(replica["replicas"]):
            labels = {
                f"{prefix}/job-name": name, f"{prefix}/replica-type": kind.lower(),
                f"{prefix}/replica-index": str(index), f"{prefix}/job-role": kind.lower(),
            }  # fmt: skip
            yield f"{name}-{kind.lower()}-{index}", labels, {}, copy.deepcopy(replica["template"])


def _of_volcano_job(name: str, spec: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    for task in spec["tasks"]:
        for index in range(task["replicas"]):
            labels = {
                "volcano.sh/job-name": name, "volcano.sh/task-spec": task["name"],
                "volcano.sh/job-version": "0",
            }  # fmt: skip
            yield f"{name}-{task['name']}-{index}", labels, {}, copy.deepcopy(task["template"])


def _of_leader_worker_set(name: str, spec: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    prefix, template = "leaderworkerset.sigs.k8s.io", spec["leaderWorkerTemplate"]
    for group in range(spec["replicas"]):
        for index in range(template["size"]):
            labels = {
                f"{prefix}/name": name, f"{prefix}/group-key": f"key-{group}",
                f"{prefix}/worker-index": str(index), f"{prefix}/template-revision-hash": "a",
            }  # fmt: skip
            own = f"{name}-{group}-{index}" if index else f"{name}-{group}"
            yield own, labels, {}, copy.deepcopy(template["workerTemplate"])


_CONTROLLERS = {
    "Job": _of_job, "JobSet": _of_job_set, "PyTorchJob": _of_training_job,
    "MPIJob": _of_training_job,
    "LeaderWorkerSet": _of_leader_worker_set,
}  # fmt: skip


def together(node: Node, ended: list[Ended], gang: int) -> None:
    """Every Pod waited for the whole gang, and started after the last one had an address."""
    for each in ended:
        assert each.code("pairun-init") == 0, each.story
        said = each.said["pairun-init"]
        met = (
            f"{gang} of {gang} instances have addresses",
            f"all {gang} instances have found each other",
        )
        assert any(line in said for line in met), each.story
    begins = [each.state("pairun-init")["startedAt"] for each in ended]
    starts = [each.state("pytorch")["startedAt"] for each in ended]
    assert min(starts) >= max(begins)
    assert len((node.data / "started").read_text().splitlines()) == gang


def test_a_pod(node: Node, injected: Any, debian: str) -> None:
    """A Pod ends with its command's own code, and its termination message says why."""
    trouble = 'echo "ModuleNotFoundError: No module named apex" >&2; exit 9'
    template = pod_template(debian, node, trouble)
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"]["name"] = "alone"
    made, *beside = injected(pod, "--events")
    # Kubernetes refuses a Pod whose account does not exist yet.
    node.apply(*beside)
    node.apply(made)
    ended = node.ended("alone")
    assert ended.code("pytorch") == 9, ended.story
    assert "apex" in ended.state("pytorch")["message"]
    (event,) = (
        e for e in node.api.get(f"{node.core}/events")["items"] if e["reason"] == "CommandFailed"
    )
    assert event["involvedObject"]["uid"] == ended.pod["metadata"]["uid"]
    assert "the Python package apex is missing" in event["message"]


def test_a_job(node: Node, injected: Any, debian: str) -> None:
    """A Job completes as before."""
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"backoffLimit": 0, "template": pod_template(debian, node)},
    }  # fmt: skip
    node.apply(*injected(job))
    path = f"/apis/batch/v1/namespaces/{node.namespace}/jobs/train"
    status = node.wait("the Job", lambda: node.api.get(path).get("status", {}).get("conditions"))
    assert status[0]["type"] == "Complete", node.story()


def test_a_stateful_set(node: Node, injected: Any, debian: str) -> None:
    """The Pods of a StatefulSet start together; the key and the account are made beside it."""
    template = pod_template(debian, node, "sleep 600")
    del template["spec"]["restartPolicy"]
    node.apply(*injected(workload_of("StatefulSet", template), "--barrier"))
    node.running(*(f"train-{n}" for n in range(GANG)))
    for n in range(GANG):
        said = node.kubectl("logs", f"train-{n}", "-c", "pairun-init")
        assert "all 3 instances have found each other" in said, said


def test_a_job_set(node: Node, injected: Any, debian: str) -> None:
    """The Pods of a JobSet's two Jobs start together."""
    jobs = [
        {"name": name, "replicas": 1, "template": {"spec": {"parallelism": n, "template": pod_template(debian, node)}}}
        for name, n in (("leader", 1), ("work-er", 2))
    ]  # fmt: skip
    workload = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"},
        "spec": {"replicatedJobs": jobs},
    }  # fmt: skip
    made, *beside = injected(workload, "--barrier")
    node.apply(*beside)
    names = control(node, made)
    together(node, [node.ended(name) for name in names], GANG)


def test_a_pytorch_job(node: Node, injected: Any, debian: str) -> None:
    """A gang of three starts together, without a key too; the one that dies says why."""
    failing = START.replace("exit 0", f"{FAIL}\nexit 0")
    specs = {
        kind: {"replicas": n, "restartPolicy": "Never", "template": pod_template(debian, node, text)}
        for kind, n, text in (("Master", 1, START), ("Worker", 2, failing))
    }  # fmt: skip
    workload = {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "pt"},
        "spec": {"pytorchReplicaSpecs": specs},
    }  # fmt: skip
    made, *beside = injected(workload, "--barrier", "--use", "Secret/none")
    node.apply(*beside)
    names = control(node, made)
    ended = {name: node.ended(name) for name in names}
    together(node, list(ended.values()), GANG)
    died = ended["pt-worker-1"]
    assert died.code("pytorch") == 9, died.story
    assert "apex" in died.state("pytorch")["message"]


RANKS = """\
echo "$PAIRUN_RESTARTS rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"
echo "rank $RANK of $WORLD_SIZE at $MASTER_ADDR restart ${PAIRUN_RESTARTS:-0}" >> /data/ranks
"""
FAIL_ONCE = f"""{RANKS}
if [ -z "$PAIRUN_RESTARTS" ]; then sleep $((1 + RANK)); exit 3; fi
exit 0
"""


def ranks(node: Node, leader: Ended, size: int, restart: int) -> None:
    """Every Pod had its own rank at this restart, and the leader's address."""
    ip = leader.pod["status"]["podIP"]
    expected = {f"rank {n} of {size} at {ip} restart {restart}" for n in range(size)}
    assert expected <= set((node.data / "ranks").read_text().splitlines())


def workload_of(kind: str, template: Object) -> Object:
    """A gang of three of a kind, whose Pods all have this template."""
    one, two = copy.deepcopy(template), copy.deepcopy(template)
    roles: dict[str, tuple[str, Object]] = {
        "Job": ("batch/v1", {"parallelism": GANG, "completions": GANG, "template": template,
                             "completionMode": "Indexed"}),
        "JobSet": ("jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [
            {"name": "work", "replicas": 1,
             "template": {"spec": {"parallelism": GANG, "template": template}}}]}),
        "MPIJob": ("kubeflow.org/v2beta1", {"mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": one}, "Worker": {"replicas": 2, "template": two}}}),
        "VolcanoJob": ("batch.volcano.sh/v1alpha1", {"tasks": [
            {"name": "ps", "replicas": 1, "template": one},
            {"name": "worker", "replicas": 2, "template": two}]}),
        "StatefulSet": ("apps/v1", {
            "replicas": GANG, "podManagementPolicy": "Parallel", "serviceName": "train",
            "selector": {"matchLabels": {"app": "train"}}, "template": template}),
        "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", {
            "replicas": 1, "leaderWorkerTemplate": {"size": GANG, "workerTemplate": template}}),
    }  # fmt: skip
    version, spec = roles[kind]
    kind = kind.removeprefix("Volcano")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "train"}, "spec": spec}


@pytest.mark.parametrize("kind", [pytest.param("Job", marks=pytest.mark.nightly), "JobSet"])
def test_a_gang_that_restarts_in_place(node: Node, injected: Any, debian: str, kind: str) -> None:
    """Each container that fails meets the others again in its Pod, with the same rank."""
    template = pod_template(debian, node, FAIL_ONCE)
    template["spec"]["restartPolicy"] = "OnFailure"
    made, *beside = injected(workload_of(kind, template), "--barrier", "--env", "torchrun")
    node.apply(*beside)
    names = control(node, made)
    ended = [node.ended(name) for name in names]
    for each in ended:
        (status,) = each.pod["status"]["containerStatuses"]
        assert (each.code("pytorch"), status["restartCount"]) == (0, 1), each.story
        assert "all 3 instances run" in each.said["pytorch"], each.story
    ranks(node, ended[0], GANG, restart=0)
    ranks(node, ended[0], GANG, restart=1)


@pytest.mark.parametrize("kind", ["MPIJob", "VolcanoJob"])
def test_the_variables_of_a_gang(node: Node, injected: Any, debian: str, kind: str) -> None:
    """The Pods that other controllers make have their ranks and the leader's address."""
    template = pod_template(debian, node, RANKS)
    made, *beside = injected(workload_of(kind, template), "--barrier", "--env", "torchrun")
    node.apply(*beside)
    ended = [node.ended(name) for name in control(node, made)]
    for each in ended:
        assert each.code("pytorch") == 0, each.story
    ranks(node, ended[0], GANG, restart=0)


SSH = """\
set -e
if [ "$RANK" = 0 ]; then
  for n in 1 2; do  # a kubelet may start the worker's container later than this one
    until ssh worker-$n 'echo "$(hostname) was reached" >> /data/reached'; do sleep 0.2; done
  done
  touch /data/over
fi
while [ ! -e /data/over ]; do sleep 0.2; done
"""


def test_ssh_between_the_pods_of_a_group(node: Node, injected: Any, debian: str) -> None:
    """The leader of a LeaderWorkerSet reaches its workers by their names."""
    template = pod_template(debian, node, SSH)
    workload = workload_of("LeaderWorkerSet", template)
    made, *beside = injected(workload, "--barrier", "--env", "ssh", "--env", "torchrun")
    node.apply(*beside)
    for each in [node.ended(name) for name in control(node, made)]:
        assert each.code("pytorch") == 0, each.story
    reached = (node.data / "reached").read_text().splitlines()
    assert reached == ["train-0-1 was reached", "train-0-2 was reached"]
