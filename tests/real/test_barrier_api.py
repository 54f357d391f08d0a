"""``pairun init`` in a Framework's Pod, against a real API server: every way there and every way out."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import read_text
from tests.node.api import Api, ApiError
from tests.restserver import framework_of

ROOT = pathlib.Path(__file__).parents[2]
FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{}/frameworks"
WAIT_S = 60.0
JOB: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "small",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
    "taskRoles": {
        "worker": {
            "instances": 2,
            "dockerImage": "i",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"http": 1}},
            "commands": ["echo hello"],
        }
    },
}
Object = dict[str, Any]


class Relay:
    """A TCP relay to the API server, which may go away and come back on the same port."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self.passed = threading.Event()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def down(self) -> None:
        """Break every connection and accept no more."""
        for end in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def up(self) -> None:
        """Accept again."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._open += [client, server]
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


class Front(http.server.ThreadingHTTPServer):
    """An HTTP server that asks the API server for us, once ``before`` has let the request pass."""

    def __init__(self, api: Mapping[str, str], before: Callable[[Front, Any], bool]) -> None:
        self.asked = 0
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                front.asked += 1
                if before(front, self):
                    asked = urllib.request.Request(api["LAB_API_URL"] + self.path, headers={
                        "Authorization": f"Bearer {api['LAB_ADMIN_TOKEN']}",
                        "Accept": self.headers["Accept"],
                    })  # fmt: skip
                    import ssl

                    tls = ssl.create_default_context(cafile=api["LAB_API_CA"])
                    with urllib.request.urlopen(asked, context=tls, timeout=20) as answer:
                        self.reply(answer.status, answer.read())

            def reply(self, status: int, body: bytes, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Pod:
    """A Pod of a Framework, as a folder and an environment; the second worker of two.

    Attributes:
        api: the API server as its administrator.
        env: of the init container.
        framework: the Framework as it was created.
    """

    def __init__(self, lab: Mapping[str, str], namespace: str, folder: pathlib.Path) -> None:
        self.lab, self.namespace, self.folder = lab, namespace, folder
        self.api = Api(lab["LAB_API_URL"], lab["LAB_API_CA"], lab["LAB_ADMIN_TOKEN"])
        self.name = f"job{secrets.token_hex(6)}"
        self.uid = "11111111-2222-3333-4444-555555555555"
        self.volume = folder / "pai"
        self.volume.mkdir()
        (self.volume / ".pairun").touch()
        self.credentials = folder / "credentials"
        self.credentials.mkdir()
        self.token(lab["LAB_ADMIN_TOKEN"])
        authority = pathlib.Path(lab["LAB_API_CA"]).read_text()
        (self.credentials / "ca.crt").write_text(authority)
        host, port = lab["LAB_API_URL"].removeprefix("https://").split(":")
        self.env = {
            "PATH": os.environ["PATH"],
            "PAIRUN_PAI_DIR": str(self.volume),
            "PAIRUN_ENGINE_LAYER": str(folder / "layer.yaml"),
            "PAIRUN_API_CREDENTIALS": str(self.credentials),
            "PAIRUN_APP_UID": str(os.getuid()),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "FC_FRAMEWORK_NAMESPACE": namespace,
            "FC_FRAMEWORK_NAME": self.name,
            "FC_FRAMEWORK_ATTEMPT_ID": "0",
            "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "1",
            "FC_POD_UID": self.uid,
        }
        self.patience("40s")
        self.code = "from pairun.cli.main import main; import sys; sys.exit(main(['init']))"
        self.framework = self._framework()
        self.process: subprocess.Popen[str] | None = None
        self.has_peer = False

    def token(self, text: str) -> None:
        """Mount a token."""
        (self.credentials / "token").write_text(text)

    def patience(self, timeout: str, more: str = "") -> None:
        """How long the barrier waits; further arguments of it."""
        (self.folder / "layer.yaml").write_text(
            "init:\n  - disable: image_check\n  - disable: port_check\n"
            f"  - patch: barrier\n    args: {{timeout: {timeout}{more}}}\n"
        )

    def _framework(self) -> Object:
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in JOB.items())
        job, problems = read_job(read_text(Source("job", "job", text), JS))
        assert job is not None, list(problems)
        made = framework_of(job, self.name)
        made["metadata"]["namespace"] = self.namespace
        return made

    @property
    def path(self) -> str:
        """The Framework's."""
        return f"{FRAMEWORKS.format(self.namespace)}/{self.name}"

    def task(self, index: int, **attempt: Any) -> Object:
        """One task's status; with an address unless another is given."""
        ip = f"10.0.0.{index + 1}"
        uid = self.uid if index == 1 else f"{index}" * 8
        said = {"podUID": uid, "podName": f"{self.name}-worker-{index}", "podIP": ip,
                "podHostIP": ip, "runTime": "2026-11-23T05:47:57Z"}  # fmt: skip
        return {"index": index, "attemptStatus": {**said, **attempt}}

    def create(self, *tasks: Object, **attempt: Any) -> None:
        """Create the Framework with a status of these tasks; none without any.

        Its leader runs, unless it has a Pod already: the barrier asks at once.
        """
        if not self.has_peer:
            ended = _container("init", terminated={"exitCode": 0})
            self.peer({"podIP": "10.0.0.1", "initContainerStatuses": [ended]})
        if tasks or attempt:
            roles = [{"name": "worker", "taskStatuses": list(tasks)}]
            said = {"id": 0, "taskRoleStatuses": roles, **attempt}
            self.framework["status"] = {"attemptStatus": said}
        self.api.create(FRAMEWORKS.format(self.namespace), self.framework)

    def complete(self) -> None:
        """Give every task an address, as the controller would."""
        roles = [{"name": "worker", "taskStatuses": [self.task(0), self.task(1)]}]
        status = {"attemptStatus": {"id": 0, "taskRoleStatuses": roles}}
        self.api.merge(self.path, {"status": status})

    def peer(
        self, status: Object, labels: Mapping[str, str] | None = None, name: str = ""
    ) -> Object:
        """Create a Pod that nobody runs, with a status."""
        self.has_peer = True
        name = name or f"{self.name}-worker-0"
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        container = {"name": "app", "image": "example.com/a/b:1"}
        made: Object = {
            "metadata": {"name": name, "labels": dict(labels or {})},
            # A scheduler that does not exist: the Pod stays as it is. The account of a new
            # namespace has no token yet.
            "spec": {"schedulerName": "nobody", "automountServiceAccountToken": False,
                     "containers": [container]},
        }  # fmt: skip
        end = time.monotonic() + WAIT_S
        while True:
            try:
                self.api.create(pods, made)
                break
            except ApiError as e:
                # A new namespace on a whole node gets its service account a moment later.
                if e.status != 403 or time.monotonic() > end:
                    raise
                time.sleep(0.1)
        return self.api.merge(f"{pods}/{name}/status", {"status": status})

    def allow(self, resource: str, verb: str) -> None:
        """Let the limited account do one thing in this namespace."""
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        name = f"{self.name}-{resource}"
        group = "frameworkcontroller.microsoft.com" if resource == "frameworks" else ""
        rules = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]
        self.api.create(f"{rbac}/roles", {"metadata": {"name": name}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
        bound = {"metadata": {"name": name}, "roleRef": role, "subjects": [user]}
        self.api.create(f"{rbac}/rolebindings", bound)

    def start(self) -> subprocess.Popen[str]:
        """Start ``pairun init``."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.code], cwd=ROOT, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return self.process

    def said(self, part: str) -> str:
        """Everything it says up to a line that holds a text."""
        assert self.process is not None
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if part in line:
                return "".join(lines)
        raise AssertionError(f"no line with {part!r}: {lines}")

    def end(self) -> tuple[int, str]:
        """Exit code, and the rest of what it said."""
        assert self.process is not None
        said, _ = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, said

    def run(self) -> tuple[int, str]:
        """Exit code, and all that it said."""
        self.start()
        return self.end()

    def impatient(self, seconds: int = 2) -> None:
        """Accept a timeout that nobody would give, for the wait before there is a plan."""
        self.code = (
            "from pairun.init import fromcluster; fromcluster._TIMEOUTS_S = (1, 1200); " + self.code
        )
        self.env["BARRIER_CHECK_TIMEOUT_SEC"] = str(seconds)


@pytest.fixture(scope="module")
def namespace(api_server: Mapping[str, str]) -> Iterator[str]:
    """A namespace for this file's objects."""
    api = Api(api_server["LAB_API_URL"], api_server["LAB_API_CA"], api_server["LAB_ADMIN_TOKEN"])
    name = f"barrier-{secrets.token_hex(4)}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def pod(api_server: Mapping[str, str], namespace: str, tmp_path: pathlib.Path) -> Iterator[Pod]:
    """A Pod in which ``pairun init`` can run, without its Framework yet."""
    made = Pod(api_server, namespace, tmp_path)
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.communicate()


# --- the table of the documents ------------------------------------------------------------------

Way = Callable[[Pod], tuple[int, str]]
WAYS: dict[str, Way] = {}


def way(name: str) -> Callable[[Way], Way]:
    """Declare what happens in a row of the table."""

    def add(function: Way) -> Way:
        WAYS[name] = function
        return function

    return add


def _waiting_in_vain(pod: Pod, *tasks: Object, **attempt: Any) -> tuple[int, str]:
    pod.patience("2s")
    pod.create(*tasks, **attempt)
    return pod.run()


@way("an instance has no Pod")
def _(pod: Pod) -> tuple[int, str]:
    nobody = {"podUID": None, "podName": None, "podIP": None, "podHostIP": None}
    return _waiting_in_vain(pod, pod.task(0, **nobody), pod.task(1))


def _peer_is(pod: Pod, status: Object) -> tuple[int, str]:
    pod.peer(status)
    return _waiting_in_vain(pod, pod.task(0, podIP=None), pod.task(1))


@way("an instance is not scheduled")
def _(pod: Pod) -> tuple[int, str]:
    message = "0/3 nodes are available: 3 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": message}  # fmt: skip
    return _peer_is(pod, {"phase": "Pending", "conditions": [condition]})


def _container(name: str, **state: Any) -> Object:
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0,
            "state": state}  # fmt: skip


