"""A whole node: kubelet, containerd, scheduler and controllers; the image comes from its registry."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs
import pytest
import yaml

from pairun.kube.ports import DEFAULT_RANGE
from pairun.kube.statuses import task_statuses
from tests.node.api import Api, Object
from tests.node.framework_controller import GROUP, FrameworkController
from tests.podman import ROOT, Podman

WAIT_S = 90.0
ACCOUNT = "runtime-account"
RBAC = "rbac.authorization.k8s.io"
FUSE = "github.com/fuse"
KUBERNETES = "1.20"
JOB = "gang"
PORTS = (15000, 32768)
"""Below what the kernel gives to connections: with the node's network they would take one now and then."""
WORKER = "pai-worker"
PRIORITY = "pai-job-minimal-priority"

Lab = Callable[..., str]
Run = Callable[..., str]
Manifests = Callable[..., list[dict[str, Any]]]
T = TypeVar("T")


@attrs.frozen
class Ended:
    """A Pod that has ended.

    Attributes:
        pod: the object.
        logs: its log directory, of both phases.
        said: what its containers printed, by their names.
    """

    pod: Object
    logs: pathlib.Path
    said: Mapping[str, str]

    def state(self, container: str) -> Object:
        """How a container ended: `exitCode`, `message`, `signal`, times."""
        status = self.pod["status"]
        both = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        found: Object = next(c["state"] for c in both if c["name"] == container)
        assert "terminated" in found, self.story
        ended: Object = found["terminated"]
        return ended

    def code(self, container: str = "app") -> int:
        """A container's exit code."""
        return int(self.state(container)["exitCode"])

    def log(self, name: str) -> str:
        """One of the files in the log directory."""
        return (self.logs / name).read_text()

    @property
    def story(self) -> str:
        """All that is known, for a failed test."""
        parts = [json.dumps(self.pod["status"], indent=1), *self.said.values()]
        parts += [f"{p.name}: {p.read_text()[-4000:]}" for p in self.logs.glob("*.log")]
        return "\n".join(parts)


