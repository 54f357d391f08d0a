"""Workloads that know nothing of pairun, injected and run on a node."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.node.api import Object
from tests.node.conftest import Ended, Node
from tests.podman import ROOT

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


@pytest.fixture
def injected(runtime_image: str) -> Any:
    """What `pairun inject` makes of a workload."""

    def made(workload: Object, *options: str) -> list[Object]:
        argv = [sys.executable, "-m", "pairun", "inject", "--image", runtime_image, *options]
        done = subprocess.run(
            argv, cwd=ROOT, input=yaml.safe_dump(workload), capture_output=True, text=True, timeout=90
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return list(yaml.safe_load_all(done.stdout))

    return made


def control(node: Node, workload: Object) -> list[str]:
    """Make the Pods that a JobSet's or a PyTorchJob's controller makes; returns their names."""
    made: list[str] = []
    for name, labels, notes, template in _pods_of(workload):
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


def _pods_of(workload: Object) -> Iterator[tuple[str, Object, Object, Object]]:
    name, spec = workload["metadata"]["name"], workload["spec"]
    for job in spec.get("replicatedJobs", ()):
        for number in range(job["replicas"]):
            for index in range(job["template"]["spec"]["parallelism"]):
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": name,
                    "jobset.sigs.k8s.io/replicatedjob-name": job["name"],
                    "jobset.sigs.k8s.io/job-index": str(number),
                    "jobset.sigs.k8s.io/restart-attempt": "0",
                }
                # Kubernetes has it as both since 1.28.
                annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
                labels |= annotations
                template = copy.deepcopy(job["template"]["spec"]["template"])
                yield f"{name}-{job['name']}-{number}-{index}", labels, annotations, template
    for kind, replica in spec.get("pytorchReplicaSpecs", {}).items():
        for index in range(replica["replicas"]):
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/replica-type": kind.lower(),
                "training.kubeflow.org/replica-index": str(index),
            }
            yield f"{name}-{kind.lower()}-{index}", labels, {}, copy.deepcopy(replica["template"])


def together(node: Node, ended: list[Ended], gang: int) -> None:
    """Every Pod waited for the whole gang, and started after the last one had an address."""
    for each in ended:
        assert each.code("pairun-init") == 0, each.story
        said = each.said["pairun-init"]
        met = (f"{gang} of {gang} tasks have addresses", f"all {gang} tasks have found each other")
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
    node.apply(*injected(pod))
    ended = node.ended("alone")
    assert ended.code("pytorch") == 9, ended.story
    assert "apex" in ended.state("pytorch")["message"]


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
    workload = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": GANG, "podManagementPolicy": "Parallel", "serviceName": "web",
            "selector": {"matchLabels": {"app": "train"}}, "template": template,
        },
    }  # fmt: skip
    node.apply(*injected(workload, "--barrier"))
    node.running(*(f"web-{n}" for n in range(GANG)))
    for n in range(GANG):
        said = node.kubectl("logs", f"web-{n}", "-c", "pairun-init")
        assert "all 3 tasks have found each other" in said, said


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
    made, *beside = injected(workload, "--barrier", "--key-secret", "none")
    node.apply(*beside)
    names = control(node, made)
    ended = {name: node.ended(name) for name in names}
    together(node, list(ended.values()), GANG)
    died = ended["pt-worker-1"]
    assert died.code("pytorch") == 9, died.story
    assert "apex" in died.state("pytorch")["message"]
