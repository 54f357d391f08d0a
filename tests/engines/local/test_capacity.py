"""More instances than the machine has resources for are refused."""

from __future__ import annotations

import pytest

from pairun.engines.local.capacity import Capacity, check_capacity, measure
from pairun.errors import PairunError


def test_the_refusal_names_the_number_that_fits() -> None:
    """What fits passes; one more is PR705, with the number, the reason and the way to insist."""
    capacity = Capacity(instances=7, because="too little of something")
    check_capacity(7, capacity)
    with pytest.raises(PairunError) as refusal:
        check_capacity(8, capacity)
    (problem,) = refusal.value.problems
    assert problem.id == "PR705"
    assert "8 instances do not fit on this machine: 7 do (too little of" in problem.message
    assert problem.hint == "run fewer with --instances 7, or run all of them with --overcommit"


def test_this_machine_carries_some_instances_and_not_a_million() -> None:
    """What is measured is a number that a machine can have."""
    assert 0 <= measure().instances < 1_000_000
    with pytest.raises(PairunError):
        check_capacity(10_000_000)