class Node:
    """The node, seen from one namespace.

    Args:
        api: the API server.
        env: of kubectl.
        namespace: where objects of a test are.
        folder: of the host, where Pods leave their logs (`logs`) and find storage (`data`).
    """

    def __init__(
        self, api: Api, env: Mapping[str, str], namespace: str, folder: pathlib.Path
    ) -> None:
        self.api = api
        self.env = dict(env)
        self.namespace = namespace
        self.logs, self.data = folder / "logs", folder / "data"
        for made in (self.logs, self.data):
            made.mkdir()
            made.chmod(0o777)
        self.core = f"/api/v1/namespaces/{namespace}"
        self.frameworks = f"/apis/{GROUP}/namespaces/{namespace}/frameworks"

    def grant(self, name: str, group: str, resource: str, *verbs: str) -> None:
        """Give the init containers' account a right in this namespace."""
        rbac = f"/apis/{RBAC}/v1/namespaces/{self.namespace}"
        rule = {"apiGroups": [group], "resources": [resource], "verbs": verbs}
        self.api.create(f"{rbac}/roles", {"metadata": {"name": name}, "rules": [rule]})
        self.api.create(f"{rbac}/rolebindings", {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT}],
        })  # fmt: skip

    def revoke(self, name: str) -> None:
        """Take a right back."""
        self.api.delete(f"/apis/{RBAC}/v1/namespaces/{self.namespace}/rolebindings/{name}")

    def kubectl(self, *argv: str, stdin: str = "") -> str:
        """Run kubectl, which must succeed; what it printed."""
        done = subprocess.run(
            ["kubectl", "--namespace", self.namespace, *argv], env=self.env, input=stdin,
            capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, *objects: Object) -> None:
        """`kubectl apply` of objects."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def wait(self, what: str, look: Callable[[], T | None], timeout_s: float = WAIT_S) -> T:
        """What `look` sees as soon as that is something."""
        stop = time.monotonic() + timeout_s
        while (seen := look()) is None or seen is False:
            if time.monotonic() > stop:
                pytest.fail(f"after {timeout_s:.0f} s still waiting for {what}\n{self.story()}")
            time.sleep(0.1)
        return seen

    def pods(self) -> dict[str, Object]:
        """The Pods of this namespace by their names."""
        return {p["metadata"]["name"]: p for p in self.api.get(f"{self.core}/pods")["items"]}

    def ended(self, name: str) -> Ended:
        """Wait until a Pod has ended."""

        def look() -> Object | None:
            pod = self.api.find(f"{self.core}/pods/{name}")
            return pod if pod and pod["status"].get("phase") in ("Succeeded", "Failed") else None

        pod = self.wait(f"the end of Pod {name}", look)
        kinds = ("initContainers", "containers") if _ran(pod) else ("initContainers",)
        names = [c["name"] for kind in kinds for c in pod["spec"].get(kind, ())]
        return self._ended(pod, {c: self.kubectl("logs", name, "-c", c) for c in names})

    def running(self, *names: str) -> None:
        """Wait until the API server knows that Pods run.

        A kubelet before 1.22 that has not told so yet sends the signal of a deletion a minute late.
        """

        def look() -> bool:
            pods = self.pods()
            return all(
                pods.get(n, {"status": {}})["status"].get("phase") == "Running" for n in names
            )

        self.wait(f"Pods to run: {', '.join(names)}", look)

    def deleted(self, name: str) -> Ended:
        """Delete a Pod, and wait until its command has ended; its words are those in its logs."""
        self.running(name)
        path = f"{self.core}/pods"
        version = self.api.get(path)["metadata"]["resourceVersion"]
        self.api.delete(f"{path}/{name}")
        for event in self.api.watch(path, version, int(WAIT_S)):
            if event["object"]["metadata"]["name"] == name:
                last = event["object"]
                if "could not be located when the pod was deleted" in str(last["status"]):
                    # A busy kubelet of 1.20 removes a container before it has reported its end.
                    pytest.xfail(f"the kubelet lost the end of {name}")
                if event["type"] == "DELETED" or _ran(last):
                    return self._ended(last, {})
        pytest.fail(f"Pod {name} does not end\n{self.story()}")

    def tasks_ended(self, framework: Object) -> dict[str, Ended]:
        """The Pods of a Framework that is over, by role and number, as its status has them."""
        return {
            f"{role['name']}-{task['index']}": self._ended(_pod_of(task["attemptStatus"]), {})
            for role in task_statuses(framework)
            for task in role["taskStatuses"]
        }

    def _ended(self, pod: Object, said: Mapping[str, str]) -> Ended:
        uid = pod["metadata"]["uid"]
        return Ended(pod, next(self.logs.rglob(uid), self.logs / "local"), said)

    def wait_for_file(self, name: str) -> pathlib.Path:
        """Wait until a job has written a file of this name to its storage, while no Pod fails."""

        def look() -> pathlib.Path | None:
            failed = [n for n, p in self.pods().items() if p["status"].get("phase") == "Failed"]
            assert not failed, self.story()
            return next(self.data.rglob(name), None)

        return self.wait(f"the file {name}", look)

    def story(self) -> str:
        """What goes on in the namespace, for a failed test."""
        warnings = ("get", "events", "--field-selector", "type=Warning")
        out = [self.kubectl("get", "pods,jobs", "-o", "wide"), self.kubectl(*warnings)]
        for path in self.logs.rglob("*.log"):
            out.append(f"--- {path}\n{path.read_text()[-1000:]}")
        for name in self.pods():
            argv = ["kubectl", "--namespace", self.namespace, "logs", name, "--all-containers"]
            # A container that has not started has no log.
            said = subprocess.run(
                argv, env=self.env, capture_output=True, text=True, timeout=WAIT_S, check=False
            )
            out.append(f"--- log of {name}\n{said.stdout[-2000:]}")
        return "\n".join(out)


def _pod_of(attempt: Object) -> Object:
    """A Pod that the controller has deleted, as far as the status of its task has it."""
    containers = [
        {"name": each["name"], "state": {"terminated": {**each, "exitCode": each["code"]}}}
        for each in attempt["completionStatus"]["pod"]["containers"]
    ]
    addresses = {"podIP": attempt["podIP"], "hostIP": attempt["podHostIP"]}
    return {
        "metadata": {"name": attempt["podName"], "uid": attempt["podUID"]},
        "status": {"containerStatuses": containers, **addresses},
    }


def _ran(pod: Object) -> bool:
    return any("terminated" in c["state"] for c in pod["status"].get("containerStatuses", ()))


def give_folders(spec: Object, node: Node) -> None:
    """Give a Pod folders of the host: one that keeps its logs, as a log manager wants, and storage."""
    own = spec.setdefault("volumes", [])
    for name, folder, mounted in (
        ("host-log", node.logs, "/usr/local/pai/logs"), ("data", node.data, "/data"),
    ):  # fmt: skip
        there = {"name": name, "hostPath": {"path": str(folder)}}
        if any(volume["name"] == name for volume in own):
            own[:] = [there if volume["name"] == name else volume for volume in own]
            continue
        own.append(there)
        for container in (*spec["initContainers"], *spec["containers"]):
            container["volumeMounts"].append({"name": name, "mountPath": mounted})


def pod_specs(objects: Sequence[Object]) -> Iterator[Object]:
    """The specs of all Pods that manifests make."""
    for each in objects:
        spec = each.get("spec") or {}
        if each["kind"] == "Pod":
            yield spec
        elif each["kind"] == "Framework":
            yield from (role["task"]["pod"]["spec"] for role in spec["taskRoles"])
        elif "template" in spec:
            yield spec["template"]["spec"]


# --- fixtures ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def node_env(lab: Lab) -> Iterator[dict[str, str]]:
    """What the node's start exports, over this process's environment.

    A node that somebody else has started stays up; another one goes down with the test run.
    """
    there = lab("status")
    # The registry first: a node that is up already does not start one.
    exported = lab("registry", "up", "plain") + lab("node", "up")
    found = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", exported, re.MULTILINE)
    yield {**os.environ, **{name: "".join(shlex.split(value)) for name, value in found}}
    if "kubelet" not in there:
        lab("node", "down")
    if "apiserver" not in there:
        lab("api", "down")


@pytest.fixture(scope="session")
def api(node_env: dict[str, str]) -> Api:
    """The API server, as the administrator; the node is what OpenPAI makes of a worker."""
    env = node_env
    api = Api(env["LAB_API_URL"], env["LAB_API_CA"], env["LAB_ADMIN_TOKEN"])
    path = f"/api/v1/nodes/{env['LAB_NODE']}"
    api.merge(path, {"metadata": {"labels": {WORKER: "true"}}})
    resources = {"status": {"capacity": {FUSE: "1000"}, "allocatable": {FUSE: "1000"}}}
    api.merge(f"{path}/status", resources)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    if api.find(f"{classes}/{PRIORITY}") is None:
        api.create(classes, {"metadata": {"name": PRIORITY}, "value": 1})
    return api


@pytest.fixture(scope="session")
def pushed(podman: Podman, node_env: dict[str, str]) -> Callable[[str], str]:
    """Pushes an image of podman's into the node's registry; its name there changes with its content."""

    def push(name: str) -> str:
        number = podman.ok("image", "inspect", "--format={{.Id}}", name).strip()[:12]
        there = f"{node_env['LAB_REGISTRY']}/pairun/{number}:test"
        podman.ok("push", "--quiet", name, there)
        return there

    return push


@pytest.fixture(scope="session")
def runtime_image(pushed: Callable[[str], str], image: str) -> str:
    """The image of this checkout, in the node's registry."""
    return pushed(image)


