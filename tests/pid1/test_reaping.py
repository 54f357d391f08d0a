"""Orphans, zombies and what a command leaves behind."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import time
from typing import Any

import pytest

from tests.stopwatch import Stopwatch


def test_orphans_are_reaped(volume: Any, start: Any, eventually: Any) -> None:
    """A process whose parent is gone is waited for by us, and leaves no zombie."""
    volume.command(
        "(sleep 0.2 & echo orphan)\n"
        "for i in 1 2 3 4 5; do (setsid true &) ; done\n"
        "echo made; read -r line < $FIFO; exit 0"
    )
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    running = start(FIFO=str(fifo))
    running.line("made")
    phase = running.pid

    def children() -> int:
        path = pathlib.Path(f"/proc/{phase}/task/{phase}/children")
        return len(path.read_text().split())

    eventually(lambda: children() == 1)
    fifo.write_text("go\n")
    assert running.end() == 0


def test_background_child_is_drained(volume: Any, start: Any) -> None:
    """What ends by itself soon after the command may finish."""
    volume.command("(sleep 1; echo late) & exit 3")
    running = start()
    assert running.end() == 3
    assert running.got("late")


@pytest.mark.slow
def test_background_child_does_not_hold_the_container(volume: Any, start: Any) -> None:
    """A background child that goes on for ever gets a short drain, TERM, and the end."""
    volume.command("(trap 'echo told; exit' TERM; while :; do sleep 0.1; done) & exit 3")
    running = start()
    assert running.end() == 3
    assert running.got("told")


@pytest.mark.slow
def test_stubborn_daemon_is_swept(volume: Any, start: Any, eventually: Any) -> None:
    """A daemon in a session of its own that ignores TERM does not outlive us."""
    mark = str(volume.root / "mark")
    volume.command(
        f"setsid bash -c 'trap \"\" TERM; echo daemon; while :; do sleep 0.1; done' {mark} &\n"
        "sleep 0.3; exit 6\n"
    )
    running = start()
    assert running.end() == 6
    assert running.got("daemon")
    eventually(lambda: not _running(mark))


def _running(mark: str) -> bool:
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


STORM = 3_000


@pytest.mark.slow
def test_orphan_storm(volume: Any, start: Any, waits_for_ever: dict[str, str]) -> None:
    """Thousands of orphans that end at once are all waited for, and cost the end nothing."""
    volume.args(shell="sh")
    volume.command(
        f"i=0; while [ $i -lt {STORM} ]; do ( : & ); i=$((i+1)); done\n"
        "echo made; read -r line < $FIFO; echo over; exit 3"
    )
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    running = start(FIFO=str(fifo), **waits_for_ever)
    running.line("made", 120)
    zombies = _zombies_of(running.pid)
    fifo.write_text("go\n")
    running.line("over")
    assert running.end() == 3
    # They are waited for as they come, not at the end.
    assert zombies < STORM / 100


def test_orphans_that_live_on(volume: Any, start: Any) -> None:
    """A thousand orphans that still live when the command ends are ended together."""
    volume.args(shell="sh")
    volume.command(
        "i=0; while [ $i -lt 1000 ]; do ( setsid sleep 600 & ); i=$((i+1)); done; exit 3"
    )
    running = start()
    running.line("[pairun] the command ended", 60)
    with Stopwatch() as watch:
        assert running.end() == 3
    assert watch.within(4.0, work_s=2.0), watch


def test_what_has_escaped_is_told(volume: Any, start: Any) -> None:
    """A daemon in a session of its own gets TERM and some time before we end."""
    volume.command(
        "setsid bash -c 'trap \"echo told; exit\" TERM; echo daemon; while :; do sleep 0.05; done' &\n"
        "read -r line < $FIFO; exit 6\n"
    )
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    running = start(FIFO=str(fifo))
    running.line("daemon")
    fifo.write_text("go\n")
    assert running.end() == 6
    assert running.got("told")


def test_a_stopped_leftover_is_ended(volume: Any, start: Any) -> None:
    """What is left behind stopped is continued, so that it can end."""
    volume.command(
        "setsid bash -c 'trap \"echo told; exit\" TERM; echo daemon; kill -STOP $$; sleep 600' &\n"
        "read -r line < $FIFO; exit 6\n"
    )
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    running = start(FIFO=str(fifo))
    running.line("daemon")
    fifo.write_text("go\n")
    assert running.end() == 6
    assert running.got("told")


def test_others_of_a_shared_namespace_are_let_be(volume: Any, start: Any) -> None:
    """Where we are not PID 1 only what descends from us is ended, never all that there is."""
    neighbour = subprocess.Popen(["sleep", "600"])
    try:
        volume.command("setsid sleep 600 & exit 2")
        assert start().end() == 2
        assert neighbour.poll() is None
    finally:
        neighbour.kill()
        neighbour.wait()


def test_the_end_follows_at_once(volume: Any, start: Any) -> None:
    """After the last process of the command we end; no drain is slept through."""
    volume.command("(sleep 0.1; date +%s.%N) & exit 0")
    running = start()
    assert running.end() == 0
    assert time.time() - float(running.got("1")[0]) < 2.9


def _zombies_of(parent: int) -> int:
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = 0
    for pid in children:
        with contextlib.suppress(OSError):
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            found += stat.rsplit(") ", 1)[1][0] == "Z"
    return found
