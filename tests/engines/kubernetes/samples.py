"""Pods, workloads and an API server of one function, for the tests of this room."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import KINDS, POD, JobObjects
from pairun.engines.kubernetes.podstates import PodState, newest, read_pod
from pairun.errors import PairunError
from pairun.runtime.termination import Summary, message

TOKEN = "eyJhbGciOi-very-secret"


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


def objects(engine: str, *workloads: dict[str, Any]) -> JobObjects:
    """A job of an engine."""
    kind = next((k for k in KINDS if k.engine == engine), POD)
    return JobObjects("mnist", kind, workloads)


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


Answer = tuple[int, Any] | None


Handler = Callable[[str, str, dict[str, str], Any], Answer]


class Fake:
    """An API server of one function; None breaks the connection off."""

    def __init__(self, handler: Handler) -> None:
        outer = self
        self.asked: list[str] = []

        class Handling(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                outer.asked.append(f"{self.command} {url.path}")
                answer = handler(self.command, url.path, query, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, said = answer
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Who gave the call up is no error here."""

        self.server = Server(("127.0.0.1", 0), Handling)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"


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


def status(code: int, reason: str = "", text: str = "") -> Answer:
    """An error as the API server says it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": text}


PODS = "/api/v1/namespaces/space/pods"
