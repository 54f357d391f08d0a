"""Signals: what reaches the command, and what happens when it does not end."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGALRM, signal.SIGWINCH, signal.SIGCONT, signal.SIGIO, signal.SIGRTMIN,
    ],
)  # fmt: skip
def test_forwarded(volume: Any, start: Any, print_signals: str, number: signal.Signals) -> None:
    """Every signal that can be passed on reaches the command."""
    volume.command(f"exec {print_signals} SIGTERM 7")
    running = start()
    running.line("ready")
    running.signal(number)
    running.line(f"got {signal.Signals(number).name}")
    running.signal(signal.SIGTERM)
    assert running.end() == 7


def test_term_reaches_the_whole_group(volume: Any, start: Any, print_signals: str) -> None:
    """A program below a shell hears the stop signal too, and may use the grace time for it."""
    # The shell dies of TERM at once; what saves a checkpoint then is what it had started.
    volume.command(f"{print_signals} SIGTERM & wait $(jobs -p) ; echo the shell lived on")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert running.got("got SIGTERM")
    assert not running.got("the shell")


def test_survivors_of_the_shell_keep_the_time(volume: Any, start: Any) -> None:
    """After a stop, what the dead shell had started has the command's whole time to end."""
    volume.plan["grace_s"] = 20.0
    volume.save()
    volume.command(
        "(trap 'sleep 4; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done) &\nwait"
    )
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    # longer than an ordinary drain
    assert running.got("saved")


def test_kill_after_the_grace_time(volume: Any, start: Any) -> None:
    """A command that ignores TERM is killed before the platform would kill everything."""
    volume.command("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    running = start(PAIRUN_GRACE="3s")
    running.line("ready")
    began = time.monotonic()
    running.signal(signal.SIGTERM)
    assert running.end() == 137
    assert 1.5 < time.monotonic() - began < 3.0


def test_second_term_changes_no_deadline(volume: Any, start: Any, print_signals: str) -> None:
    """A second TERM is passed on, and the grace time still counts from the first."""
    volume.command(f"exec {print_signals} SIGUSR1")
    running = start(PAIRUN_GRACE="3")
    running.line("ready")
    began = time.monotonic()
    running.signal(signal.SIGTERM)
    running.line("got SIGTERM")
    running.signal(signal.SIGTERM)
    running.line("got SIGTERM")
    assert running.end() == 137
    assert time.monotonic() - began < 3.0


def test_command_may_end_well_on_term(volume: Any, start: Any, print_signals: str) -> None:
    """A command that answers TERM with status 0 ends the container with 0."""
    volume.command(f"exec {print_signals} SIGTERM")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 0


def test_stopped_is_not_ended(volume: Any, start: Any, print_signals: str, eventually: Any) -> None:
    """A command that is stopped and continued goes on."""
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    pid = int(running.line("ready").split()[1])
    if running.namespace:
        children = f"/proc/{running.pid}/task/{running.pid}/children"
        with open(children, encoding="ascii") as f:
            pid = int(f.read().split()[0])

    def state() -> str:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(") ", 1)[1][0]

    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: state() == "T")
    running.signal(signal.SIGUSR2)
    assert running.process.poll() is None
    os.kill(pid, signal.SIGCONT)
    running.line("got SIGUSR2")
    running.signal(signal.SIGTERM)
    assert running.end() == 5


def test_unusable_grace_is_said_and_survived(volume: Any, start: Any) -> None:
    """A grace time that is no duration is reported, and the plan's holds."""
    volume.command("exit 4")
    running = start(PAIRUN_GRACE="soon")
    assert running.end() == 4
    assert "PAIRUN_GRACE" in running.got("[pairun]")[0]
