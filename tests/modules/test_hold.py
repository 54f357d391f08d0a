"""The module hold, with real processes and a real clock."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.testing import FakeWorld, run

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

TABLE: list[dict[str, Any]] = [
    {
        "what": "no time is no hold",
        "args": {"time": "0s"},
        "verdict": "no_change",
        "because": "no hold time",
        "review": "no_change",
    },
    {
        "what": "a file that is there before lets go at once",
        "args": {"time": "1h"},
        "files": {"{tmp}/pai/run/release": ""},
        "verdict": "no_change",
        "because": "released before",
        "review": "will_change",
    },
    {
        "what": "the time is the end",
        "args": {"time": "300ms"},
        "verdict": "will_change",
        "because": "300ms",
        "values": {},
    },
    {
        "what": "a command that ends early, or fails, does not end it",
        "args": {"time": "700ms", "script": "echo yes > {tmp}/ran; exit 3"},
        "verdict": "will_change",
        "leaves": {"{tmp}/ran": "yes\n"},
    },
    {
        "what": "a program that is not there does not end it",
        "args": {"time": "300ms", "argv": ["/nowhere/sshd"]},
        "verdict": "will_change",
    },
]


@pytest.mark.parametrize("row", TABLE, ids=[str(row["what"]) for row in TABLE])
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    outcome = harness.table("hold", row)
    if outcome.result is not None:
        assert outcome.result.message.endswith(": the time is up")


@pytest.mark.parametrize(("deadline_s", "held_s"), [(None, 1800.0), (60.0, 58.5)])
def test_it_lasts_as_long_as_it_may(
    harness: Harness, deadline_s: float | None, held_s: float
) -> None:
    """The whole time, or until the task's own time is nearly over, which the log says."""
    world = FakeWorld(deadline_s=deadline_s)
    began = world.time_s
    outcome = run(harness.make("hold", {"time": "30m"}), world)
    assert outcome.failure is None
    assert world.time_s - began == held_s
    assert any("instead of 30m" in line for line in world.log) == (deadline_s is not None)


def test_wrong_arguments(harness: Harness) -> None:
    """One command at most, with a program."""
    both = harness.problems("hold", {"time": "1s", "argv": ["a"], "script": "b"})
    assert "neither" in both[0].message
    assert harness.problems("hold", {"time": "1s", "argv": []})
    assert harness.problems("hold", {})[0].id == "PR606"


def test_the_file_ends_the_hold_and_its_command(harness: Harness) -> None:
    """Making the file lets go within a second, and the command hears of it."""
    folder = harness.pai_dir / "run"
    folder.mkdir()
    heard = harness.tmp / "heard"
    started = harness.tmp / "started"
    script = (
        f"trap 'echo TERM >{heard}; exit 0' TERM; echo >{started}; while :; do sleep 0.05; done"
    )

    def let_go() -> None:
        while not started.exists():
            time.sleep(0.02)
        (folder / "release").touch()

    other = threading.Thread(target=let_go)
    other.start()
    outcome = harness.run("hold", {"time": "60s", "script": script})
    other.join()
    assert outcome.result is not None
    assert "release is there" in outcome.result.message
    assert heard.read_text() == "TERM\n"


def test_the_command_ends_with_the_time(harness: Harness) -> None:
    """A command is not left behind when the time is up."""
    outcome = harness.run("hold", {"time": "600ms", "argv": ["sleep", "61.25"]})
    assert outcome.result is not None
    assert "the time is up" in outcome.result.message


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"FC_POD_NAME": "job-worker-0", "HOSTNAME": "node", "FC_FRAMEWORK_NAMESPACE": "default"},
         "kubectl exec -it -n default job-worker-0 -c app -- bash"),
        ({"HOSTNAME": "my-pod"}, "kubectl exec -it my-pod -c app -- bash"),
        ({"HOSTNAME": "my-pod", "PATH": "{tmp}"}, "kubectl debug -it my-pod --target=app"),
    ],
    ids=["OpenPAI", "plain Pod", "no shell"],
)  # fmt: skip
def test_the_way_in(harness: Harness, env: dict[str, str], said: str, tmp_path: Path) -> None:
    """The log says how to get into this very container."""
    harness.run("hold", {"time": "1ms"}, env=env)
    assert any(said in line for line in harness.log), harness.log