@pytest.fixture(scope="session")
def debian(podman: Podman, node_env: dict[str, str]) -> str:
    """An image of a user, in the node's registry."""
    return podman.image("debian")


@pytest.fixture
def node(api: Api, node_env: dict[str, str], tmp_path: pathlib.Path) -> Iterator[Node]:
    """The node, with a namespace of this test's own and the rights that a Pod's init needs."""
    namespace = f"pairun-{uuid.uuid4().hex[:8]}"
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    found = Node(api, node_env, namespace, tmp_path)
    api.create(f"{found.core}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    # what OpenPAI grants its runtime
    found.grant("frameworks", GROUP.partition("/")[0], "frameworks", "get", "list", "watch")
    accounts = f"{found.core}/serviceaccounts"
    for name in (ACCOUNT, "default"):
        found.wait(f"the token of {name}", functools.partial(_has_token, api, f"{accounts}/{name}"))
    try:
        yield found
    finally:
        _remove(found)


def _has_token(api: Api, path: str) -> bool:
    return bool((api.find(path) or {}).get("secrets"))


def _remove(node: Node) -> None:
    """Delete the namespace; its Pods are killed at once, the rest goes without being waited for."""
    now = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for collection in (node.frameworks, f"{node.core}/pods"):
        node.api.call("DELETE", collection, now)
    node.api.delete(f"/api/v1/namespaces/{node.namespace}")


@pytest.fixture
def controller(node: Node) -> Iterator[FrameworkController]:
    """FrameworkController's part, played in this test's namespace."""
    with FrameworkController(node.api, node.namespace) as controller:
        yield controller


@pytest.fixture
def pairun(node: Node) -> Run:
    """Runs a command of pairun in this test's namespace; a person's variables decide where to."""

    def run(*argv: str, stdin: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pairun", *argv, "--namespace", node.namespace], cwd=ROOT,
            env=node.env, capture_output=True, text=True, input=stdin, timeout=90,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def manifests(node: Node, pairun: Run, runtime_image: str) -> Manifests:
    """The objects that `pairun manifest` makes of a job, with folders of the host."""

    def made(engine: str, document: Object, *options: str) -> list[Object]:
        argv = ["manifest", "-", "--engine", engine, "--name", JOB, "--image", runtime_image,
                "--kubernetes-version", KUBERNETES, "--log-host-path", str(node.logs)]  # fmt: skip
        text = yaml.safe_dump(document, sort_keys=False)
        text = pairun(*argv, *options, stdin=text)
        text = re.sub(rf"(schedulePortEnd\W+){DEFAULT_RANGE[1]}\b", rf"\g<1>{PORTS[1]}", text)
        objects = list(yaml.safe_load_all(text))
        for spec in pod_specs(objects):
            give_folders(spec, node)
        return objects

    return made


@pytest.fixture
def deployed(node: Node, tmp_path: pathlib.Path) -> None:
    """What `deploy/frameworks` has is in this namespace: account, rights, the cluster's layer."""
    folder = tmp_path / "deploy"
    folder.mkdir()
    base = os.path.relpath(ROOT / "deploy" / "frameworks", folder)
    overlay = {"namespace": node.namespace, "resources": [base]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    node.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(folder))


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