@way("an image is not there")
def _(pod: Pod) -> tuple[int, str]:
    message = 'Back-off pulling image "example.com/a/b:1"'
    waiting = {"reason": "ImagePullBackOff", "message": message}
    return _peer_is(pod, {"containerStatuses": [_container("app", waiting=waiting)]})


@way("an instance's own init failed")
def _(pod: Pod) -> tuple[int, str]:
    return _peer_is(
        pod, {"initContainerStatuses": [_container("init", terminated={"exitCode": 254})]}
    )


@way("no right to see Pods")
def _(pod: Pod) -> tuple[int, str]:
    pod.token(pod.lab["LAB_LIMITED_TOKEN"])
    pod.allow("frameworks", "get")
    return _waiting_in_vain(pod, pod.task(0, podIP=None), pod.task(1))


@way("a Framework without status")
def _(pod: Pod) -> tuple[int, str]:
    return _waiting_in_vain(pod)


@way("a status of another attempt")
def _(pod: Pod) -> tuple[int, str]:
    return _waiting_in_vain(pod, pod.task(0), pod.task(1), id=7)


@way("another Pod in this one's place")
def _(pod: Pod) -> tuple[int, str]:
    return _waiting_in_vain(pod, pod.task(0), pod.task(1, podUID="another"))


