"""The barrier's arguments and variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import World, fails, framework


def test_what_is_set_counts_as_it_is(harness: Harness, world: Callable[..., World]) -> None:
    """The variables of FrameworkController's barrier replace the arguments."""
    env = {"BARRIER_CHECK_INTERVAL_SEC": "7", "BARRIER_CHECK_TIMEOUT_SEC": "60"}
    ctx = world(lambda _, path: framework(2, 1) if "frameworks" in path else None, **env)
    failure = fails(harness, ctx, timeout="1s")
    assert "after 1m 1 of 2" in failure.message
    assert ctx.slept == [7.0] * 8 + [4.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BARRIER_CHECK_INTERVAL_SEC", "4"),
        ("BARRIER_CHECK_INTERVAL_SEC", "5.0"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "59"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "1201"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "-60"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "٦٠٠"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "9" * 5000),
    ],
)
def test_what_cannot_be_set(
    harness: Harness, world: Callable[..., World], name: str, text: str
) -> None:
    """Out of range or no number is permanent, before anybody is asked."""
    ctx = world(lambda *_: framework(2, 2), **{name: text})
    failure = fails(harness, ctx)
    assert failure.kind == "permanent"
    assert failure.message.startswith(f"{name} is '{text[:40]}'")
    assert ctx.asked == []


def test_arguments_that_do_not_go_together(harness: Harness) -> None:
    """A port to ask needs its label, and only Pods can be asked."""
    (problem,) = harness.problems("barrier", {"backend": "pods", "ready": "port"})
    assert "go together" in problem.message
    (problem,) = harness.problems("barrier", {"backend": "framework", "ready": "init"})
    assert "needs `backend: pods`" in problem.message
