"""Jobs in a real API server: made, looked at, followed and deleted; the test is their kubelet."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pairun.cli.examples import EXAMPLES
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.kube.podstates import DELETED
from pairun.kube.tokenvolume import CREDENTIALS
from pairun.secrets.vault import Vault
from tests.desk import JOB as JOB_TEXT

# No node has what it asks for: where a scheduler runs, the Pods stay where they are all the same.
JOB = JOB_TEXT.replace("gpu: 0", "gpu: 9")
MERGE = "application/merge-patch+json"
PLACED = [{"type": "PodScheduled", "status": "True"}]
UNPLACED = [{
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient cpu.",
}]  # fmt: skip


@pytest.fixture(scope="module")
def api(lab: Callable[..., str]) -> Mapping[str, str]:
    """A real API server; it is left running, for others use it too."""
    lines = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", lab("api", "up"), re.MULTILINE)
    return {name: "".join(shlex.split(value)) for name, value in lines}


class Place:
    """A namespace of a test's own, and the commands in it."""

    def __init__(self, api: Mapping[str, str], tmp: Path, name: str) -> None:
        self.api = api
        self.tmp = tmp
        self.name = name
        self.cluster: Cluster = connect(Access(api["KUBECONFIG"], None, name), Vault())
        (tmp / "job.yaml").write_text(JOB)

    def argv(self, command: str, *more: str) -> list[str]:
        """The command line of a command of ours."""
        where = ["--kubeconfig", self.api["KUBECONFIG"], "--namespace", self.name]
        return [sys.executable, "-m", "pairun", command, *more, *where]

    def __call__(self, command: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        argv = self.argv(command, *more)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=self.tmp)
        assert "Traceback" not in done.stderr
        return done

    def submit(self, engine: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Submit the job."""
        return self("submit", "job.yaml", "--engine", engine, "--image", "pairun:1", *more)

    def objects(self) -> list[str]:
        """What there is in the namespace, but for what Kubernetes makes itself."""
        found = []
        for plural in ("pods", "secrets", "configmaps"):
            path = self.cluster.path("v1", plural)
            found += [f"{plural}/{o['metadata']['name']}" for o in self.cluster.objects(path, "")]
        path = self.cluster.path("frameworkcontroller.microsoft.com/v1", "frameworks")
        found += [f"frameworks/{o['metadata']['name']}" for o in self.cluster.objects(path, "")]
        return sorted(x for x in found if "kube-root" not in x and "-token-" not in x)

    def set_status(self, pod: str, **status: Any) -> None:
        """Be the kubelet of a Pod."""
        path = self.cluster.path("v1", "pods", pod, "status")
        self.cluster.merge(path, {"status": status})


@pytest.fixture
def place(api: Mapping[str, str], tmp_path: Path) -> Iterator[Place]:
    """A namespace with the service account that init wants."""
    name = f"submit-{time.time_ns():x}"
    place = Place(api, tmp_path, name)
    place.cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    path = place.cluster.path("v1", "serviceaccounts")
    place.cluster.create(path, {"metadata": {"name": "runtime-account"}})
    yield place
    for pod in place.cluster.objects(place.cluster.path("v1", "pods"), ""):
        meta = pod["metadata"]
        place.cluster.delete(place.cluster.path("v1", "pods", meta["name"]), meta["uid"])
    whole = place.cluster.get(f"/api/v1/namespaces/{name}")
    place.cluster.delete(f"/api/v1/namespaces/{name}", whole["metadata"]["uid"])


def app(code: int | None, **more: Any) -> dict[str, Any]:
    """The status of the user's container."""
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code, **more}}
    common = {"image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {"name": "app", **common, "state": state}


def test_a_job_is_made_whole_and_deleted_whole(place: Place) -> None:
    """Plain Pods: Secret, ConfigMap and two Pods, and nothing is left of them."""
    done = place.submit("pod")
    assert (done.returncode, done.stdout) == (0, "mnist\n"), done.stderr
    assert place.objects() == [
        "configmaps/mnist-job", "pods/mnist-worker-0", "pods/mnist-worker-1",
        "secrets/mnist-rendezvous",
    ]  # fmt: skip
    again = place.submit("pod")
    assert again.returncode == 1
    assert "PR789" in again.stderr
    assert len(place.objects()) == 4
    gone = place("delete", "mnist", "--wait")
    assert (gone.returncode, place.objects()) == (0, []), gone.stderr
    assert "Secret mnist-rendezvous" in gone.stdout
    absent = place("delete", "mnist")
    assert absent.returncode == 1
    assert "PR789" in absent.stderr


def test_what_belongs_to_a_framework_goes_with_it(place: Place) -> None:
    """Its Secret names it as the owner."""
    assert place.submit("framework", "--name", "mnist").returncode == 0
    path = place.cluster.path("frameworkcontroller.microsoft.com/v1", "frameworks", "mnist")
    uid = place.cluster.get(path)["metadata"]["uid"]
    secret = place.cluster.get(place.cluster.path("v1", "secrets", "mnist-rendezvous"))
    assert [o["uid"] for o in secret["metadata"]["ownerReferences"]] == [uid]
    assert len(base64.b64decode(base64.b64decode(secret["data"]["key"]))) == 32
    shown = place("status", "mnist", "--json")
    data = json.loads(shown.stdout)
    assert (data["engine"], data["state"], data["total"]) == ("framework", "waiting", 2)
    assert place("delete", "mnist").returncode == 0
    assert place.objects() == []


def test_what_cannot_be_made_leaves_nothing(place: Place) -> None:
    """A Pod that is larger than the namespace allows: the server's words, and no object is left."""
    limit = {"type": "Container", "max": {"memory": "1Mi"}}
    path = place.cluster.path("v1", "limitranges")
    place.cluster.create(path, {"metadata": {"name": "small"}, "spec": {"limits": [limit]}})
    done = place.submit("pod")
    assert done.returncode == 1
    assert "PR788" in done.stderr
    assert "maximum memory usage per Container is 1Mi" in done.stderr
    assert "removed again: Secret mnist-rendezvous, ConfigMap mnist-job" in done.stderr
    assert place.objects() == []


def test_the_status_of_every_instance(place: Place) -> None:
    """The scheduler's words, and the code of a command that ended with its last line."""
    place.submit("pod")
    place.set_status("mnist-worker-0", phase="Pending", conditions=UNPLACED)
    said = app(3, message="warming up\nCUDA out of memory")
    place.set_status("mnist-worker-1", phase="Failed", containerStatuses=[said])
    shown = place("status", "mnist")
    assert shown.returncode == 0
    assert "mnist in " in shown.stdout
    assert "is failed: worker-1 ended with 3" in shown.stdout
    rows = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert re.search("0/[0-9]+ nodes are available: [0-9]+ Insufficient", rows["worker-0"])
    assert rows["worker-1"].endswith("the command ended with 3: CUDA out of memory")


class Waiting:
    """A `submit --wait` that runs, and what it says."""

    def __init__(self, place: Place, *more: str) -> None:
        self.said = ""
        argv = place.argv(
            "submit", "job.yaml", "--engine", "pod", "--image", "pairun:1", "--wait", *more
        )
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.tmp
        )
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.said += line
                self._news.notify_all()

    def until(self, words: str) -> None:
        """Wait for words."""
        with self._news:
            assert self._news.wait_for(lambda: words in self.said, 60), self.said

    def code(self) -> int:
        """Wait for the end; the exit code."""
        try:
            return self.process.wait(60)
        finally:
            self.close()

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def test_a_job_that_is_followed_to_its_failure(place: Place) -> None:
    """From the scheduler's trouble to the exit code, which is the job's."""
    waiting = Waiting(place)
    waiting.until("worker-0")
    place.set_status("mnist-worker-0", phase="Pending", conditions=UNPLACED)
    waiting.until("unschedulable: 0/")
    for n in (0, 1):
        pod = f"mnist-worker-{n}"
        place.set_status(pod, phase="Running", conditions=PLACED, containerStatuses=[app(None)])
    waiting.until("running (2 of 2 running)")
    place.set_status("mnist-worker-1", phase="Failed", containerStatuses=[app(42)])
    assert waiting.code() == 42
    waiting.until("the job has failed: worker-1 ended with 42 (exit code 42)")
    waiting.until("plain Pods are not stopped: worker-0 may still run; `pairun status mnist ")


