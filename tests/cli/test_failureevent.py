"""The Event about a command that failed: what it says, about what, and when none is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.cli.summary import failure_note, send_failure
from pairun.kube.events import Note
from pairun.net.podevents import send_event
from pairun.secrets.vault import Vault
from pairun.volume.journal import read_journal
from tests.fakeapi import Answer, Fake, status

OWNERS: dict[str, tuple[str, str, str]] = {
    "/api/v1/namespaces/team/pods/train-0": ("batch/v1", "Job", "train"),
    "/apis/batch/v1/namespaces/team/jobs/train": ("jobset.x-k8s.io/v1alpha2", "JobSet", "all"),
}


class Server:
    """Takes Events, and knows which workload owns the Pod.

    Attributes:
        events: what came.
        readable: the paths that the account may read.
        status: of an Event that is created; None for no answer.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.readable = set(OWNERS)
        self.status: int | None = 201
        self.over = threading.Event()
        self.fake = Fake(self._answer)

    def _answer(self, method: str, path: str, _: Any, event: Any) -> Answer:
        if method == "GET":
            if path not in self.readable:
                return status(403, "Forbidden")
            version, kind, name = OWNERS[path]
            owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
            references = [{"kind": "Other"}, {**owner, "controller": True}]
            return 200, {"metadata": {"namespace": "team", "ownerReferences": references}}
        if self.status is None:
            self.over.wait(30)
            return None
        self.events.append(event)
        return self.status, event if self.status == 201 else {}


@pytest.fixture
def server() -> Iterator[Server]:
    """An API server."""
    made = Server()
    yield made
    made.over.set()
    made.fake.close()


def container(tmp: Path, server: Server, command: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run both phases of a plain Pod; returns exit code, the records of Events, and the message."""
    (tmp / "api").mkdir()
    (tmp / "api" / "namespace").write_text("team")
    env = {
        "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(tmp / "pai"), "PAIRUN_BUNDLE": "",
        "RUNTIME_CONFIG": json.dumps({"commands": [command]}), "FC_POD_UID": "uid-1",
        "FC_POD_NAME": "train-0", "PAIRUN_TERMINATION_LOG": str(tmp / "message"),
        "PAIRUN_API_CREDENTIALS": str(tmp / "api"),
    }  # fmt: skip
    (tmp / "pai").mkdir()
    program = [sys.executable, "-m", "pairun"]
    subprocess.run([*program, "init"], env=env, check=True, capture_output=True)
    env["KUBE_APISERVER_ADDRESS"] = server.fake.url
    code = subprocess.run([*program, "runtime"], env=env, capture_output=True, check=False)
    journal = read_journal(str(tmp / "pai/logs/uid-1/journal.jsonl"))
    records = [r for r in journal if r["type"] == "event"]
    return code.returncode, records, (tmp / "message").read_text()


MISSING = "echo ModuleNotFoundError: No module named \"'apex'\" >&2; exit 9"


@pytest.mark.slow
def test_the_pod_and_its_workload(tmp_path: Path, server: Server) -> None:
    """The Event says what the diagnosis says; the one of the topmost workload names the Pod."""
    code, (record,), message = container(tmp_path, server, MISSING)
    assert code == 9
    of_pod, of_set = server.events
    assert of_pod["involvedObject"]["name"] == "train-0"
    assert (of_pod["reason"], of_pod["type"]) == ("CommandFailed", "Warning")
    assert of_pod["message"].startswith(
        "the command exited with 9: the Python package apex is missing"
    )
    assert "module_not_found" in of_pod["message"]
    assert "module_not_found" in message
    assert of_set["involvedObject"] == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "all", "uid": "uid-all",
        "namespace": "team",
    }  # fmt: skip
    assert of_set["related"] == of_pod["involvedObject"]
    assert of_set["message"] == f"train-0: {of_pod['message']}"
    assert of_set["metadata"]["name"].startswith("all.")
    assert (record["message"], "because" in record) == (of_pod["message"], False)


@pytest.mark.slow
def test_a_refusal_is_in_the_journal(tmp_path: Path, server: Server) -> None:
    """The container ends as it would have, and nothing more is asked."""
    server.status = 403
    code, (record,), _ = container(tmp_path, server, MISSING)
    assert (code, len(server.events)) == (9, 1)
    assert "may not create events in the namespace team" in record["because"]


@pytest.mark.slow
def test_a_server_that_does_not_answer(tmp_path: Path, server: Server) -> None:
    """The exit code and the full message are there; the Event is given up."""
    server.status = None
    code, records, message = container(tmp_path, server, MISSING)
    assert code == 9
    assert "module_not_found" in message
    assert all("because" in record for record in records)


@pytest.mark.parametrize(
    ("klass", "count"), [("unknown", 1), ("peer_lost", 0), ("terminated_sigterm", 0)]
)
def test_what_another_instance_caused(
    tmp_path: Path, server: Server, klass: str, count: int
) -> None:
    """It is that instance's Event; an unknown cause is one. A secret is masked."""
    env = {
        "KUBE_APISERVER_ADDRESS": server.fake.url,
        "POD_NAMESPACE": "team", "POD_NAME": "train-0", "PAIRUN_API_CREDENTIALS": "/none",
    }  # fmt: skip
    server.readable = set()
    vault = Vault()
    vault.add(["hunter2-hunter2"])
    diagnosis = {"class": klass, "headline": "login hunter2-hunter2 failed", "exit_code": 3}
    send_failure(diagnosis, str(tmp_path), env, vault)
    assert len(server.events) == count
    assert "hunter2" not in str(server.events)


@pytest.mark.parametrize(
    ("readable", "kinds"),
    [(set(), ["Pod"]), ({"/api/v1/namespaces/team/pods/train-0"}, ["Pod", "Job"])],
)
def test_an_account_that_may_see_less(server: Server, readable: set[str], kinds: list[str]) -> None:
    """The Event is about what the account may see."""
    server.readable = readable
    env = {
        "KUBE_APISERVER_ADDRESS": server.fake.url,
        "POD_NAMESPACE": "team", "POD_NAME": "train-0", "PAIRUN_API_CREDENTIALS": "/none",
    }  # fmt: skip
    records: list[dict[str, Any]] = []
    assert send_event(Note("X", "y", True), env, 30.0, records.append)
    assert records == [{"type": "event", "reason": "X", "message": "y"}]
    assert [e["involvedObject"]["kind"] for e in server.events] == kinds


def test_pods_that_say_the_same(server: Server) -> None:
    """Their workload has one Event of it: the second one has the same name."""
    for number in (0, 1):
        OWNERS[f"/api/v1/namespaces/team/pods/train-{number}"] = ("batch/v1", "Job", "train")
        server.readable.add(f"/api/v1/namespaces/team/pods/train-{number}")
        env = {
            "KUBE_APISERVER_ADDRESS": server.fake.url,
            "POD_NAMESPACE": "team", "POD_NAME": f"train-{number}", "PAIRUN_API_CREDENTIALS": "/none",
        }  # fmt: skip
        assert send_event(Note("X", "y", True), env, 30.0, lambda _: None)
    names = [e["metadata"]["name"] for e in server.events if "related" in e]
    assert len(names) == 2
    assert len(set(names)) == 1


def test_a_diagnosis_is_a_warning_with_its_advice() -> None:
    """The record of a command that failed."""
    diagnosis = {"exit_code": 3, "class": "gpu_oom", "headline": "no memory", "advice": "use less"}
    assert failure_note(diagnosis) == Note(
        "CommandFailed", "the command exited with 3: no memory (gpu_oom); use less", warning=True
    )
