"""``pairun init`` sends Events where it may; where it may not, or nobody answers, nothing changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.volume.journal import read_journal
from tests.fakeapi import Answer, Fake

INIT = """phase: init
tasks:
  - id: data
    name: It fails
    download: {url: "http://127.0.0.1:1/a", dest: /tmp/never}
    retries: 0
"""
REFUSED = {"kind": "Status", "reason": "Forbidden", "message": "no"}


class Events:
    """Takes Events, refuses them, or never answers.

    Attributes:
        events: what came.
    """

    def __init__(self, status: int | None) -> None:
        self._status = status
        self.events: list[dict[str, Any]] = []
        self.over = threading.Event()
        self.fake = Fake(self._answer)

    def _answer(self, _: str, path: str, __: Any, body: Any) -> Answer:
        self.events.append({"path": path, **body})
        if self._status is None:
            self.over.wait(30)
            return None
        return self._status, self.events[-1] if self._status == 201 else REFUSED


@pytest.fixture
def serve() -> Iterator[Callable[[int | None], Events]]:
    """Start an API server."""
    started: list[Events] = []

    def start(status: int | None) -> Events:
        started.append(Events(status))
        return started[-1]

    yield start
    for server in started:
        server.over.set()
        server.fake.close()


def init(tmp: Path, server: Events | None) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the init phase of a plain Pod; returns exit code, output, and records of Events."""
    (tmp / "root/playbooks").mkdir(parents=True)
    (tmp / "root/playbooks/init.yaml").write_text(INIT)
    volume = tmp / "pai"
    volume.mkdir()
    env = {
        "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(volume), "PAIRUN_BUNDLE": "",
        "RUNTIME_CONFIG": "commands: [echo hi]", "FC_POD_UID": "uid-1", "POD_NAME": "mnist-0",
        "POD_NAMESPACE": "team", "PAIRUN_API_CREDENTIALS": str(tmp / "none"),
        **({"KUBE_APISERVER_ADDRESS": server.fake.url} if server else {}),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "init", "--root", str(tmp / "root")],
        env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    journal = read_journal(str(volume / "logs/uid-1/journal.jsonl"))
    return done.returncode, done.stdout + done.stderr, [r for r in journal if r["type"] == "event"]


def test_a_failed_task_is_an_event_of_the_pod(
    tmp_path: Path, serve: Callable[[int | None], Events]
) -> None:
    """Its name, namespace and uid are those of the Pod; the journal has what was sent."""
    server = serve(201)
    code, _, records = init(tmp_path, server)
    assert code == 1
    (event,) = server.events
    assert event["path"] == "/api/v1/namespaces/team/events"
    assert (event["type"], event["reason"]) == ("Warning", "TaskFailed")
    involved = {"apiVersion": "v1", "kind": "Pod", "name": "mnist-0", "namespace": "team"}
    assert event["involvedObject"] == {**involved, "uid": "uid-1"}
    assert event["message"].startswith("data failed: ")
    (record,) = records
    assert (record["message"], "because" in record) == (event["message"], False)


def test_a_refusal_is_in_the_journal_and_nowhere_else(
    tmp_path: Path, serve: Callable[[int | None], Events]
) -> None:
    """The phase ends as it would have, and prints the same."""
    code, output, records = init(tmp_path, serve(403))
    assert code == 1
    assert "event" not in output.lower()
    assert "may not create events in the namespace team" in records[0]["because"]


def test_a_server_that_never_answers_delays_nothing(
    tmp_path: Path, serve: Callable[[int | None], Events]
) -> None:
    """The end of the phase waits a second for it, and leaves it behind."""
    server = serve(None)
    code, _, records = init(tmp_path, server)
    assert (code, len(server.events)) == (1, 1)
    # A request may take 5 s; the phase was over before that one had failed.
    assert records == []


def test_without_an_api_server_nothing_is_sent(tmp_path: Path) -> None:
    """No process is started, and no record is written."""
    code, _, records = init(tmp_path, None)
    assert (code, records) == (1, [])
