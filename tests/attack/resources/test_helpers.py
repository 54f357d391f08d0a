"""Processes of pairun beside the command, stopped or killed by somebody else."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from typing import Any

import pytest


def _children(pid: int) -> list[int]:
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(n) for n in text.split()]


@pytest.mark.parametrize("part", ["tasks", "handlers"])
def test_stopped(volume: Any, start: Any, succeeded: Any, part: str) -> None:
    """A stopped process of pairun is continued: no job waits for ever."""
    volume.tasks(
        tasks=succeeded, handlers={"failed": False},
        run={part: "kill -STOP $PPID; echo working; exit 0"},
    )  # fmt: skip
    volume.command("exit 5")
    running = start()
    assert running.end() == 5
    assert running.got("[pairun] continued a process of pairun that was stopped")
    assert running.got("handlers ran")


@pytest.mark.slow
def test_stopped_by_the_platform(volume: Any, start: Any, succeeded: Any, eventually: Any) -> None:
    """Tasks that SIGTSTP to the container stops stay stopped until SIGCONT."""
    volume.tasks(
        tasks=succeeded,
        handlers={"failed": False},
        run={"tasks": "echo working; read -t 1 <> <(:)"},
    )
    volume.command("exit 5")
    running = start()
    running.line("working")
    (child,) = _children(running.pid)
    running.signal(signal.SIGTSTP)

    def state() -> str:
        return pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(") ", 1)[1][0]

    eventually(lambda: state() == "T")
    running.signal(signal.SIGCONT)
    running.end()
    assert not running.got("[pairun] continued a process of pairun")


@pytest.mark.parametrize(
    ("part", "code", "line"),
    [
        ("tasks", 255, "[pairun] the process of the tasks exited with 137 without a result"),
        ("handlers", 5, "[pairun] the process of the exit handlers exited with 137 without"),
    ],
)
def test_killed(volume: Any, start: Any, succeeded: Any, part: str, code: int, line: str) -> None:
    """A killed process of pairun is named, and the command's exit code stays."""
    volume.tasks(
        tasks=succeeded, handlers={"failed": False}, run={part: "kill -KILL $PPID; exit 0"}
    )
    volume.command("exit 5")
    running = start()
    assert running.end() == code
    assert running.got(line)


@pytest.mark.parametrize("name", ["STOP", "KILL"])
def test_summary(volume: Any, start: Any, name: str) -> None:
    """A stopped or killed exit summary costs its diagnosis, not the exit code or the message."""
    folder = pathlib.Path(volume.root) / "logs" / "local"
    folder.mkdir(parents=True)
    volume.command("exit 5")
    patch = (
        "import pairun.runtime.children as c, pairun.runtime.ending as e, sys\n"
        f"c.own_command = lambda *a: [sys.executable, '-c', 'import os; os.kill(os.getpid(), "
        f"{int(signal.Signals['SIG' + name])})']\n"
        "e._SUMMARY_S = 1.0"
    )
    running = start(TEST_PATCH=patch)
    assert running.end() == 5
    assert running.got("[pairun] the exit summary exited with ")
    assert "exitCode: 5" in (folder / "pai-termination-log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["STOP", "KILL"])
def test_children_of_init_end(volume: Any, start: Any, name: str) -> None:
    """Orphans that are stopped or killed at random hold nothing up."""
    volume.command(f"for i in 1 2 3 4 5; do (setsid sleep 600 & kill -{name} $!); done; exit 5")
    assert start().end() == 5


def test_a_command_that_stops_its_group(volume: Any, start: Any, eventually: Any) -> None:
    """A command that stops itself is its own affair: PID 1 leaves it stopped until a stop."""
    volume.command("echo ready; kill -STOP $$; exit 5")
    running = start()
    running.line("ready")
    (child,) = _children(running.pid)

    def state() -> str:
        return pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(") ", 1)[1][0]

    eventually(lambda: state() == "T")
    running.signal(signal.SIGUSR2)
    assert running.process.poll() is None
    os.kill(child, signal.SIGCONT)
    assert running.end() in (5, 128 + signal.SIGUSR2)
    assert not running.got("[pairun] continued")


def test_state_file_of_a_dead_helper(volume: Any, start: Any, succeeded: Any) -> None:
    """Half an answer of a killed process counts as none."""
    answer = json.dumps(succeeded)[:-20]
    volume.tasks(
        tasks=None, handlers={"failed": False},
        run={"tasks": f"for f in /proc/$PPID/fd/*; do case $(readlink $f) in *memfd*) "
             f"printf %s '{answer}' >$f;; esac; done; kill -KILL $PPID; exit 0"},
    )  # fmt: skip
    volume.command("exit 5")
    running = start()
    assert running.end() == 255
    assert running.got("[pairun] the process of the tasks exited with 137 without a result")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["STOP", "KILL"])
def test_server_of_the_rendezvous(volume: Any, start: Any, name: str) -> None:
    """A stopped or killed server for the job's other instances holds up neither command nor end."""
    (volume.root / "rendezvous").mkdir()
    (volume.root / "rendezvous" / "key").write_text("a2V5")
    volume.command(
        "until server=$(pgrep -P $PPID -f serves-peers); do sleep 0.05; done\n"
        f"kill -{name} $server; exit 5"
    )
    patch = (
        "import pairun.runtime.children as p\n"
        "p._leads = lambda door: True\n"
        "p.own_command = lambda *a: [sys.executable, '-c', 'import time; time.sleep(600)', 'serves-peers']"
    )
    running = start(TEST_PATCH=patch)
    assert running.end() == 5
    assert not running.got("[pairun] an error of pairun's own")
