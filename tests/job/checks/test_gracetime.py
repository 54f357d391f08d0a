"""What the grace time cannot hold is said at review."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.desk import Desk

JOB = """\
protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "ubuntu:22.04"}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands:
      - COMMAND
"""
PATCH = """\
extras:
  pairun:
    runtime:
      - patch: user_command
        args: ARGS
"""
HANDLERS = """\
phase: runtime
patches:
  - patch: mount_storage
    when: true
    on_exit:
      - {id: one, name: One, event: EVENT, cmd: {argv: [sync]}, timeout: 2s, retries: 1}
      - {id: two, name: Two, event: always, cmd: {argv: [sync]}, deadline: 1s}
      - {id: three, name: Three, event: always, cmd: {argv: [sync]}}
"""


@pytest.fixture
def lint(tmp_path: pathlib.Path) -> Any:
    """Lints a job with a cluster's runtime playbook; returns ids and messages of warnings."""

    def run(
        command: str = "train", args: str = "", playbook: str = "", grace: str = ""
    ) -> dict[str, str]:
        (tmp_path / "playbooks").mkdir()
        text = playbook or "phase: runtime\npatches: []\n"
        (tmp_path / "playbooks" / "runtime.yaml").write_text(
            text + (f"grace: {grace}\n" if grace else "")
        )
        job = JOB.replace("COMMAND", json.dumps(command))
        (tmp_path / "job.yaml").write_text(job + (PATCH.replace("ARGS", args) if args else ""))
        argv = ["lint", "--json", "--root", str(tmp_path), str(tmp_path / "job.yaml")]
        done = subprocess.run(
            [sys.executable, "-m", "pairun", *argv], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        problems = json.loads(done.stdout)["problems"]
        assert all(p["severity"] == "warning" for p in problems)
        return {p["id"]: p["message"] for p in problems}

    return run


@pytest.mark.parametrize(
    ("command", "grace", "said"),
    [
        ("torchrun train.py", "", True),
        ("python -m torch.distributed.run train.py", "", True),
        ("torchrun train.py", "37s", True),
        ("torchrun train.py", "38s", False),
        ("echo my_torchrunner; torch.distributed.runner", "", False),
        ("train", "", False),
    ],
)
def test_torchrun(lint: Any, command: str, grace: str, said: bool) -> None:
    """Torchrun in less than its own 30 s is said; with enough time nothing is."""
    assert ("PR921" in lint(command, grace=grace)) == said


def test_torchrun_in_several_roles_is_one_warning(desk: Desk) -> None:
    """It names the roles, and what the author of the job can do."""
    worker = desk.job_text.partition("taskRoles:\n")[2].replace("[train]", "[torchrun x]")
    text = desk.job_text.replace("[train]", "[torchrun x]") + worker.replace("worker", "server")
    (problem,) = desk.valid(text).problems
    assert (problem.id, problem.also) == ("PR921", ())
    assert problem.message.endswith("is 24s (roles worker, server)")
    assert str(problem.hint).startswith("save in the workers within 24s after SIGTERM")


@pytest.mark.parametrize(
    ("event", "grace", "said"),
    [("always", "", True), ("signal", "", True), ("success", "", False), ("always", "60s", False)],
)
def test_handlers(lint: Any, event: str, grace: str, said: bool) -> None:
    """Only handlers that run after a stop count, with all their attempts, unless bounded."""
    found = lint(playbook=HANDLERS.replace("EVENT", event), grace=grace)
    assert ("PR920" in found) == said
    if said:
        assert "may take 5s" in found["PR920"]
        assert "leaves them 4s" in found["PR920"]


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        ("{signals: {SIGTERM: [SIGUSR1, 60s, SIGTERM]}}", {"PR922"}),
        ("{signals: {SIGINT: [SIGUSR1, 20s, SIGUSR2, 20s, SIGTERM]}}", {"PR922"}),
        ("{signals: {SIGTERM: [SIGUSR1, 10s, SIGTERM]}}", set()),
        ("{signals: {SIGHUP: [SIGUSR1, 60s, SIGTERM]}}", set()),
        ("{signals: {SIGTERM: []}}", {"PR923"}),
        ("{signals: {SIGINT: []}}", set()),
        ("{signals_to: process, nounset: false, shell: sh}", set()),
    ],
)
def test_signals(lint: Any, args: str, ids: set[str]) -> None:
    """What a job may ask for, and what of it would not come, or not in time."""
    assert set(lint(args=args)) == ids
