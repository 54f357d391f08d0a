"""The module hold, with real processes and a real clock."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
    """Every row holds."""
    began = time.monotonic()
    outcome = harness.table("hold", row)
    if outcome.verdict is not None and outcome.verdict.kind == "will_change":
        seconds = float(str(row["args"]["time"]).removesuffix("ms")) / 1000
        assert seconds <= time.monotonic() - began < seconds + 30


def test_wrong_arguments(harness: Harness) -> None:
    """One command at most, with a program."""
    both = harness.problems("hold", {"time": "1s", "argv": ["a"], "script": "b"})
    assert "neither" in both[0].message
    assert harness.problems("hold", {"time": "1s", "argv": []})
    assert harness.problems("hold", {})[0].id == "PR606"


def test_the_file_ends_the_hold_and_its_command(harness: Harness) -> None:
    """Making the file lets go within a second, and the command hears of it."""
    run = harness.pai_dir / "run"
    run.mkdir()
    heard = harness.tmp / "heard"
    started = harness.tmp / "started"
    script = (
        f"trap 'echo TERM >{heard}; exit 0' TERM; echo >{started}; while :; do sleep 0.05; done"
    )

    def let_go() -> None:
        while not started.exists():
            time.sleep(0.02)
        (run / "release").touch()

    other = threading.Thread(target=let_go)
    other.start()
    began = time.monotonic()
    outcome = harness.run("hold", {"time": "60s", "script": script})
    other.join()
    assert time.monotonic() - began < 20
    assert outcome.result is not None
    assert "release is there" in outcome.result.message
    assert heard.read_text() == "TERM\n"


def test_the_command_ends_with_the_time(harness: Harness) -> None:
    """A command is not left behind when the time is up."""
    outcome = harness.run("hold", {"time": "600ms", "argv": ["sleep", "61.25"]})
    assert outcome.result is not None
    assert "the time is up" in outcome.result.message


def test_what_the_task_may_take_bounds_it(harness: Harness) -> None:
    """A task with a time of its own ends in order before that, and says that it was asked longer."""
    outcome = harness.run("hold", {"time": "1h"}, deadline=time.monotonic() + 2.0)
    assert outcome.failure is None
    assert outcome.result is not None
    assert any("instead of 1h" in line for line in harness.log)


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
