"""A container that restarts in its Pod, where init does not run again, holds the barrier again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.rendezvous.peers import read_place
from tests.inject.workloads import injected, summary
from tests.webserver import Answer, Asked, WebServer

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: OnFailure
      containers:
      - {name: main, image: a, command: [sh, -c, 'echo "R=$PAIRUN_RESTARTS $MASTER_ADDR $PAI_HOST_IP_worker_0"; exit 7']}
"""
INDEX = "batch.kubernetes.io/job-completion-index"
LABELS = {"batch.kubernetes.io/job-name": "train", "job-name": "train"}
RUNS: dict[str, Any] = {"running": {}}
CRASHED: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}


class Pods:
    """An API server with the Pods of the Job.

    Attributes:
        state: of the other Pod's main container.
        ip: of the other Pod.
        labels: of both Pods, but not their numbers.
        index: the annotation or label with a Pod's number.
        earlier: labels of the Pods of an earlier start, which are listed until `repaired`.
        looks: how often somebody listed the Pods.
        repaired: the state from this look on.
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = RUNS
        self.ip = "10.0.0.1"
        self.labels = LABELS
        self.index = INDEX
        self.earlier: dict[str, str] | None = None
        self.looks = 0
        self.repaired: tuple[int, dict[str, Any]] | None = None

    def listed(self, selector: str) -> dict[str, Any]:
        """The answer to a list."""
        self.looks += 1
        is_repaired = bool(self.repaired and self.looks >= self.repaired[0])
        if self.repaired and is_repaired:
            self.state = self.repaired[1]
        own = self._pod(1, "10.0.0.2", CRASHED, self.labels)
        other = self._pod(0, self.ip, self.state, self.labels)
        if self.earlier and not is_repaired:
            other = self._pod(0, "10.0.0.8", RUNS, self.earlier)
        wanted = dict(pair.split("=") for pair in selector.split(","))
        return {
            "items": [p for p in (other, own) if wanted.items() <= p["metadata"]["labels"].items()]
        }

    def _pod(
        self, number: int, ip: str, state: dict[str, Any], labels: dict[str, str]
    ) -> dict[str, Any]:
        index = {self.index: str(number)}
        labels = labels | index
        sidecar = {"name": "sidecar"}
        main = {"name": "main", "volumeMounts": [{"name": "p", "mountPath": "/usr/local/pai"}]}
        statuses = [{"name": "sidecar", "state": CRASHED}, {"name": "main", "state": state}]
        meta = {"name": f"train-{number}", "uid": f"uid-{number}", "labels": labels}
        return {
            "metadata": {**meta, "annotations": index},
            "spec": {"containers": [sidecar, main], "nodeName": "n"},
            "status": {"podIP": ip, "phase": "Running", "containerStatuses": statuses},
        }


@pytest.fixture
def pods() -> Iterator[tuple[Pods, str]]:
    """The API server, and its address."""
    known = Pods()

    def reply(asked: Asked) -> Answer:
        listed = known.listed(asked.query["labelSelector"][0])
        return Answer(200, body=json.dumps(listed).encode())

    with WebServer(reply) as server:
        yield known, server.url


class Gang:
    """The second Pod of a workload: its init container, and any number of starts of its main one."""

    def __init__(self, address: str, folder: Path, text: str = JOB) -> None:
        self._folder = folder
        self._meta = LABELS | {INDEX: "1"}
        self._api = {"KUBE_APISERVER_ADDRESS": address}
        made = injected(text, barrier=True, env=["torchrun"], key_secret=None)
        self.pod = _template(next(yaml.safe_load_all(made)))["spec"]
        (folder / "token").mkdir()

    def place(self, labels: Mapping[str, str]) -> None:
        """Give the Pod the labels of another start, as its controller does."""
        self._meta = dict(labels)

    def init(self) -> str:
        """Run the init container, which must succeed."""
        done = self._run(["init"], self.pod["initContainers"][-1])
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, code: int = 7) -> str:
        """Start the main container; what it said."""
        app = self.pod["containers"][0]
        done = self._run(["runtime", *app["command"][1:]], app)
        assert done.returncode == code, done.stdout
        return done.stdout

    def _field(self, path: str) -> str:
        if match := re.fullmatch(r"metadata\.(?:labels|annotations)\['(.*)'\]", path):
            return self._meta.get(match[1], "")
        return _FIELDS[path]

    def _run(
        self, words: list[str], container: Mapping[str, Any]
    ) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(self._folder / "pai"), **self._api}
        for variable in container["env"]:
            field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            env[variable["name"]] = self._field(field) if field else variable.get("value", "")
        # The node's kubelet would mount a token there.
        env["PAIRUN_API_CREDENTIALS"] = str(self._folder / "token")
        return subprocess.run(
            [sys.executable, "-P", "-m", "pairun", *words], env=env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip


_FIELDS = {
    "metadata.uid": "uid-1", "metadata.name": "train-1", "status.podIP": "10.0.0.2",
    "metadata.namespace": "default",
}  # fmt: skip


def _template(part: Any) -> Any:
    """The first Pod template in a manifest."""
    if isinstance(part, dict):
        if "containers" in part.get("spec", {}):
            return part
        part = list(part.values())
    items = part if isinstance(part, list) else []
    return next(filter(None, map(_template, items)), None)


@pytest.mark.slow
def test_a_restart_waits_until_the_others_run(pods: tuple[Pods, str], tmp_path: Path) -> None:
    """The first start asks nobody; a restart waits for the other one, and takes its new address."""
    known, address = pods
    gang = Gang(address, tmp_path)
    gang.init()
    looks = known.looks
    said = gang.start()
    assert "R= 10.0.0.1 10.0.0.1" in said
    assert known.looks == looks

    known.state, known.ip, known.repaired = CRASHED, "10.0.0.9", (looks + 3, RUNS)
    said = gang.start()
    assert "1 of 2 instances run" in said
    assert "all 2 instances run; 1 have new addresses" in said
    assert "R=1 10.0.0.9 10.0.0.9" in said
    assert known.looks >= looks + 3


TEMPLATE = "{spec: {restartPolicy: Never, containers: [{name: main, image: a, command: [sh, -c, exit 7]}]}}"
SET, GROUP = "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
RESTARTS = [
    (
        (
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec: "
            f"{{replicatedJobs: [{{name: w, replicas: 2, template: {{spec: {{template: {TEMPLATE}}}}}}}]}}"
        ),
        {f"{SET}/jobset-name": "train", f"{SET}/replicatedjob-name": "w", INDEX: "0"},
        (f"{SET}/restart-attempt", "0", "1"),
        f"{SET}/job-index",
    ),
    (
        (
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: train}\n"
            f"spec: {{leaderWorkerTemplate: {{size: 2, workerTemplate: {TEMPLATE}}}}}"
        ),
        {f"{GROUP}/name": "train", f"{GROUP}/template-revision-hash": "a"},
        (f"{GROUP}/group-key", "old", "new"),
        f"{GROUP}/worker-index",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "labels", "attempt", "index"), RESTARTS)
def test_a_gang_that_its_controller_restarts(
    text: str,
    labels: dict[str, str],
    attempt: tuple[str, str, str],
    index: str,
    pods: tuple[Pods, str],
    tmp_path: Path,
) -> None:
    """A new Pod does not take a Pod of the earlier start, which still runs, for one of its gang."""
    known, address = pods
    key, old, new = attempt
    known.labels, known.earlier, known.index = labels | {key: new}, labels | {key: old}, index
    known.repaired = (3, RUNS)
    gang = Gang(address, tmp_path, text)
    gang.place(known.labels | {index: "1"})
    gang.init()
    assert known.looks >= 3
    cluster = (tmp_path / "pai" / "runtime.d" / "cluster.json").read_text()
    assert ("10.0.0.8" in cluster, "10.0.0.1" in cluster) == (False, True)
    place = read_place(str(tmp_path / "pai"))
    assert place is not None
    assert new in f"{place.job.uid} {place.job.attempt}"


def test_the_token_goes_to_containers_that_restart() -> None:
    """A container that is never restarted in its Pod gets no token, and no task."""
    restarting, never = (
        next(yaml.safe_load_all(injected(text, barrier=True)))["spec"]["template"]["spec"]
        for text in (JOB, JOB.replace("OnFailure", "Never"))
    )
    mounts = [m["name"] for m in restarting["containers"][0]["volumeMounts"]]
    assert "pairun-token" in mounts
    assert "pairun-token" not in [m["name"] for m in never["containers"][0]["volumeMounts"]]
    assert "PAIRUN_GANG_RESTARTS" not in str(never)
    assert any("get the token" in line for line in summary(JOB, barrier=True))


@pytest.mark.parametrize(
    ("fields", "restarts"),
    [
        ("restartPolicy: Always", True),
        ("restartPolicy: Never", False),
        ("restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]", True),
        ("restartPolicyRules: [{action: RestartAllContainers}]", False),
    ],
)
def test_a_containers_own_policy(fields: str, restarts: bool) -> None:
    """The policy and the rules of the main container count before the Pod's."""
    text = JOB.replace("OnFailure", "Never").replace("name: main,", f"name: main, {fields},")
    assert ("PAIRUN_GANG_RESTARTS" in injected(text, barrier=True)) is restarts
