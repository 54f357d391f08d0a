"""The module barrier, with the members of a gang as processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.host.context import HostContext
from pairun.module import CheckModule

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from tests.modules.conftest import Harness

ARGS = {"backend": "local", "interval": "20ms", "timeout": "20s"}


@pytest.fixture
def gang(harness: Harness) -> Path:
    """A gang of two workers and a server, with nobody there."""
    roles = [{"name": "worker", "taskNumber": 2}, {"name": "ps", "taskNumber": 1}]
    framework = {
        "metadata": {"name": "fw", "annotations": {"config": "x"}},
        "spec": {"taskRoles": roles},
        "status": {"state": "AttemptRunning"},
    }
    place = harness.tmp / "gang"
    place.mkdir()
    (place / "framework.json").write_text(json.dumps(framework))
    return place


def variables(gang: Path, role: str, index: int, pod: str = "uid") -> dict[str, str]:
    """The environment of one member."""
    return {
        "PAIRUN_GANG_DIR": str(gang),
        "PAIRUN_HOST_IP": f"10.0.0.{index + (1 if role == 'worker' else 9)}",
        "FC_TASKROLE_NAME": role,
        "FC_TASK_INDEX": str(index),
        "FC_POD_UID": f"{pod}-{role}-{index}",
    }


def start(harness: Harness, gang: Path, role: str, index: int) -> ForkProcess:
    """Start one member in a process with a volume of its own."""
    pai_dir = harness.tmp / f"{role}-{index}"
    pai_dir.mkdir()
    module = harness.make("barrier", ARGS)
    assert isinstance(module, CheckModule)
    context = HostContext(variables(gang, role, index), str(pai_dir), emit_log=lambda _: None)
    process = multiprocessing.get_context("fork").Process(target=module.check, args=(context,))
    process.start()
    return process


def statuses(path: Path) -> dict[str, Any]:
    """What a member recorded: role to attempt statuses in order."""
    framework = json.loads(path.read_text())
    assert framework["metadata"]["annotations"] == {"config": "x"}
    assert framework["status"]["state"] == "AttemptRunning"
    roles = framework["status"]["attemptStatus"]["taskRoleStatuses"]
    return {r["name"]: [(t["index"], t["attemptStatus"]) for t in r["taskStatuses"]] for r in roles}


def test_every_member_learns_every_address(harness: Harness, gang: Path) -> None:
    """Processes that start at different times all end with the same complete Framework."""
    processes = [start(harness, gang, "worker", 1), start(harness, gang, "ps", 0)]
    announced = gang / "announce"
    while len(list(announced.glob("*.json"))) < 2:
        assert all(p.is_alive() for p in processes)
        time.sleep(0.01)
    assert not (harness.tmp / "ps-0" / "framework.json").exists()
    processes.append(start(harness, gang, "worker", 0))
    for process in processes:
        process.join(20)
        assert process.exitcode == 0
    found = [statuses(harness.tmp / m / "framework.json") for m in ("worker-0", "worker-1", "ps-0")]
    assert found[0] == found[1] == found[2]
    assert [index for index, _ in found[0]["worker"]] == [0, 1]
    assert found[0]["ps"] == [
        (
            0,
            {
                "podUID": "uid-ps-0",
                "podIP": "10.0.0.9",
                "podHostIP": "10.0.0.9",
                "podName": "fw-ps-0",
            },
        )
    ]


def announce(gang: Path, name: str, said: str | None = None) -> Path:
    """Let a member have announced itself."""
    (gang / "announce").mkdir(exist_ok=True)
    path = gang / "announce" / f"{name}.json"
    path.write_text(said or json.dumps({"podUID": name, "podIP": "10.1", "podHostIP": "10.1"}))
    return path


def test_a_second_run_changes_nothing(harness: Harness, gang: Path) -> None:
    """The record and the announcement of a complete gang are left untouched."""
    for name in ("worker-1", "ps-0"):
        announce(gang, name)
    env = variables(gang, "worker", 0)
    assert harness.run("barrier", ARGS, env).failure is None
    before = harness.snapshot()
    assert harness.run("barrier", ARGS, env).failure is None
    assert harness.snapshot() == before


def test_a_member_replaces_what_its_earlier_run_said(harness: Harness, gang: Path) -> None:
    """Another Pod of the same task announces its own identity."""
    for name in ("worker-0", "worker-1", "ps-0"):
        announce(gang, name)
    assert harness.run("barrier", ARGS, variables(gang, "worker", 0, "new")).failure is None
    found = statuses(harness.pai_dir / "framework.json")
    assert found["worker"][0][1]["podUID"] == "new-worker-0"


def test_who_is_missing_is_named(harness: Harness, gang: Path) -> None:
    """At the end of its time the barrier counts who is there and names who is not."""
    announce(gang, "worker-1", "{half")
    args = {**ARGS, "timeout": "60ms"}
    failure = harness.run("barrier", args, variables(gang, "worker", 0)).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("timeout", "platform")
    assert "1 of 3 instances" in failure.message
    assert failure.message.endswith("missing: worker-1, ps-0")
    assert harness.log == ["1 of 3 instances have addresses"]


def test_ten_names_are_enough(harness: Harness, gang: Path) -> None:
    """Of many missing tasks ten are named and the others counted."""
    framework = {"spec": {"taskRoles": [{"name": "w", "taskNumber": 30}]}}
    (gang / "framework.json").write_text(json.dumps(framework))
    args = {**ARGS, "timeout": "0s"}
    failure = harness.run("barrier", args, variables(gang, "w", 0)).failure
    assert failure is not None
    assert failure.message.endswith("w-9, w-10 and 19 more")


def test_it_ends_before_its_attempt_is_stopped(harness: Harness, gang: Path) -> None:
    """A second of the attempt's time is left to say who is missing."""
    deadline = time.monotonic() + 1.1
    env = variables(gang, "worker", 0)
    failure = harness.run("barrier", ARGS, env, deadline=deadline).failure
    assert time.monotonic() < deadline
    assert failure is not None
    assert "worker-1" in failure.message


@pytest.mark.parametrize(
    ("args", "change", "says"),
    [
        (ARGS, {"FC_POD_UID": "", "PAIRUN_HOST_IP": ""}, "needs PAIRUN_HOST_IP, FC_POD_UID"),
        (ARGS, {"FC_TASK_INDEX": "2"}, "worker-2 does not belong"),
        (ARGS, {"PAIRUN_GANG_DIR": "/nowhere"}, "nowhere/framework.json is missing"),
        ({"backend": "framework"}, {}, "needs FC_FRAMEWORK_NAMESPACE, FC_FRAMEWORK_NAME"),
    ],
)
def test_what_cannot_work_is_permanent(
    harness: Harness, gang: Path, args: dict[str, Any], change: dict[str, str], says: str
) -> None:
    """Without its variables, its place or its backend the barrier fails at once."""
    env = {**variables(gang, "worker", 0), **change}
    failure = harness.run("barrier", args, env).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert says in failure.message


def test_a_broken_framework_is_permanent(harness: Harness, gang: Path) -> None:
    """What is no Framework is named, not waited for."""
    (gang / "framework.json").write_text('{"spec": {}}')
    failure = harness.run("barrier", ARGS, variables(gang, "worker", 0)).failure
    assert failure is not None
    assert failure.kind == "permanent"
