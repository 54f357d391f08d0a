"""``pairun init`` sends Events where it may; where it may not, or nobody answers, nothing changes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.volume.journal import read_journal
from tests.fakeapi import Answer, Fake
from tests.stopwatch import Stopwatch

INIT = """phase: init
tasks:
  - id: data
    name: It fails
    download: {url: "http://127.0.0.1:1/a", dest: /tmp/never}
    retries: 0
"""
WAITS = """phase: init
tasks:
  - id: fails
    name: It fails when the test wants
    cmd: {script: 'until [ -e GO ]; do sleep 0.02; done; exit 3'}
    retries: 0
    on_exit:
      - id: later
        name: It ends when the test wants
        event: failure
        cmd: {script: 'until [ -e END ]; do sleep 0.02; done'}
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


def begin(tmp: Path, server: Events | None, playbook: str = INIT) -> subprocess.Popen[str]:
    """Start the init phase of a plain Pod."""
    (tmp / "root/playbooks").mkdir(parents=True)
    (tmp / "root/playbooks/init.yaml").write_text(playbook)
    volume = tmp / "pai"
    volume.mkdir()
    env = {
        "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(volume), "PAIRUN_BUNDLE": "",
        "RUNTIME_CONFIG": "commands: [echo hi]", "FC_POD_UID": "uid-1", "POD_NAME": "mnist-0",
        "POD_NAMESPACE": "team", "PAIRUN_API_CREDENTIALS": str(tmp / "none"),
        **({"KUBE_APISERVER_ADDRESS": server.fake.url} if server else {}),
    }  # fmt: skip
    argv = [sys.executable, "-m", "pairun", "init", "--root", str(tmp / "root")]
    return subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


def finish(running: subprocess.Popen[str]) -> str:
    """Wait for its end; returns its output."""
    try:
        return running.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise


def sent(tmp: Path) -> list[dict[str, Any]]:
    """The records of Events in the journal."""
    journal = read_journal(str(tmp / "pai/logs/uid-1/journal.jsonl"))
    return [r for r in journal if r["type"] == "event"]


def init(tmp: Path, server: Events | None) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the init phase of a plain Pod; returns exit code, output, and records of Events."""
    with begin(tmp, server) as running:
        output = finish(running)
    return running.returncode, output, sent(tmp)


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
    """The end of the phase waits a second for it, and kills it."""
    server = serve(None)
    code, _, records = init(tmp_path, server)
    assert (code, len(server.events)) == (1, 1)
    # A request may take 5 s; the phase was over before that one had failed.
    assert records == []


def test_without_an_api_server_nothing_is_sent(tmp_path: Path) -> None:
    """No process is started, and no record is written."""
    code, _, records = init(tmp_path, None)
    assert (code, records) == (1, [])


def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError


def below(pid: int) -> list[int]:
    """The children of a process."""
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGSTOP", "SIGKILL"])
@pytest.mark.parametrize("stage", ["before it sends", "while it sends", "after it has sent"])
def test_a_sender_that_is_stopped_or_killed(
    tmp_path: Path, serve: Callable[[int | None], Events], name: str, stage: str
) -> None:
    """Exit code and output are those of a phase without it, and nothing of it remains."""
    alone = tmp_path / "alone"
    places = {"GO": str(tmp_path / "go"), "END": str(tmp_path / "end")}
    playbook = WAITS
    for word, place in places.items():
        playbook = playbook.replace(word, place)
    server = serve(None if stage == "while it sends" else 201)
    with begin(tmp_path, server, playbook) as running:
        until(lambda: [n for phase in below(running.pid) for n in below(phase)])
        sender = below(below(running.pid)[0])[0]
        if stage != "before it sends":
            (tmp_path / "go").touch()
            until(lambda: sent(tmp_path) if stage == "after it has sent" else server.events)
        beside = [sender, *below(sender)]
        os.kill(sender, signal.Signals[name])
        (tmp_path / "go").touch()
        with Stopwatch() as watch:
            (tmp_path / "end").touch()
            output = finish(running)
    # The pause after a stopped sender is at most END_S.
    assert watch.within(3.0, work_s=1.0), watch
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in beside))
    with begin(alone, None, playbook) as other:
        expected = finish(other)
    assert running.returncode == other.returncode == 1
    assert re.sub(r"[0-9.]+ m?s", "", output) == re.sub(r"[0-9.]+ m?s", "", expected)
