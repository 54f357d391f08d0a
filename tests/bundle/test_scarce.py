"""The bundle as PID 1 with few descriptors, processes and little memory, and under odd signals."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

TASK = """
runtime:
  - append: ~
    id: first
    name: A task with an exit handler
    cmd: {argv: [echo, task]}
    on_exit:
      - name: The exit handler
        event: always
        cmd: {argv: [echo, handler]}
"""


def _argv(volume: Any, *limits: str) -> list[str]:
    pid1 = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*pid1, "prlimit", *limits, str(volume.path / "runtime")]


def _env(volume: Any) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin", "PAIRUN_PAI_DIR": str(volume.path), "FC_POD_UID": volume.log.name,
    }  # fmt: skip


@pytest.mark.parametrize(
    "limit", ["--nofile=16:16", "--nofile=20:20", "--as=40000000", "--as=60000000"]
)
def test_limits(volume: Any, start: Any, limit: str) -> None:
    """Tasks, the command and exit handlers run, and the exit code is the command's."""
    volume.prepare("echo printed; exit 5", runtime=TASK)
    running = start(*_argv(volume, limit), env=_env(volume))
    assert running.end() == 5, running.text
    assert "Traceback" not in running.text
    journal = (volume.log / "journal.jsonl").read_text()
    assert '"task_end", "task": "first.on_exit"' in journal, running.text
    assert "printed" in running.lines


@pytest.mark.parametrize("count", [3, 5, 7])
def test_too_few_descriptors(volume: Any, start: Any, count: int) -> None:
    """PID 1 says that the limit is too low, and starts nothing."""
    volume.prepare("echo printed")
    running = start(*_argv(volume, f"--nofile={count}:{count}"), env=_env(volume))
    assert running.end() == 1
    assert "error[PR706]: the runtime phase cannot be started: " in running.text
    assert "printed" not in running.lines


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGPIPE", "SIGSYS", "SIGABRT"])
def test_a_fault_that_is_sent(volume: Any, start: Any, name: str) -> None:
    """A fault's signal ends the command, and PID 1 reports it."""
    volume.prepare("ulimit -c 0", "echo ready", "exec sleep 600")
    running = start(volume.path / "runtime", env=_env(volume))
    running.wait_for("ready")
    number = signal.Signals[name]
    os.kill(running.process.pid, number)
    assert running.end() == 128 + number, running.text
    assert f"[pairun] the command ended with {128 + number} ({name})" in running.text
