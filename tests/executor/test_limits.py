"""The time of one task, and of one attempt of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pairun.executor.limits import TERM_WAIT_S, Limits
from pairun.plan import Task


def task(**more: Any) -> Task:
    """A task with limits."""
    return Task(id="a", name="A", module="look", args={}, **more)


@pytest.mark.parametrize(
    ("more", "share_s", "seconds"),
    [({}, None, None), ({"deadline_s": 9.0}, None, 9.0), ({}, 3.0, 3.0),
     ({"deadline_s": 9.0}, 3.0, 3.0), ({"deadline_s": 2.0}, 3.0, 2.0)],
)  # fmt: skip
def test_the_least_counts(more: Any, share_s: float | None, seconds: float | None) -> None:
    """A task ends at its deadline, a handler also at the end of its share."""
    limits = Limits(task(**more), handler=share_s is not None, share_s=share_s)
    assert limits.deadline == (None if seconds is None else limits.started + seconds)


def test_an_attempt_ends_with_its_task() -> None:
    """The timeout counts from the attempt's begin, the deadline from the task's."""
    limits = Limits(task(deadline_s=9.0, timeout_s=5.0))
    assert limits.of_attempt(limits.started) == limits.started + 5.0
    assert limits.of_attempt(limits.started + 6.0) == limits.started + 9.0
    assert Limits(task()).of_attempt(1.0) is None
    assert limits.kill_after_s == TERM_WAIT_S


def test_a_share_includes_the_time_to_stop() -> None:
    """A fifth of a handler's share is kept for stopping it, one second at most."""
    for share_s, kept in ((2.0, 0.4), (100.0, 1.0)):
        limits = Limits(task(), handler=True, share_s=share_s)
        limit = limits.of_attempt(limits.started)
        assert limits.deadline is not None
        assert limit is not None
        assert limits.deadline - limit == pytest.approx(limits.kill_after_s)
        assert limits.kill_after_s == pytest.approx(kept, rel=0.1)


def test_a_task_that_begins_late_has_its_whole_deadline() -> None:
    """What waited for another instance has its deadline from then on; a handler has its share."""
    limits = Limits(task(deadline_s=9.0))
    limits.deadline = 0.0
    limits.restart()
    assert (limits.deadline or 0.0) >= time.monotonic() + 8.0
    handler = Limits(task(deadline_s=9.0), handler=True, share_s=1.0)
    before = handler.deadline
    handler.restart()
    assert handler.deadline == before


def test_it_is_only_shortened() -> None:
    """A later end than the task's own changes nothing."""
    limits = Limits(task(deadline_s=9.0))
    before = limits.deadline
    limits.shorten(60.0)
    assert limits.deadline == before
    limits.shorten(0.0)
    assert (limits.deadline or 0.0) <= time.monotonic()
