"""Ranks that report different collectives."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from pairun.incident.differences import Difference, differing_rank
from tests.incident.jobs import incident_of, write


def mismatch(rank: int, other: int) -> str:
    """What a rank prints whose collective differs from another rank's."""
    form = "Rank {} is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType={}, TensorShape=[8, 2])"
    shown = [form.format(rank, "BROADCAST"), form.format(other, "ALLREDUCE")]
    return (
        f"2026-03-01 12:04:{10 + rank} step 0\nTraceback (most recent call last):\n"
        '  File "/job/train.py", line 98, in <module>\n    dist.broadcast(p.data, src=0)\n'
        f"RuntimeError: Detected mismatch between collectives on ranks. {', but '.join(shown)}."
        "Collectives differ in the following aspects: \t Op type: BROADCASTvs ALLREDUCE\n"
    )


@pytest.mark.parametrize("odd", [0, 2, 3])
def test_the_rank_that_all_others_name_is_first(tmp_path: Path, table: Table, odd: int) -> None:
    """The odd rank itself names any of the others; the job's code is to blame."""
    others = {rank: odd for rank in range(4) if rank != odd}
    named = {**others, odd: min(others)}
    logs = {f"rank{rank}.log": mismatch(rank, other) for rank, other in named.items()}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert (incident.first.rank, incident.diagnosis.klass) == (odd, "user_code_error")
    assert incident.decided_by == f"the other ranks report that rank {odd}'s collective differs"


def test_two_ranks_that_differ_name_no_first(tmp_path: Path, table: Table) -> None:
    """Either may be wrong."""
    logs = {"rank0.log": mismatch(0, 1), "rank1.log": mismatch(1, 0)}
    incident = incident_of(write(tmp_path, logs), table)
    assert (incident.first, incident.diagnosis.klass) == (None, "user_code_error")


def test_two_groups_of_ranks_that_differ_name_no_rank() -> None:
    """Each group names the first rank of the other."""
    pairs = [(0, 2), (1, 2), (4, 2), (2, 0), (3, 0)]
    assert differing_rank(Difference(*pair) for pair in pairs) is None