@way("a Framework that never existed")
def _(pod: Pod) -> tuple[int, str]:
    return pod.run()


@way("a Framework that is deleted")
def _(pod: Pod) -> tuple[int, str]:
    pod.create(pod.task(1))
    pod.start()
    pod.said("1 of 2 instances")
    pod.api.delete(pod.path)
    return pod.end()


@way("a later Framework of the same name")
def _(pod: Pod) -> tuple[int, str]:
    pod.create(pod.task(0), pod.task(1))
    pod.env["FC_FRAMEWORK_UID"] = "the-one-before"
    return pod.run()


@way("an instance that the job no longer wants")
def _(pod: Pod) -> tuple[int, str]:
    pod.framework["spec"]["taskRoles"][0]["taskNumber"] = 1
    pod.create(pod.task(0), pod.task(1))
    return pod.run()


@way("no right to read Frameworks")
def _(pod: Pod) -> tuple[int, str]:
    # Everybody is one namespace's neighbour: this one has no role at all.
    pod.env["FC_FRAMEWORK_NAMESPACE"] = "kube-public"
    pod.token(pod.lab["LAB_LIMITED_TOKEN"])
    return pod.run()


@way("a wrong token")
def _(pod: Pod) -> tuple[int, str]:
    pod.token("not-a-token-of-this-cluster")
    return pod.run()


@way("a token of a deleted service account")
def _(pod: Pod) -> tuple[int, str]:
    accounts = f"/api/v1/namespaces/{pod.namespace}/serviceaccounts"
    pod.api.create(accounts, {"metadata": {"name": pod.name}})
    asked = {"spec": {"expirationSeconds": 3600}}
    made = pod.api.create(f"{accounts}/{pod.name}/token", asked)
    pod.api.delete(f"{accounts}/{pod.name}")
    pod.token(made["status"]["token"])
    return pod.run()


