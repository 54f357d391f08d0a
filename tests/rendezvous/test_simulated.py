"""Hundreds of members, with loss, late Pods and replaced ones, on a fake clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.rendezvous_simulated import GOAL_BYTES, GOAL_CALLS, SCENARIOS, Simulation
from tests.effort import cases


@pytest.mark.parametrize("scenario", SCENARIOS)
@settings(max_examples=cases(8))
@given(seed=st.integers(0, 10**9), total=st.integers(2, 400))
def test_all_meet_whatever_happens(scenario: str, seed: int, total: int) -> None:
    """Every member gets the same roster, soon after the last is ready, for few calls."""
    leader_last, dies = SCENARIOS[scenario]
    result = Simulation(total, leader_last=leader_last, dies=dies, seed=seed).run()
    assert result.agree
    assert result.release_s < 30
    assert result.calls[0] <= GOAL_CALLS + 2 * dies
    assert result.api_bytes[0] <= GOAL_BYTES
