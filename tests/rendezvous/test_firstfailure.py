"""What an instance says of the others at its end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pairun.diagnose.classes import CONSEQUENCES
from pairun.rendezvous import peers
from pairun.rendezvous.firstfailure import SAME_FAILURE_S, OwnFailure, first_failure
from pairun.rendezvous.refusals import NotInTime

NOW = 1e9


class Board:
    """The leader's facts, in this process."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        self.name = name
        self.facts = self
        self._facts = facts

    def put(self, name: str, value: Any, timeout_s: float, *, replace: bool = False) -> Any:
        """As the leader does."""
        assert timeout_s > 0
        if replace:
            self._facts[name] = value
        return self._facts.setdefault(name, value)

    def get(self, name: str, timeout_s: float) -> Any:
        """What is there; nobody comes later."""
        if name not in self._facts:
            raise NotInTime(f"{name} did not come in {timeout_s:g} s")
        return self._facts[name]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets an instance fail with a class, seconds after `NOW`; what it says of the others."""
    facts: dict[str, Any] = {}

    def fail(name: str, klass: str, after_s: float) -> str | None:
        monkeypatch.setattr(peers, "peers_of", lambda *_: Board(name, facts))
        monkeypatch.setattr(time, "time", lambda: NOW + after_s)
        own = OwnFailure(klass, f"it is {klass}", klass in CONSEQUENCES)
        return first_failure(own, "/nowhere")

    return fail


def test_a_cause_outranks_what_came_before_it(fails: Any) -> None:
    """Who only waited in vain names the one with the cause, whoever told first."""
    assert fails("w-1", "nccl_timeout", 0) is None
    assert fails("w-2", "gpu_oom", 1) is None
    assert fails("w-3", "nccl_timeout", 2) == "w-2 failed first: it is gpu_oom (gpu_oom)"
    assert fails("w-4", "gpu_oom", 3) == "w-2 failed first: it is gpu_oom (gpu_oom)"


def test_without_a_cause_the_first_to_wait_in_vain_is_named(fails: Any) -> None:
    """It is the one to look at."""
    assert fails("w-1", "nccl_timeout", 0) is None
    assert fails("w-2", "peer_lost", 1) == "w-1 failed first: it is nccl_timeout (nccl_timeout)"


def test_where_all_are_stopped_nobody_failed_first(fails: Any) -> None:
    """After Ctrl-C none is blamed; who lost one that was stopped is told which."""
    assert fails("w-1", "terminated_sigterm", 0) is None
    assert fails("w-2", "terminated_sigterm", 1) is None
    told = "w-1 failed first: it is terminated_sigterm (terminated_sigterm)"
    assert fails("w-3", "peer_lost", 2) == told


def test_a_failure_of_long_ago_is_another_one(fails: Any) -> None:
    """An instance that failed and was started again explains nothing hours later."""
    assert fails("w-1", "gpu_oom", 0) is None
    later = SAME_FAILURE_S + 1
    assert fails("w-2", "nccl_timeout", later) is None
    assert fails("w-3", "disk_full", later + 1) is None
    assert (
        fails("w-4", "nccl_timeout", later + 2) == "w-3 failed first: it is disk_full (disk_full)"
    )


def test_a_wait_of_minutes_is_said(fails: Any) -> None:
    """A collective's timeout ends ten minutes after the failure that caused it."""
    assert fails("w-1", "user_code_error", 0) is None
    assert fails("w-2", "nccl_timeout", 600) == (
        "w-1 failed first, 10 min before: it is user_code_error (user_code_error)"
    )