@way("a wrong certificate")
def _(pod: Pod) -> tuple[int, str]:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=another", "-keyout", "/dev/null", "-out", pod.credentials / "ca.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    return pod.run()


@way("no token and no address")
def _(pod: Pod) -> tuple[int, str]:
    (pod.credentials / "token").unlink()
    return pod.run()


@way("variables of the Pod are missing")
def _(pod: Pod) -> tuple[int, str]:
    del pod.env["FC_FRAMEWORK_NAMESPACE"], pod.env["FC_TASK_INDEX"]
    code, said = pod.run()
    assert "the variable FC_TASK_INDEX is not set" in said
    return code, said


@way("a timeout out of range")
def _(pod: Pod) -> tuple[int, str]:
    pod.env["BARRIER_CHECK_TIMEOUT_SEC"] = "5"
    return pod.run()


@way("an interval that is no number")
def _(pod: Pod) -> tuple[int, str]:
    pod.create(pod.task(0), pod.task(1))
    pod.env["BARRIER_CHECK_INTERVAL_SEC"] = "often"
    return pod.run()


def _relayed(pod: Pod) -> Relay:
    relay = Relay(int(pod.env["KUBERNETES_SERVICE_PORT"]))
    pod.env["KUBERNETES_SERVICE_PORT"] = str(relay.port)
    return relay


@way("an API server that never answers")
def _(pod: Pod) -> tuple[int, str]:
    _relayed(pod).down()
    pod.impatient()
    return pod.run()


@way("an API server that goes and stays away")
def _(pod: Pod) -> tuple[int, str]:
    relay = _relayed(pod)
    pod.patience("2s")
    # Who may not look for the job's leader looks at the Framework from the beginning.
    pod.token(pod.lab["LAB_LIMITED_TOKEN"])
    pod.allow("frameworks", "get")
    pod.create(pod.task(1))
    pod.start()
    pod.said("1 of 2 instances")
    relay.down()
    return pod.end()


@way("an API server that restarts")
def _(pod: Pod) -> tuple[int, str]:
    relay = _relayed(pod)
    pod.create(pod.task(1))
    pod.start()
    said = pod.said("1 of 2 instances")
    relay.down()
    said += pod.said("retrying")
    pod.complete()
    relay.up()
    code, rest = pod.end()
    return code, said + rest


def _behind(pod: Pod, before: Callable[[Front, Any], bool]) -> tuple[int, str]:
    pod.create(pod.task(0), pod.task(1))
    (pod.credentials / "token").unlink()
    front = Front(pod.lab, before)
    pod.env["KUBE_APISERVER_ADDRESS"] = f"http://127.0.0.1:{front.server_address[1]}"
    try:
        return pod.run()
    finally:
        front.shutdown()
        front.server_close()


@way("a slow API server")
def _(pod: Pod) -> tuple[int, str]:
    def slowly(front: Front, _: Any) -> bool:
        time.sleep(1.5)
        return front.asked > 0

    return _behind(pod, slowly)


@way("an API server that answers 429")
def _(pod: Pod) -> tuple[int, str]:
    def refused(front: Front, request: Any) -> bool:
        # The head, then the barrier's own first look.
        if front.asked in (1, 2, 4):
            request.reply(429, b"{}", Retry_After="1")
            return False
        return True

    return _behind(pod, refused)


def _rows() -> dict[str, tuple[str, int]]:
    """What, and the last word and the code that docs/gang.md promises."""
    text = (ROOT / "docs/gang.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| (\d+) \|$", text, re.MULTILINE)
    return {what: (word, int(code)) for what, word, code in rows}


def test_the_table_is_complete() -> None:
    """Every row is tried below, and nothing is tried that the page does not tell."""
    assert _rows().keys() == WAYS.keys()


@pytest.mark.parametrize("what", WAYS)
def test_a_row_of_the_table(pod: Pod, what: str) -> None:
    """The process ends as the page says, with the words it shows, and never tells its token."""
    word, expected = _rows()[what]
    code, said = WAYS[what](pod)
    assert code == expected, said
    assert re.search(re.escape(word).replace(r"\.\.\.", ".*"), said), said
    assert "Traceback" not in said
    if expected == 251:
        assert "after 2s" in (pod.volume / "logs" / pod.uid / "barrier.log").read_text()
    with contextlib.suppress(FileNotFoundError):
        token = (pod.credentials / "token").read_text()
        assert token not in said
        for log in (pod.volume / "logs").rglob("*.*"):
            assert token not in log.read_text()


