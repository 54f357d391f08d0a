"""Orphans, zombies and what a command leaves behind."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any


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


def test_background_child_does_not_hold_the_container(volume: Any, start: Any) -> None:
    """A background child that goes on for ever gets a short drain, TERM, and the end."""
    volume.command("(trap 'echo told; exit' TERM; while :; do sleep 0.1; done) & exit 3")
    running = start()
    began = time.monotonic()
    assert running.end() == 3
    assert running.got("told")
    assert time.monotonic() - began < 6


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
