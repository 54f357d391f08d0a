"""A call that does not answer is left, and its process killed."""

from __future__ import annotations

import os
import time

import pytest

from pairun.base.processes import processes
from pairun.host import mounts
from pairun.module import TimedOut, Transient


def test_what_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child that asked is killed, and nobody waits for it."""
    before = _children()
    monkeypatch.setattr(os, "statvfs", lambda _: time.sleep(60))
    with pytest.raises(TimedOut, match="the file system at /x: no answer within 100ms"):
        mounts.free_bytes("/x", 0.1)
    assert _children() <= before


def _children() -> set[int]:
    """The processes that this one has started, other tests' servers among them."""
    return {p.pid for p in processes() if p.parent == os.getpid()}


def test_a_child_that_is_killed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when memory runs out; the next attempt may fare better."""
    monkeypatch.setattr(os, "statvfs", lambda _: os.kill(os.getpid(), 9))
    with pytest.raises(Transient, match="was killed"):
        mounts.free_bytes("/x", 10)
