"""The grace time: everything together ends before the platform would kill it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from pairun.base.grace import Grace
from tests.stopwatch import Stopwatch

SECONDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("seconds", [0.1, *SECONDS, 30, 60, 600, 86400])
def test_the_parts_fill_the_whole(seconds: float) -> None:
    """Command, handlers, summary and margin each have a part, and no more than there is."""
    grace = Grace(seconds)
    parts = [grace.command_s, grace.handlers_s, grace.summary_s, grace.margin_s]
    assert all(part > 0 for part in parts)
    assert sum(parts) == pytest.approx(seconds)
    assert grace.for_command_s() is grace.for_summary_s() is grace.left_s() is None
    grace.begin(signal.SIGTERM)
    left = [grace.for_command_s(), grace.for_handlers_s(), grace.for_summary_s(), grace.left_s()]
    assert all(x is not None for x in left)
    assert sorted(x for x in left if x is not None) == left


@pytest.mark.slow
def test_never_longer_than_the_grace_time(volume: Any, start: Any, succeeded: Any) -> None:
    """Whatever ignores TERM and hangs (command, its escaped child, handlers), we end in time.

    Ten phases at once, with grace times of 1 to 10 seconds.
    """
    hang = "trap '' TERM; echo hangs; while :; do sleep 0.2; done"
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={"handlers": hang})
    volume.command(f'setsid bash -c "{hang.replace("hangs", "escaped")}" &\n{hang}')
    phases = [(s, start(PAIRUN_GRACE=f"{s}s")) for s in SECONDS]
    for _, running in phases:
        for _ in range(2):
            running.line(("hangs", "escaped"))
    with Stopwatch() as watch:
        began = []
        for _, running in phases:
            began.append(time.monotonic())
            running.signal(signal.SIGTERM)
        took = []
        for (_, running), since in zip(phases, began, strict=True):
            assert running.end() == 137
            took.append(time.monotonic() - since)
    for (seconds, running), took_s in zip(phases, took, strict=True):
        assert watch.within(seconds, took_s=took_s), (seconds, took_s, watch)
        # and the command had what is its own
        assert took_s > Grace(seconds).command_s
        assert running.got("[pairun] time is up")


def test_as_soon_as_nothing_is_left(
    volume: Any, start: Any, print_signals: str, waits_for_ever: dict[str, str]
) -> None:
    """What ends early is not waited for: neither the grace time nor a drain is slept through."""
    volume.plan["command"]["grace_s"] = 600.0
    volume.save()
    volume.command(f"{print_signals} SIGTERM & {print_signals} SIGTERM & wait")
    running = start(**waits_for_ever)
    running.line("ready")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143


def test_twice_during_handlers(volume: Any, start: Any, succeeded: Any) -> None:
    """Further stops while handlers run end nothing early and change no code."""
    volume.tasks(
        tasks=succeeded,
        handlers={"failed": False},
        run={"handlers": "trap '' TERM; echo cleaning; sleep 0.5; echo cleaned"},
    )
    volume.command("trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    running = start(PAIRUN_GRACE="20s")
    running.line("ready")
    running.signal(signal.SIGTERM)
    running.line("cleaning")
    running.signal(signal.SIGTERM)
    running.signal(signal.SIGINT)
    assert running.end() == 3
    assert running.got("cleaned")
    assert len(running.got("[pairun] received SIGTERM")) == 2
    assert running.got("[pairun] received SIGINT")
