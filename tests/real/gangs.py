"""Many barriers at a real API server.

Each is a whole ``pairun init`` process with a Pod object, its own address below 127.0.0.0/8
and, with the framework backend, a line in a Framework's status. All but one start and wait. Then the
last Pod gets its address, its process starts, and the Framework's status contains it. LAB_API_URL,
LAB_API_CA, LAB_ADMIN_TOKEN and, for an account without rights, LAB_LIMITED_TOKEN name the server.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks.measure import ROOT
from pairun.base.paths import PLAIN_FILES
from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.kube.ports import rendezvous_port
from pairun.playbook.document.reading import read_text
from tests.restserver import framework_of

WAYS = {
    "framework, rendezvous": ("framework", "key"),
    "framework, no key": ("framework", "hint"),
    "framework, polling": ("framework", "poll"),
    "pods, rendezvous": ("pods", "key"),
    "pods, no key": ("pods", "hint"),
    "pods, polling": ("pods", "poll"),
}
"""The backend, and how the tasks meet: proven, unproven, or not at all."""

_FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{}/frameworks"
_POD_BYTES = 6000
_STARTING = 6
_PATIENCE_S = 300.0
_ANSWER_S = 60.0

Object = dict[str, Any]


class Server:
    """The API server, as its administrator.

    Args:
        env: see this module.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        parts = urlsplit(env["LAB_API_URL"])
        self.host, self.port = parts.hostname or "", parts.port or 443
        context = ssl.create_default_context(cafile=env["LAB_API_CA"])
        self._connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=_ANSWER_S, context=context
        )
        self._token = env["LAB_ADMIN_TOKEN"]

    def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        """One exchange; a PATCH is a merge.

        Raises:
            RuntimeError: the server refuses.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, data, headers)
        with self._connection.getresponse() as answer:
            said = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status}: {said.decode()[:300]}")
        found: Object = json.loads(said)
        return found

    def close(self) -> None:
        """Let go of the connection; the next question makes another."""
        self._connection.close()

    def patiently(self, method: str, path: str, body: Object) -> Object:
        """The same, while a new namespace has no service account yet."""
        end = time.monotonic() + _ANSWER_S
        while True:
            try:
                return self.ask(method, path, body)
            except RuntimeError as e:
                if not str(e).startswith(("403", "500")) or time.monotonic() > end:
                    raise
                time.sleep(0.1)


class Pod:
    """One task of the gang: its Pod object, and its init container as a process.

    Attributes:
        uid: of the Pod.
        address: below 127.0.0.0/8.
        volume: its shared volume.
    """

    def __init__(self, index: int, uid: str, folder: pathlib.Path) -> None:
        self.index, self.uid = index, uid
        self.address = f"127.{7 + os.getpid() % 200}.{index // 250}.{1 + index % 250}"
        self.volume = folder / f"{index}"
        self._counted = folder / f"{index}.calls"
        self._counted.touch()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, env: Mapping[str, str], key: str) -> None:
        """Start its init container."""
        (self.volume / "rendezvous").mkdir(parents=True)
        (self.volume / ".pairun").touch()
        if key:
            (self.volume / "rendezvous/key").write_text(key)
        own = {
            "PAIRUN_PAI_DIR": str(self.volume), "PAIRUN_HOST_IP": self.address,
            "FC_TASK_INDEX": str(self.index), "FC_POD_UID": self.uid,
            "COUNTED_CALLS": str(self._counted), PLAIN_FILES: "1",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.real.counted_init"], cwd=ROOT,
            env={**env, **own}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    @property
    def calls(self) -> list[str]:
        """What it asked the API server."""
        return re.findall(r"^call (.*)$", self._counted.read_text(), re.MULTILINE)

    def is_released(self) -> bool:
        """Whether its barrier has written its last file."""
        return (self.volume / "injector.sh").exists()

    def roster(self) -> list[tuple[str, int, str, str]]:
        """Everybody that its barrier has found: role, index, UID and address."""
        status = json.loads((self.volume / "framework.json").read_text())["status"]
        return [
            (role["name"], task["index"], said["podUID"], said["podIP"])
            for role in status["attemptStatus"]["taskRoleStatuses"]
            for task in role["taskStatuses"]
            for said in [task["attemptStatus"]]
        ]

    def end_of_log(self) -> str:
        """The last of what it printed."""
        with contextlib.suppress(FileNotFoundError):
            return (self.volume / "logs" / self.uid / "init.log").read_text()[-2000:]
        return ""


class Gang:
    """A Framework and its Pods at a real API server; everything is gone at the end.

    Args:
        server: the API server.
        way: one of `WAYS`.
        tasks: how many Pods.
        folder: for their volumes.

    Attributes:
        pods: by index.
    """

    def __init__(self, server: Server, way: str, tasks: int, folder: pathlib.Path) -> None:
        self.backend, self.how = WAYS[way]
        self.tasks = tasks
        self.pods: list[Pod] = []
        self._server, self._folder = server, folder
        self.namespace = f"gang-{secrets.token_hex(4)}"
        self._name = "job"
        self._key = base64.b64encode(os.urandom(32)).decode() if self.how == "key" else ""
        self._held: socket.socket | None = None
        self._gate = folder / "gate"
        self._list = f"/api/v1/namespaces/{self.namespace}/pods"
        self._framework = f"{_FRAMEWORKS.format(self.namespace)}/{self._name}"

    def __enter__(self) -> Self:
        """Make the objects; the last Pod has no address yet."""
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        os.mkfifo(self._gate)
        self._server.ask(
            "POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}}
        )  # fmt: skip
        for index in range(self.tasks):
            made = self._server.patiently("POST", self._list, self._pod(index))
            self.pods.append(Pod(index, made["metadata"]["uid"], self._folder))
        made = _framework(self._name, self.tasks)
        made["metadata"]["namespace"] = self.namespace
        if self.backend == "pods":
            (self._folder / "framework.json").write_text(json.dumps(made))
        else:
            self._server.ask("POST", _FRAMEWORKS.format(self.namespace), made)
        self._allow()
        for pod in self.pods[:-1]:
            self._address(pod)
        self._mirror(self.pods[:-1])
        if self.how == "poll" and self.backend == "pods":
            # Whoever may list Pods may find the leader, so it must not be able to serve.
            leader = self.pods[0]
            self._held = socket.socket()
            self._held.bind((leader.address, rendezvous_port(leader.uid)))

    def __exit__(self, *_: object) -> None:
        for pod in self.pods:
            if pod.process is not None and pod.process.poll() is None:
                for pid in _tree(pod.process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                pod.process.wait()
        if self._held is not None:
            self._held.close()
        with contextlib.suppress(RuntimeError):
            self._server.ask("DELETE", f"/api/v1/namespaces/{self.namespace}")
        self._server.close()

    def _pod(self, index: int) -> Object:
        labels = {"pairun/job": self._name, "pairun/role": "worker", "pairun/index": str(index)}
        container = {
            "name": "app", "image": "example.com/a/b:1",
            "env": [{"name": "FILLING", "value": "x" * _POD_BYTES}],
        }  # fmt: skip
        return {
            "metadata": {"name": f"{self._name}-worker-{index}", "labels": labels},
            # A scheduler that does not exist: the Pod stays as it is.
            "spec": {
                "schedulerName": "nobody",
                "containers": [container],
                "automountServiceAccountToken": False,
            },
        }

    def _address(self, pod: Pod) -> None:
        """What the kubelet does."""
        status = {"status": {"podIP": pod.address, "podIPs": [{"ip": pod.address}]}}
        self._server.ask("PATCH", f"{self._list}/{self._name}-worker-{pod.index}/status", status)

    def _mirror(self, ready: Sequence[Pod]) -> None:
        """What FrameworkController does: all its Pods' states into the Framework's status."""
        if self.backend == "pods":
            return
        there = {pod.index for pod in ready}
        tasks = [_task(self._name, pod, here=pod.index in there) for pod in self.pods]
        roles = [{"name": "worker", "podGracefulDeletionTimeoutSec": None, "taskStatuses": tasks}]
        status = {"attemptStatus": {"id": 0, "taskRoleStatuses": roles}}
        self._server.ask("PATCH", self._framework, {"status": status})

    def _allow(self) -> None:
        """Let the Pods' account do what the way needs."""
        rules = [{"apiGroups": ["frameworkcontroller.microsoft.com"], "resources": ["frameworks"],
                  "verbs": ["get"]}]  # fmt: skip
        if (self.backend, self.how) != ("framework", "poll"):
            rules.append({"apiGroups": [""], "resources": ["pods"],
                          "verbs": ["get", "list", "watch"]})  # fmt: skip
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        named = {"metadata": {"name": "gang"}}
        self._server.ask("POST", f"{rbac}/roles", {**named, "rules": rules})
        group = "rbac.authorization.k8s.io"
        bound = {
            **named,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "gang"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "limited"}],
        }
        self._server.ask("POST", f"{rbac}/rolebindings", bound)

    def _env(self) -> dict[str, str]:
        """What all init containers have alike."""
        folder = self._folder / "credentials"
        if not folder.exists():
            folder.mkdir()
            (folder / "token").write_text(self._server.env["LAB_LIMITED_TOKEN"])
            authority = pathlib.Path(self._server.env["LAB_API_CA"]).read_text()
            (folder / "ca.crt").write_text(authority)
            (self._folder / "layer.yaml").write_text(
                "init:\n  - disable: image_check\n  - disable: port_check\n"
            )
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PAIRUN_ENGINE_LAYER": str(self._folder / "layer.yaml"),
            "PAIRUN_API_CREDENTIALS": str(folder),
            "PAIRUN_APP_UID": str(os.getuid()),
            "KUBERNETES_SERVICE_HOST": self._server.host,
            "KUBERNETES_SERVICE_PORT": str(self._server.port),
            "FC_FRAMEWORK_NAMESPACE": self.namespace,
            "FC_FRAMEWORK_NAME": self._name,
            "FC_FRAMEWORK_ATTEMPT_ID": "0",
            "FC_TASKROLE_NAME": "worker",
            "COUNTED_GATE": str(self._gate),
        }
        if self.backend == "pods":
            env["PAIRUN_BARRIER"] = "pods"
            env["PAIRUN_FRAMEWORK_FILE"] = str(self._folder / "framework.json")
        return env

    def start_all_but_one(self) -> None:
        """Start them, a few at once, until each has asked for something."""
        env = self._env()
        for pod in self.pods[:-1]:
            pod.start(env, self._key)
            self._until(lambda: self._silent() < _STARTING, "processes that start")
        self._until(lambda: self._silent() == 0, "processes that start")

    def _silent(self) -> int:
        started = [pod for pod in self.pods if pod.process is not None]
        return sum(1 for pod in started if not pod.calls)

    def start_last(self) -> None:
        """Give the last Pod its address, add it to the Framework's status, and start it."""
        last = self.pods[-1]
        self._address(last)
        self._mirror(self.pods)
        last.start(self._env(), self._key)

    def wait_until_released(self) -> None:
        """Wait until every barrier has ended."""
        self._until(lambda: all(pod.is_released() for pod in self.pods), "barriers that wait")

    def open_gate(self) -> list[int]:
        """Let the phases go on to their ends; returns their exit codes."""
        end = time.monotonic() + _PATIENCE_S
        while any(pod.process and pod.process.poll() is None for pod in self.pods):
            if time.monotonic() > end:
                raise RuntimeError("some phases do not end")
            # Nobody reads it once all have gone on.
            with contextlib.suppress(OSError):
                os.close(os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK))
            time.sleep(0.05)
        return [pod.process.returncode for pod in self.pods if pod.process]

    def _until(self, done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not done():
            for pod in self.pods:
                if pod.process is not None and (code := pod.process.poll()) is not None:
                    raise RuntimeError(f"Pod {pod.index} ended with {code}:\n{pod.end_of_log()}")
            if time.monotonic() > end:
                raise RuntimeError(f"there are still {what}:\n{self.pods[0].end_of_log()}")
            time.sleep(0.02)


def _framework(name: str, tasks: int) -> Object:
    """The Framework of a job of one role."""
    document = {
        "protocolVersion": 2,
        "name": "large",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
        "taskRoles": {
            "worker": {
                "instances": tasks,
                "dockerImage": "i",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"http": 1}},
                "commands": ["echo hello"],
            }
        },
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in document.items())
    job, problems = read_job(read_text(Source("job", "job", text), JS))
    if job is None:
        raise RuntimeError(f"not a job: {list(problems)}")
    return framework_of(job, name)


def _task(name: str, pod: Pod, *, here: bool) -> Object:
    """A task's status with all that FrameworkController writes there."""
    now = "2020-01-01T00:00:00Z"
    retries = {
        "totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None,
    }  # fmt: skip
    attempt = {
        "id": 0, "startTime": now, "runTime": None, "completionTime": None,
        "instanceUID": f"0_{pod.uid}", "podName": f"{name}-worker-{pod.index}",
        "podUID": pod.uid, "podNodeName": f"node-{pod.index}",
        "podIP": pod.address if here else None, "podHostIP": pod.address if here else None,
        "completionStatus": None,
    }  # fmt: skip
    return {
        "index": pod.index, "startTime": now, "completionTime": None,
        "state": "AttemptPreparing", "transitionTime": now, "deletionPending": False,
        "retryPolicyStatus": retries, "attemptStatus": attempt,
    }  # fmt: skip


# --- processes -------------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def _tree(pid: int) -> list[int]:
    return [pid, *(n for child in _children(pid) for n in _tree(child))]
