"""Nothing of ours that fails may cost the user's command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

BREAK_SETTLE = "m.Supervisor.settle = lambda *a, **k: 1 / 0"
FULL_FOR_A_WHILE = """
import errno, pairun.runtime.supervisor as s
real_spawn, refused = os.posix_spawn, []
def spawn(*a, **k):
    refused.append(1)
    if len(refused) % 4:
        raise BlockingIOError(errno.EAGAIN, "no room")
    return real_spawn(*a, **k)
os.posix_spawn = spawn
"""
BREAK_FIRST_WAIT = """
real = m.Supervisor.wait
def once(self, *a, **k):
    m.Supervisor.wait = real
    import pairun.runtime.supervisor as s
    s._next_signal(None)
    raise RuntimeError("ours")
m.Supervisor.wait = once
"""


def test_error_after_the_command(volume: Any, start: Any) -> None:
    """An error of our own after the command keeps the command's exit code."""
    volume.command("exit 3")
    running = start(TEST_PATCH=BREAK_SETTLE)
    assert running.end() == 3
    assert running.got("[pairun] an error of pairun's own: ZeroDivisionError")


def test_error_during_the_command(volume: Any, start: Any, print_signals: str) -> None:
    """An error of our own while the command runs lets it go on, and signals still reach it."""
    volume.command(f"exec {print_signals} SIGTERM 8")
    running = start(TEST_PATCH=BREAK_FIRST_WAIT)
    running.line("ready")
    running.signal(signal.SIGWINCH)
    running.line("[pairun] an error of pairun's own: RuntimeError: ours")
    running.signal(signal.SIGTERM)
    assert running.end() == 8


def test_nobody_reads_our_lines(volume: Any, tmp_path: Any) -> None:
    """That standard error is closed does not change what happens."""
    volume.command(f"echo ran > {tmp_path}/ran; exit 5")
    driver = "import sys, pairun.runtime.main as m; sys.exit(m.main(sys.argv[1], m.Vault()))"
    command = 'exec "$0" -c "$1" "$2" 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, driver, str(volume.root)], check=False
    )
    assert done.returncode == 5
    assert (tmp_path / "ran").exists()


# --- what a command may do to us ---


@pytest.mark.parametrize(
    "script",
    [
        "exec >&- 2>&- <&-; exit 5",
        "ulimit -n 3; ulimit -c 0; ulimit -t 100; exit 5",
        "i=0; while [ $i -lt 3000 ]; do kill -WINCH $PPID; i=$((i+1)); done; exit 5",
        "for n in HUP USR1 USR2 ALRM; do trap '' $n; kill -$n $PPID; done; exit 5",
        "kill -CHLD $PPID; kill -CONT $PPID; exit 5",
        "rm -rf ../runtime.d; exit 5",
    ],
)
def test_a_command_that_misbehaves(volume: Any, start: Any, script: str) -> None:
    """What a command does to itself, to its streams or with signals leaves its exit code alone."""
    volume.command(f"cd {volume.root}/runtime.d\n{script}")
    assert start().end() == 5


@pytest.mark.parametrize(
    "script",
    [
        # everybody but PID 1 and the shell itself
        "kill -9 -1; exit 5",
        # the kernel does not let PID 1 be killed from within
        "kill -9 1; kill -STOP 1; exit 5",
    ],
)
def test_a_command_that_kills(volume: Any, in_namespace: Any, succeeded: Any, script: str) -> None:
    """PID 1 outlives what a command kills, and still runs the exit handlers."""
    volume.tasks(
        tasks=succeeded, handlers={"failed": False},
        run={"tasks": "sleep 600 >/dev/null 2>&1 &"},
    )  # fmt: skip
    volume.command(script)
    running = in_namespace()
    assert running.end() == 5
    assert running.got("handlers ran")


def test_limits_of_our_own(volume: Any, start: Any, succeeded: Any) -> None:
    """A command that takes our right to open files away costs handlers, never its exit code."""
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.command("prlimit --pid $PPID --nofile=4:4; exit 5")
    assert start().end() == 5


def test_no_room_for_a_process(volume: Any, start: Any, succeeded: Any) -> None:
    """While there is no room for a further process, we wait for some before we start one."""
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.command("exit 5")
    running = start(TEST_PATCH=FULL_FOR_A_WHILE)
    assert running.end() == 5
    assert running.got("handlers ran")
    assert not running.got("[pairun] an error of pairun's own")


@pytest.mark.slow
def test_fork_bomb(volume: Any, in_namespace: Any, driver: list[str]) -> None:
    """A command that forks until the kernel refuses is ended whole, and in time."""
    volume.args(shell="sh")
    # dash gives up at the first process that it cannot make, and leaves all of them behind
    volume.command("while :; do sleep 600 & done")
    for path in [volume.root, *volume.root.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o055)
    own = os.getuid() == 0
    limit = ["prlimit", f"--nproc={60 if own else 3000}"]
    who = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"] if own else []
    mounted = ["sh", "-c", f'mount --bind {volume.root} /mnt && exec "$@"', "sh"]
    running = in_namespace(*mounted, *limit, *who, *driver, "/mnt")
    assert running.end() == 2, running.lines
    assert running.got("[pairun] the command has ended; ending its background")
