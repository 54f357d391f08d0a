"""Every recorded incident names the rank that failed first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pairun.diagnose.table import Table
from pairun.incident.gathering import files_in, gather
from pairun.incident.joining import join

RECORDED = Path(__file__).parent.parent / "incidents" / "recorded"


@pytest.mark.parametrize("name", sorted(p.name for p in RECORDED.iterdir() if p.is_dir()))
def test_a_recorded_incident_names_its_first_rank(name: str, table: Table) -> None:
    """The rank and the class are those of the fault that was injected."""
    expected: dict[str, Any] = json.loads((RECORDED / name / "expected.json").read_text())
    files = [f for f in files_in([str(RECORDED / name)]) if f.within != "expected.json"]
    incident = join(gather(files, table, 60), table)
    assert incident.diagnosis.klass in {expected["class"], *expected["also"]}, expected["how"]
    first = incident.first
    if expected["first_rank"] is not None:
        assert first is not None, expected["how"]
        assert first.rank == expected["first_rank"], incident.decided_by