def test_the_grant_that_is_named_is_enough(pod: Pod) -> None:
    """A right that is missing is told with the commands that give it."""
    pod.env["FC_FRAMEWORK_NAMESPACE"] = "kube-public"
    pod.token(pod.lab["LAB_LIMITED_TOKEN"])
    code, said = pod.run()
    assert code == 252
    line = " ".join(said.split())
    found = re.search(r"grant it: (kubectl .*? --user=\S+)", line)
    assert found is not None, said
    assert "create role pairun-get-frameworks --verb=get" in found[1]
    assert "--resource=frameworks.frameworkcontroller.microsoft.com" in found[1]


# --- what is left behind ---------------------------------------------------------------------------


def test_what_a_gang_leaves(pod: Pod) -> None:
    """The Framework with every address, the injector, the log, and the environment of the peers."""
    pod.create(pod.task(0), pod.task(1))
    code, said = pod.run()
    assert code == 0, said
    framework = json.loads((pod.volume / "framework.json").read_text())
    roles = framework["status"]["attemptStatus"]["taskRoleStatuses"]
    assert [t["attemptStatus"]["podIP"] for t in roles[0]["taskStatuses"]] == [
        "10.0.0.1",
        "10.0.0.2",
    ]
    injected = subprocess.run(
        ["bash", "-c", ". ./injector.sh >/dev/null; echo $FB_WORKER_IPS $FB_WORKER_ADDRESSES"],
        cwd=pod.volume, env={"FB_WORKER_PORT": "80"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert injected.stdout.split() == ["10.0.0.1,10.0.0.2", "10.0.0.1:80,10.0.0.2:80"]
    assert os.access(pod.volume / "injector.sh", os.X_OK)
    log = (pod.volume / "logs" / pod.uid / "barrier.log").read_text()
    assert log.endswith("2 of 2 instances have addresses\n")
    environment = (pod.volume / "runtime.d/runtime_env.sh").read_text()
    assert "export PAI_HOST_IP_worker_0='10.0.0.1'" in environment
    assert "export PAI_CONTAINER_HOST_IP='10.0.0.2'" in environment


def test_a_compressed_status_after_a_scale_down(pod: Pod) -> None:
    """Inflated on the volume; tasks and roles that the spec does not want are not waited for."""
    going = {**pod.task(2, podIP=None), "deletionPending": True}
    roles = [
        {"name": "worker", "taskStatuses": [pod.task(0), pod.task(1), going]},
        {"name": "gone", "taskStatuses": [pod.task(0, podIP=None)]},
    ]
    packed = base64.b64encode(gzip.compress(json.dumps(roles).encode())).decode()
    pod.create(taskRoleStatuses=None, taskRoleStatusesCompressed=packed)
    code, said = pod.run()
    assert code == 0, said
    attempt = json.loads((pod.volume / "framework.json").read_text())["status"]["attemptStatus"]
    assert attempt["taskRoleStatuses"] == roles
    assert "taskRoleStatusesCompressed" not in attempt


def test_a_gang_that_grows(pod: Pod) -> None:
    """The spec that counts is the one of the last look."""
    pod.create(pod.task(0, podIP=None), pod.task(1))
    pod.start()
    said = pod.said("1 of 2 instances")
    roles = pod.framework["spec"]["taskRoles"]
    roles[0]["taskNumber"] = 3
    pod.api.merge(pod.path, {"spec": {"taskRoles": roles}})
    said += pod.said("1 of 3 instances")
    tasks = [pod.task(i) for i in range(3)]
    status = {"attemptStatus": {"taskRoleStatuses": [{"name": "worker", "taskStatuses": tasks}]}}
    pod.api.merge(pod.path, {"status": status})
    code, rest = pod.end()
    assert code == 0, said + rest


def test_alone_a_task_waits_for_itself(pod: Pod) -> None:
    """Without gang allocation others may be unknown; this task's own place must be known."""
    pod.env["GANG_ALLOCATION"] = "false"
    pod.create(pod.task(0, podUID=None, podIP=None, podHostIP=None), pod.task(1, podHostIP=None))
    pod.start()
    said = pod.said("0 of 1 instances")
    status = {"attemptStatus": {"taskRoleStatuses": [{"name": "worker", "taskStatuses": [
        pod.task(0, podUID=None, podIP=None, podHostIP=None), pod.task(1)]}]}}  # fmt: skip
    pod.api.merge(pod.path, {"status": status})
    code, rest = pod.end()
    assert code == 0, said + rest
    environment = (pod.volume / "runtime.d/runtime_env.sh").read_text()
    assert "export PAI_CONTAINER_HOST_IP='10.0.0.2'" in environment
    assert "PAI_HOST_IP_worker_0" not in environment
    assert "PAI_worker_0_http_PORT" not in environment
    assert "None" not in environment


def test_a_stop_while_nobody_answers(pod: Pod) -> None:
    """A stop signal ends the wait for an API server before there is a plan."""
    _relayed(pod).down()
    process = pod.start()
    said = pod.said("retrying")
    process.terminate()
    code, rest = pod.end()
    assert code == 143, said + rest


# --- Pods ------------------------------------------------------------------------------------------


def _labels(pod: Pod, index: int) -> dict[str, str]:
    return {"pairun/job": pod.name, "pairun/role": "worker", "pairun/index": str(index)}


@pytest.fixture
def pods(pod: Pod) -> Pod:
    """The same without a Framework in the cluster: a file has it, and the Pods know the rest."""
    file = pod.folder / "framework.json"
    file.write_text(json.dumps(pod.framework))
    pod.env |= {"PAIRUN_FRAMEWORK_FILE": str(file), "PAIRUN_BARRIER": "pods"}
    own = pod.peer({"podIP": "10.0.0.2"}, _labels(pod, 1), f"{pod.name}-worker-1")
    pod.env["FC_POD_UID"] = own["metadata"]["uid"]
    return pod


def test_pods_find_each_other(pods: Pod) -> None:
    """By their labels; a Pod that has failed or belongs to another job is none of them."""
    pods.peer({"podIP": "10.0.0.7"}, {**_labels(pods, 0), "pairun/job": "other"}, f"{pods.name}-o")
    pods.peer({"podIP": "10.0.0.8", "phase": "Failed"}, _labels(pods, 0))
    pods.start()
    said = pods.said("1 of 2 instances")
    pods.peer({"podIP": "10.0.0.9"}, _labels(pods, 0), f"{pods.name}-again")
    code, rest = pods.end()
    assert code == 0, said + rest
    found = json.loads((pods.volume / "framework.json").read_text())["status"]["attemptStatus"]
    (role,) = found["taskRoleStatuses"]
    assert [(t["index"], t["attemptStatus"]["podIP"]) for t in role["taskStatuses"]] == [
        (0, "10.0.0.9"),
        (1, "10.0.0.2"),
    ]
    environment = (pods.volume / "runtime.d/runtime_env.sh").read_text()
    assert "export PAI_HOST_IP_worker_0='10.0.0.9'" in environment


def test_pods_without_the_right_to_list(pods: Pod) -> None:
    """The right that is missing is named at once."""
    pods.token(pods.lab["LAB_LIMITED_TOKEN"])
    code, said = pods.run()
    assert code == 252, said
    assert "may not list pods in the namespace" in said


def test_pods_that_must_have_ended_their_init(pods: Pod) -> None:
    """An address alone is not enough where ended init containers are asked for."""
    pods.patience("40s", ", ready: init")
    running = {"podIP": "10.0.0.1", "initContainerStatuses": [_container("init", running={})]}
    pods.peer(running, _labels(pods, 0))
    pods.start()
    said = pods.said("1 of 2 instances")
    ended = [_container("init", terminated={"exitCode": 0})]
    path = f"/api/v1/namespaces/{pods.namespace}/pods/{pods.name}-worker-0/status"
    pods.api.merge(path, {"status": {"initContainerStatuses": ended}})
    code, rest = pods.end()
    assert code == 0, said + rest


def test_pods_whose_port_must_answer(pods: Pod) -> None:
    """A peer counts once something accepts connections at its first port of the label."""
    from pairun.kube.ports import PORT_ANNOTATION, PortPlan

    pods.patience("40s", ", ready: port, port: http")
    peer = pods.peer({"podIP": "127.0.0.1"}, _labels(pods, 0))
    template = pods.framework["spec"]["taskRoles"][0]["task"]["pod"]["metadata"]
    plan = PortPlan(template["annotations"][PORT_ANNOTATION])
    number = plan.of(peer["metadata"]["uid"], 0)["http"][0]
    pods.start()
    said = pods.said("1 of 2 instances")
    with socket.create_server(("127.0.0.1", number)):
        code, rest = pods.end()
    assert code == 0, said + rest
