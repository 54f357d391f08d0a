"""Hundreds of members, with loss, late Pods and replaced ones, on a fake clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import cases
from tests.rendezvous.simulation import (
    GOAL_BYTES,
    GOAL_CALLS,
    GOAL_LARGE_S,
    GOAL_S,
    SCENARIOS,
    Simulation,
)


@pytest.mark.parametrize("scenario", SCENARIOS)
@settings(max_examples=cases(8))
@given(seed=st.integers(0, 10**9), total=st.integers(2, 400))
def test_all_meet_whatever_happens(scenario: str, seed: int, total: int) -> None:
    """Every member gets the same roster, soon after the last is ready, for few calls."""
    leader_last, dies = SCENARIOS[scenario]
    _check(Simulation(total, leader_last=leader_last, dies=dies, seed=seed), release_s=30)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, marks=pytest.mark.slow if is_last else pytest.mark.nightly)
        for each, (is_last, _) in SCENARIOS.items()
    ],
)
def test_ten_thousand_meet(scenario: str) -> None:
    leader_last, dies = SCENARIOS[scenario]
    simulation = Simulation(10_000, leader_last=leader_last, dies=dies, seed=1)
    _check(simulation, release_s=GOAL_LARGE_S)


def _check(simulation: Simulation, release_s: float) -> None:
    result = simulation.run()
    assert result.agree
    assert result.release_s < release_s
    assert result.calls[0] <= GOAL_CALLS + 2 * simulation.dies
    assert result.api_bytes[0] <= GOAL_BYTES


@pytest.mark.parametrize("leader_last", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_thousand_are_released_soon(seed: int, leader_last: bool) -> None:
    """Within a second on the fake clock, although one in a hundred connections fails."""
    result = Simulation(1000, leader_last=leader_last, dies=False, seed=seed).run()
    assert result.agree
    assert result.release_s <= GOAL_S