def test_a_job_that_is_followed_to_its_success(place: Place) -> None:
    """Zero, when all instances have succeeded."""
    waiting = Waiting(place, "--timeout", "2m")
    waiting.until("worker-0")
    for n in (0, 1):
        place.set_status(f"mnist-worker-{n}", phase="Succeeded", containerStatuses=[app(0)])
    assert waiting.code() == 0
    waiting.until("the job has succeeded")


def test_an_image_that_does_not_come_ends_the_wait(place: Place) -> None:
    """With the reason, after --stuck-timeout; the job stays."""
    waiting = Waiting(place, "--stuck-timeout", "3s")
    waiting.until("worker-0")
    # A scheduler that runs would take the Pod for one without a node again.
    # The controller of a whole cluster ends Pods of a node that is missing, after 40 s at the first time.
    target = {"apiVersion": "v1", "kind": "Node", "name": f"nowhere-{time.time_ns():x}"}
    binding = {"metadata": {"name": "mnist-worker-1"}, "target": target}
    place.cluster.create(place.cluster.path("v1", "pods", "mnist-worker-1", "binding"), binding)
    pull = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    init = {"name": "init", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [{**init, "state": pull}]
    for _ in range(30):
        # A scheduler that was at the Pod already writes its own verdict over this once.
        place.set_status(
            "mnist-worker-1", phase="Pending", conditions=PLACED, initContainerStatuses=statuses
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            waiting.process.wait(1)
            break
    assert waiting.code() == 1
    waiting.until("worker-1 is stuck for ")
    waiting.until("ErrImagePull: no such image; the job continues; `pairun status mnist ")
    assert "pods/mnist-worker-1" in place.objects()


def test_ctrl_c_leaves_the_job(place: Place) -> None:
    """And says how to look again."""
    waiting = Waiting(place)
    waiting.until("worker-0")
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.code() == 130
    waiting.until("the job continues; `pairun status mnist --kubeconfig")
    assert "pods/mnist-worker-0" in place.objects()


def test_a_time_that_is_over_leaves_the_job(place: Place) -> None:
    """With --timeout the following ends, and the job does not."""
    done = place.submit("pod", "--wait", "--timeout", "1s")
    assert done.returncode == 1
    assert "after 1s the job is still waiting" in done.stderr
    assert "pods/mnist-worker-0" in place.objects()


def test_a_job_that_is_deleted_while_it_is_followed(place: Place) -> None:
    waiting = Waiting(place)
    waiting.until("worker-0")
    assert place("delete", "mnist").returncode == 0
    assert waiting.code() == 1
    # It may see the Pods' end before that of the ConfigMap.
    assert "PR789" in waiting.said or DELETED in waiting.said
    assert "may continue" not in waiting.said


def test_a_pod_without_a_kubeconfig(place: Place) -> None:
    """Its service account submits a job into its own namespace, and is told which right it lacks."""
    account = place.cluster.path("v1", "serviceaccounts", "runtime-account")
    made = place.cluster.create(f"{account}/token", {"spec": {}})
    secrets = place.tmp / "secrets"
    secrets.mkdir()
    (secrets / "token").write_text(made["status"]["token"])
    (secrets / "namespace").write_text(place.name)
    authority = base64.b64decode(
        re.findall("certificate-authority-data: (.*)", Path(place.api["KUBECONFIG"]).read_text())[0]
    )
    (secrets / "ca.crt").write_bytes(authority)
    host = urlsplit(place.cluster.server)
    env = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"} | {
        "HOME": str(place.tmp),
        "KUBERNETES_SERVICE_HOST": str(host.hostname),
        "KUBERNETES_SERVICE_PORT": str(host.port),
    }
    mounted = 'mkdir -p "$0"; mount --bind "$1" "$0"; shift; exec "$@"'
    submit = ["submit", "job.yaml", "--engine", "pod", "--image", "pairun:1"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["unshare", "--mount", "sh", "-ec", mounted, CREDENTIALS, str(secrets),
             sys.executable, "-m", "pairun", *submit],
            capture_output=True, text=True, timeout=60, cwd=place.tmp, env=env,
        )  # fmt: skip

    done = run()
    assert (done.returncode, "not permitted" in done.stderr) == (1, True), done.stderr
    rules = [{"apiGroups": [""], "verbs": ["*"], "resources": ["pods", "secrets", "configmaps"]}]
    names = {"metadata": {"name": "submits"}}
    rbac = "rbac.authorization.k8s.io"
    place.cluster.create(place.cluster.path(f"{rbac}/v1", "roles"), {**names, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "runtime-account", "namespace": place.name}
    role = {"apiGroup": rbac, "kind": "Role", "name": "submits"}
    place.cluster.create(
        place.cluster.path(f"{rbac}/v1", "rolebindings"),
        {**names, "subjects": [subject], "roleRef": role},
    )
    done = run()
    assert (done.returncode, done.stdout) == (0, "mnist\n"), done.stderr
    assert "pods/mnist-worker-0" in place.objects()
    (secrets / "ca.crt").write_text("")
    assert "error[PR786]: this Pod's service account" in run().stderr


def test_a_pod_without_a_log(place: Place) -> None:
    """Why there is none, and exit code 1."""
    place.submit("pod")
    done = place("logs", "mnist")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search("worker-0: no log: it is (pending|unschedulable)", done.stderr)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("LAB_LIMITED_KUBECONFIG", None, "verb"),
        ("KUBECONFIG", ("admin-token", "wrong-token"), "does not accept this login"),
        ("KUBECONFIG", (":6443", ":1"), "the connection is refused"),
        ("KUBECONFIG", ("127.0.0.1", "no.such.invalid"), "its name cannot be resolved"),
        ("KUBECONFIG", ("certificate-authority-data", "x"), "its certificate is not trusted"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["status", "logs", "delete", "submit"])
def test_a_kubeconfig_that_leads_nowhere(
    place: Place, tmp_path: Path, command: str, option: str, value: Any, words: str
) -> None:
    """Rights, tokens, addresses, names, certificates: one sentence and exit code 1."""
    text = Path(place.api[option]).read_text()
    path = tmp_path / "config"
    path.write_text(text.replace(*value) if value else text)
    more = ["job.yaml", "--engine", "pod", "--image", "p:1"] if command == "submit" else ["mnist"]
    argv = [sys.executable, "-m", "pairun", command, *more, "--kubeconfig", str(path)]
    done = subprocess.run(
        [*argv, "--namespace", place.name], capture_output=True, text=True, timeout=60,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert words in done.stderr
    assert re.search(r"error\[PR78[678]\]", done.stderr)
    assert "-token" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_examples_of_the_help_work(place: Place) -> None:
    """In order, with Pods in place of Jobs, for which this server may be too old.

    No node runs here, so that there is no log to read, and `doctor` finds much missing.
    """
    (place.tmp / "job.yaml").unlink()
    config = place.tmp / "config"
    shutil.copy(place.api["KUBECONFIG"], config)
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(place.tmp),
        "KUBECONFIG": str(config),
    }  # fmt: skip

    def bash(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=place.tmp,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )

    bash(f"kubectl config set-context --current --namespace={place.name}")
    # As for `JOB`: no node has so many GPUs.
    assert bash("pairun new job && sed -i 's/gpu: 0/gpu: 9/' job.yaml").returncode == 0
    for command in ("submit", "status", "logs", "delete", "doctor"):
        for example in EXAMPLES[command]:
            done = bash(example.command.replace("--engine job", "--engine pod"))
            assert done.returncode == 0 or command in ("logs", "doctor"), done.stderr
            assert "usage:" not in done.stderr
    assert place.objects() == []
