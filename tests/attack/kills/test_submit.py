"""`pairun submit` is killed at each of its requests: what it left can be removed, and submitted again."""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell, shell
from tests.cli.test_init import ROOT
from tests.desk import JOB
from tests.effort import cases
from tests.engines.kubernetes.conftest import serve
from tests.engines.kubernetes.samples import Serve
from tests.engines.kubernetes.test_submitting import Store
from tests.fakeapi import Answer

__all__ = ["serve", "shell"]

REQUESTS = cases(2)
"""How many of its requests kill a submission; the last one leaves most."""

VERSION = {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}
PLURALS = ("pods", "secrets", "configmaps", "jobsets", "jobs", "frameworks", "podgroups")


class Cluster:
    """An API server that keeps objects, and kills its client at one of the requests that change them.

    Attributes:
        store: the objects.
        kill_at: the number of the request, from 1; 0 for none.
        applied: whether the request still has its effect.
        folder: where the job's file is.
    """

    def __init__(self, folder: Path, serve: Serve, shell: Shell) -> None:
        self.store = Store()
        self.kill_at, self.applied, self._changes = 0, False, 0
        self.folder, self._config, self._shell = folder, str(folder / "config"), shell
        self._client: subprocess.Popen[bytes] | None = None
        serve(self._answer)
        (folder / "job.yaml").write_text(JOB)

    def _answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path == "/version":
            return 200, VERSION
        if method == "GET":
            if path.endswith(PLURALS):
                items = [o for p, o in self.store.objects.items() if p.startswith(f"{path}/")]
                return 200, {"items": items, "metadata": {}}
            return self.store(method, path, query, body)
        self._changes += 1
        if self._changes != self.kill_at:
            return self._apply(method, path, query, body)
        if self.applied:
            self._apply(method, path, query, body)
        assert self._client is not None
        self._client.kill()
        return None

    def _apply(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if method == "PATCH":
            self.store.objects[path]["metadata"] |= body["metadata"]
            return 200, self.store.objects[path]
        answer = self.store(method, path, query, body)
        if method == "DELETE":
            self._collect()
        return answer

    def _collect(self) -> None:
        """Remove what belongs to objects that are gone, as Kubernetes' garbage collector does."""
        uids = {obj["metadata"]["uid"] for obj in self.store.objects.values()}
        for path, obj in list(self.store.objects.items()):
            owners = obj["metadata"].get("ownerReferences", ())
            if owners and all(owner["uid"] not in uids for owner in owners):
                del self.store.objects[path]

    def killed(self, *words: str) -> None:
        """Run a command as a process, which a request of its own kills."""
        self._changes = 0
        argv = [sys.executable, "-m", "pairun", *words, "--kubeconfig", self._config]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        self._client = subprocess.Popen(argv, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
        assert self._client.wait(120) == -signal.SIGKILL

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command in this process; returns its exit code and what it printed."""
        self._changes = self.kill_at = 0
        said = self._shell(*words, "--kubeconfig", self._config)
        return said.code, said.out + said.err

    @property
    def changes(self) -> int:
        """How many requests of the last command changed something."""
        return self._changes

    def described(self) -> str:
        """All objects, without what is random in them."""
        objects = copy.deepcopy(self.store.objects)
        for path, obj in objects.items():
            meta = obj["metadata"]
            meta.pop("uid")
            meta["annotations"].pop("pairun/submission")
            for owner in meta.get("ownerReferences", ()):
                owner.pop("uid")
            if path.endswith("-rendezvous"):
                obj.update(dict.fromkeys(("data", "stringData")))
        return json.dumps(objects, sort_keys=True, indent=1)


@pytest.fixture
def cluster(tmp_path: Path, serve: Serve, shell: Shell) -> Cluster:
    """A cluster without objects."""
    return Cluster(tmp_path, serve, shell)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pod", "jobset"])
def test_submit_killed_at_each_request(cluster: Cluster, engine: str) -> None:
    """A half-made job is refused by name; `delete` removes all of it, and the next submission is whole."""
    submit = ("submit", "job.yaml", "--engine", engine, "--image", "pairun:1")
    code, printed = cluster.run(*submit)
    assert code == 0, printed
    expected, requests = cluster.described(), cluster.changes
    others = random.Random(16).sample(range(1, requests), min(REQUESTS, requests) - 1)
    for number in [*others, requests]:
        cluster.store.objects.clear()
        cluster.kill_at, cluster.applied = number, number % 2 == 0
        cluster.killed(*submit[:1], str(cluster.folder / "job.yaml"), *submit[2:])
        was_left = bool(cluster.store.objects)
        code, printed = cluster.run(*submit)
        if was_left:
            assert code == 1
            assert "error[PR789]" in printed, (number, printed)
            assert "pairun delete mnist" in printed
            code, printed = cluster.run("delete", "mnist")
            assert code == 0, (number, printed)
            assert cluster.store.objects == {}, number
            code, printed = cluster.run(*submit)
        assert code == 0, (number, printed)
        assert cluster.described() == expected, number
