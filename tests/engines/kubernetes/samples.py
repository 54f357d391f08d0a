"""Pods, workloads and kubeconfigs, for the tests of this room."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import JobObjects
from pairun.errors import PairunError
from pairun.kube.podstates import PodState, newest, read_pod
from pairun.kube.workloads import KINDS, POD
from pairun.runtime.termination import Summary, message
from pairun.volume.logjournal import PREFIX
from tests.fakeapi import Fake, Handler

TOKEN = "eyJhbGciOi-very-secret"


def log_journal(records: list[dict[str, Any]]) -> bytes:
    """The line of a log that carries a journal."""
    text = "".join(json.dumps({"schema": 1, **r}) + "\n" for r in records)
    return f"{PREFIX}0 1/1 {base64.b64encode(zlib.compress(text.encode())).decode()}\n".encode()


def ids(e: pytest.ExceptionInfo[PairunError]) -> list[str]:
    """The ids of the problems of an error."""
    return [p.id for p in e.value.problems]


def pod(role: str = "worker", index: int = 0, **status: Any) -> dict[str, Any]:
    """A Pod as the API server has it."""
    return {
        "metadata": {
            "name": f"mnist-{role}-{index}",
            "uid": f"u-{role}-{index}",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "resourceVersion": "5",
            "labels": {"pairun/job": "mnist", "pairun/role": role, "pairun/index": str(index)},
        },
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 40, "restartPolicy": "Never"},
        "status": status,
    }


def ended(name: str, code: int, **more: Any) -> dict[str, Any]:
    """The status of a container that has ended."""
    state = {"exitCode": code, "finishedAt": f"2024-01-01T00:00:{code % 60:02}Z", **more}
    return {"name": name, "restartCount": 0, "state": {"terminated": state}}


def waits(name: str, reason: str, text: str = "") -> dict[str, Any]:
    """The status of a container that waits."""
    return {"name": name, "state": {"waiting": {"reason": reason, "message": text}}}


def runs(name: str) -> dict[str, Any]:
    """The status of a container that runs."""
    return {"name": name, "restartCount": 1, "state": {"running": {}}}


PLACED = [{"type": "PodScheduled", "status": "True"}]


UNPLACED = [
    {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 cpu."}
]


EVICTED = {
    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting", "lastTransitionTime": "2024-01-01T00:00:30Z",
}  # fmt: skip


EVICTION = "evicted (EvictionByEvictionAPI: Eviction API: evicting)"


SAID = message(Summary(exit_code=3, user_exit_code=3, user_log="a\nCUDA out of memory\n"))


WHY = {
    "class": "gpu_oom", "fault": "user", "retry": "after_fix", "confidence": 0.9,
    "headline": "the GPU's memory is full", "evidence": "CUDA out of memory", "advice": "use less",
}  # fmt: skip


DIAGNOSED = message(Summary(exit_code=3, user_exit_code=3, user_log="a\nbye\n", diagnosis=WHY))


UNCLEAR = DIAGNOSED.replace("gpu_oom", "unknown")


INIT_LOG = """ok       barrier: Every task of the job has an address (106ms)
failed   image_check: The image exists and this job may pull it (54.4ms)
         there is no image a/b:1 [permanent; fault: user]
         help: check name and tag
init phase: failure, exit code 254, 194ms
"""


INIT_WORDS = (
    "init ended with 254 (the image does not exist, or the registry refuses this job): "
    "image_check: there is no image a/b:1 [permanent; fault: user]"
)


def objects(engine: str, workload: dict[str, Any] | None = None) -> JobObjects:
    """A job of an engine."""
    kind = next((k for k in KINDS if k.engine == engine), POD)
    return JobObjects("mnist", kind, workload)


def completed(kind: str) -> dict[str, Any]:
    """A Framework that has ended."""
    done = {"type": {"name": kind}, "phrase": "PodFailed", "diagnostics": "one\ntwo"}
    return {
        "spec": {"taskRoles": [{"taskNumber": 2}, {"taskNumber": 3}]},
        "status": {"state": "Completed", "attemptStatus": {"completionStatus": done}},
    }


def condition(kind: str, **spec: Any) -> dict[str, Any]:
    """An object with a condition that holds."""
    held = {"type": kind, "status": "True", "reason": "R", "message": "m"}
    return {"spec": spec, "status": {"conditions": [{"type": "Failed", "status": "False"}, held]}}


REPLICATED = [{"replicas": 2, "template": {"spec": {"completions": 3}}}, {"template": {}}]


def instances(*pods: dict[str, Any]) -> tuple[PodState, ...]:
    """The instances of some Pods."""
    return newest(map(read_pod, pods))


def failed(index: int, code: int) -> dict[str, Any]:
    """A Pod that failed, the sooner the smaller the code."""
    return pod(index=index, phase="Failed", containerStatuses=[ended("app", code)])


def kubeconfig(path: Path, server: str, helper: str = "exit 0") -> str:
    """A kubeconfig, with a token or the command that gets one, that leads to a server."""
    path.write_text(
        json.dumps({
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "space"}},
                {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
                {"name": "nobody", "context": {"cluster": "c"}},
                {"name": "stranger", "context": {"cluster": "c", "user": "v"}},
                {"name": "helped", "context": {"cluster": "c", "user": "helper"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": server} if server else {}}],
            "users": [
                {"name": "u", "user": {"token": TOKEN}},
                {"name": "helper", "user": {"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
                    "args": ["-c", helper], "interactiveMode": "Never",
                }}},
            ],
        })
    )  # fmt: skip
    return str(path)


Serve = Callable[[Handler], tuple[Cluster, Fake]]


PODS = "/api/v1/namespaces/space/pods"
