"""What the commands say and return while a real API server is away, lags behind, or takes rights back.

The table of docs/kubernetes.md has each row that is tried here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.attack.resources.test_clock import LIBRARIES
from tests.real.test_barrier_api import Pod
from tests.real.test_submit_api import PLACED, Place, app
from tests.surroundings import GIVEN

MANY = 60
"""Instances of the job whose submission is interrupted."""
WAIT_S = 60.0
OUTAGES = ("5 s to 4 minutes", "6 minutes")
HELD = {"metadata": {"finalizers": ["example.com/held"]}}
DOCS = Path(__file__).parents[2] / "docs" / "kubernetes.md"

Lab = Callable[..., str]


class Read(NamedTuple):
    """How a command ended, and what a person read."""

    code: int
    text: str


def _table() -> dict[tuple[str, str], Read]:
    """The page's rows: what happens and the command, to the exit code and the words."""
    pattern = r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \| (\d+)[^|]*\|$"
    rows = re.findall(pattern, DOCS.read_text(), re.MULTILINE)
    return {(what, command): Read(int(code), text) for what, command, text, code in rows}


def _check(what: str, command: str, found: Read, *, is_short: bool = False) -> None:
    """Compare with the page, whose ``...`` stands for anything; a short outage shows its end only."""
    row = _table()[what, command]
    assert found.code == row.code, found.text
    text = row.text.rpartition("...")[2] if is_short else row.text
    words = re.escape(text).replace(re.escape("..."), ".*")
    assert re.search(words, " ".join(found.text.split())), found.text


class Server:
    """The laboratory's kube-apiserver, whose etcd stays."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._file = Path(GIVEN.get("LAB_DIR") or "/var/tmp/pairun-lab") / "run/apiserver.pid"

    def stop(self) -> None:
        """End it at once."""
        os.kill(int(self._file.read_text().split()[0]), signal.SIGKILL)

    def start(self) -> None:
        """Start it again, and wait until it is ready."""
        self._lab("api", "up")


@pytest.fixture(scope="module")
def space(
    api_server: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A namespace with the service account that init wants."""
    made = Place(api_server, tmp_path_factory.mktemp("outages"), f"outages-{time.time_ns():x}")
    made.cluster.create("/api/v1/namespaces", {"metadata": {"name": made.name}})
    made.cluster.create(
        made.cluster.path("v1", "serviceaccounts"), {"metadata": {"name": "runtime-account"}}
    )
    yield made
    made.cluster.delete(
        path := f"/api/v1/namespaces/{made.name}", made.cluster.get(path)["metadata"]["uid"]
    )


class Command:
    """A command that runs."""

    def __init__(
        self, place: Place, command: str, *more: str, env: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            place.argv(command, *more), cwd=place.tmp, env={**os.environ, **(env or {})}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()

    def until(self, words: str) -> None:
        """Wait for a line with these words."""
        with self._news:
            seen = self._news.wait_for(lambda: any(words in line for line in self._lines), WAIT_S)
            assert seen, self._lines

    def read(self) -> Read:
        """Wait for the end."""
        try:
            code = self._process.wait(WAIT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()
        return Read(code, "".join(self._lines))


def _submit(place: Place, name: str, *more: str) -> Command:
    return Command(
        place, "submit", "job.yaml", "--engine", "pod", "--image", "p:1", "--name", name, *more
    )


def _pods(place: Place, name: str) -> list[dict[str, Any]]:
    return list(place.cluster.objects(place.cluster.path("v1", "pods"), f"pairun/job={name}"))


def test_each_row_of_the_table_is_tried() -> None:
    tried = {(f"the API server is away for {time}", c) for time in OUTAGES for c in STAGES}
    tried |= {(f"a plain Pod is deleted {stage}", "submit --wait") for stage in DELETED}
    tried |= {("the clock is an hour ahead", c) for c in ("doctor", "submit --wait", "pairun init")}
    tried |= {("the workload's controller is away for 15 s", "submit --wait")}
    tried |= {("a right is taken", "submit --wait"), ("the right is given back", "status --watch")}
    assert _table().keys() == tried


# --- an API server that is away -----------------------------------------------------------------------


class Outage:
    """Every stage of a job, during one outage of the API server.

    Attributes:
        seconds: how long the server is down.
        read: of each command.
        left: the objects of the interrupted submission after `delete`.
    """

    def __init__(self, seconds: int, place: Place, pod: Pod, server: Server) -> None:
        self.seconds = seconds
        self._place, self._pod = place, pod
        self.read: dict[str, Read] = {}
        waiting, following, deleting, held = self._begin()
        large = self._interrupted(server)
        began = time.monotonic()
        self.read["submit"] = large.read()
        self.read["status"] = Command(place, "status", held).read()
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        server.start()
        self._go_on(held)
        for stage, command in (("submit --wait", waiting), ("logs --follow", following),
                               ("delete --wait", deleting)):  # fmt: skip
            self.read[stage] = command.read()
        self.read["pairun init"] = Read(*pod.end())
        self.read["delete"] = Command(place, "delete", "large").read()
        self.left = [each for each in place.objects() if "large" in each]

    def _begin(self) -> tuple[Command, Command, Command, str]:
        place, name = self._place, f"j{self.seconds}"
        waiting = _submit(place, f"{name}-wait", "--wait")
        waiting.until("worker-0")
        following = Command(place, "logs", f"{name}-wait", "--follow")
        assert _submit(place, f"{name}-held").read().code == 0
        for each in _pods(place, f"{name}-held"):
            place.cluster.merge(place.cluster.path("v1", "pods", each["metadata"]["name"]), HELD)
        deleting = Command(place, "delete", f"{name}-held", "--wait")
        deleting.until("waiting for 2 Pods")
        self._pod.patience("10m")
        self._pod.create(self._pod.task(1))
        self._pod.start()
        self._pod.said("1 of 2 instances")
        return waiting, following, deleting, f"{name}-held"

    def _interrupted(self, server: Server) -> Command:
        """Submit a large job, and stop the server when its first Pod is there."""
        text = (self._place.tmp / "job.yaml").read_text()
        assert "instances: 2" in text
        (self._place.tmp / "large.yaml").write_text(
            text.replace("instances: 2", f"instances: {MANY}")
        )
        large = Command(
            self._place,
            "submit",
            "large.yaml",
            "--engine",
            "pod",
            "--image",
            "p:1",
            "--name",
            "large",
        )
        end = time.monotonic() + WAIT_S
        while not _pods(self._place, "large"):
            assert time.monotonic() < end
        server.stop()
        return large

    def _go_on(self, held: str) -> None:
        """Let everything end that waits."""
        place, name = self._place, f"j{self.seconds}-wait"
        self._pod.complete()
        for each in _pods(place, held):
            path = place.cluster.path("v1", "pods", each["metadata"]["name"])
            place.cluster.merge(path, {"metadata": {"finalizers": None}})
        for each in _pods(place, name):
            place.set_status(
                each["metadata"]["name"], phase="Succeeded", containerStatuses=[app(0)]
            )


@pytest.fixture(
    scope="module",
    params=[12, *(pytest.param(seconds, marks=pytest.mark.nightly) for seconds in (5, 30, 360))],
    ids=lambda seconds: f"{seconds}s",
)
def outage(
    request: pytest.FixtureRequest, space: Place, lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> Outage:
    """An API server that ends, and starts again after some time."""
    pod = Pod(space.api, space.name, tmp_path_factory.mktemp("pod"))
    return Outage(request.param, space, pod, Server(lab))


STAGES = (
    "submit",
    "status",
    "submit --wait",
    "logs --follow",
    "delete --wait",
    "pairun init",
    "delete",
)


@pytest.mark.parametrize("command", STAGES)
def test_a_command_during_an_outage_of_the_api_server(outage: Outage, command: str) -> None:
    long = OUTAGES[outage.seconds > 300]
    is_short = outage.seconds <= 5
    _check(f"the API server is away for {long}", command, outage.read[command], is_short=is_short)


def test_an_interrupted_submission_can_be_deleted(outage: Outage) -> None:
    """The error names what it could not remove."""
    assert "could not be removed: " in outage.read["submit"].text
    assert outage.left == []


# --- controllers, rights, Pods, clocks ----------------------------------------------------------------------------


def test_a_controller_that_comes_late(space: Place) -> None:
    """The laboratory's API server has none: the test plays it."""
    text = (space.tmp / "job.yaml").read_text()
    (space.tmp / "single.yaml").write_text(text.replace("instances: 2", "instances: 1"))
    waiting = Command(
        space,
        "submit",
        "single.yaml",
        "--engine",
        "job",
        "--image",
        "p:1",
        "--name",
        "late",
        "--wait",
    )
    waiting.until("no controller has acted")
    condition = {"type": "Complete", "status": "True"}
    path = space.cluster.path("batch/v1", "jobs", "late", "status")
    space.cluster.merge(path, {"status": {"succeeded": 1, "conditions": [condition]}})
    what = "the workload's controller is away for 15 s"
    _check(what, "submit --wait", waiting.read())


def test_rights_that_are_taken_end_a_wait_and_may_be_given_back(space: Place) -> None:
    """The job goes on, and is found again."""
    rbac, name = "rbac.authorization.k8s.io", {"metadata": {"name": "limited"}}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    space.cluster.create(space.cluster.path(f"{rbac}/v1", "roles"), {**name, "rules": rules})
    bound = {
        **name, "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "limited"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "limited"}],
    }  # fmt: skip
    bindings = space.cluster.path(f"{rbac}/v1", "rolebindings")
    uid = space.cluster.create(bindings, bound)["metadata"]["uid"]
    limited = Place(
        {**space.api, "KUBECONFIG": space.api["LAB_LIMITED_KUBECONFIG"]}, space.tmp, space.name
    )
    waiting = _submit(limited, "rights", "--wait", "--kubernetes-version", "1.20")
    waiting.until("worker-0")
    space.cluster.delete(f"{bindings}/limited", uid)
    _check("a right is taken", "submit --wait", waiting.read())
    space.cluster.create(bindings, bound)
    for each in _pods(space, "rights"):
        space.set_status(each["metadata"]["name"], phase="Succeeded", containerStatuses=[app(0)])
    end = time.monotonic() + WAIT_S
    while (seen := limited("status", "rights", "--watch")).returncode and time.monotonic() < end:
        pass
    _check("the right is given back", "status --watch", Read(seen.returncode, seen.stderr))


DELETED: dict[str, dict[str, Any]] = {
    "before it runs": {"phase": "Pending"},
    "while init runs": {
        "phase": "Pending", "initContainerStatuses": [{**app(None), "name": "init"}],
    },
    "while the command runs": {"phase": "Running", "containerStatuses": [app(None)]},
    "after its end": {"phase": "Succeeded", "containerStatuses": [app(0)]},
}  # fmt: skip
"""Stages of a Pod's life, and its status then."""


@pytest.mark.parametrize("stage", DELETED)
def test_a_plain_pod_is_deleted(space: Place, stage: str) -> None:
    name = f"gone-{stage.replace(' ', '-')}"
    waiting = _submit(space, name, "--wait")
    waiting.until("worker-0")
    space.set_status(f"{name}-worker-0", conditions=PLACED, **DELETED[stage])
    if stage == "after its end":
        waiting.until("succeeded")
    path = space.cluster.path("v1", "pods", f"{name}-worker-0")
    space.cluster.delete(path, space.cluster.get(path)["metadata"]["uid"])
    if stage == "after its end":
        space.set_status(f"{name}-worker-1", phase="Succeeded", containerStatuses=[app(0)])
    _check(f"a plain Pod is deleted {stage}", "submit --wait", waiting.read())


@pytest.fixture
def ahead() -> Mapping[str, str]:
    """Variables for a process whose clock is an hour ahead."""
    if not LIBRARIES:
        pytest.skip("needs Debian's package faketime")
    # A sleep fails in libfaketime 0.9.10 with FAKETIME_DONT_FAKE_MONOTONIC.
    return {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": "+1h"}


@pytest.mark.parametrize("command", ["doctor", "submit --wait"])
def test_a_clock_that_is_an_hour_ahead(
    space: Place, ahead: Mapping[str, str], command: str
) -> None:
    if command == "doctor":
        run = Command(space, "doctor", env=ahead)
    else:
        run = Command(space, "submit", "job.yaml", "--engine", "pod", "--image", "p:1",
                      "--name", "clock", "--wait", env=ahead)  # fmt: skip
        run.until("worker-0")
        for each in _pods(space, "clock"):
            space.set_status(
                each["metadata"]["name"], phase="Succeeded", containerStatuses=[app(0)]
            )
    _check("the clock is an hour ahead", command, run.read())


@pytest.mark.nightly
def test_a_barrier_with_a_clock_that_is_an_hour_ahead(
    space: Place, ahead: Mapping[str, str], tmp_path: Path
) -> None:
    pod = Pod(space.api, space.name, tmp_path)
    pod.env |= ahead
    pod.create(pod.task(0), pod.task(1))
    _check("the clock is an hour ahead", "pairun init", Read(*pod.run()))
