"""Each recorded incident gets the class, the first rank and the advice that its fault calls for."""

from __future__ import annotations

import gzip
import os
import re
from typing import Any

import pytest

from pairun.diagnose.classes import CLASSES
from pairun.diagnose.table import Table
from tests.incidents import by_hand, invented, table
from tests.incidents.score import RECORDED, built_in_rules, expected_of, score

GAPS: dict[str, str] = {
    "loop-late-start": "a rank that comes when all others have given up is not told from them",
    "mpi-asleep-tagged": "no log shows anything of the hang",
    "node-keys-cloudwatch": "the number of the node follows the level, without brackets",
    "process-at-end": "the name of the process is at the end of the lines",
    "ranks-mismatch": "all ranks time out; that one waits at another line of the code names none",
    "ray-fleet-asleep": "Ray's GetTimeoutError is taken for an error of the code",
    "recorded-launchers-only": "one line of each host, without numbers in their names",
    "server-healthy": "without the exit code, the last line 'stopped' tells of no success",
    "torchrun-abort": "an assertion in the user's C library is taken for the framework's",
    "warehouse-logged": "no rule knows the words of the program's own error",
    "zero-code": "only the launcher reports the exit code 0 of the first rank",
}
"""What the diagnosis of an incident still gets wrong. An entry that is right again fails."""


@pytest.fixture(scope="module")
def rules() -> Table:
    """Return the built-in rules."""
    return built_in_rules()


def _names() -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=GAPS[name])) if name in GAPS else name
        for name in sorted(os.listdir(RECORDED))
    ]


def _bytes(path: str) -> bytes:
    with open(path, "rb") as f:
        text = f.read()
    return gzip.decompress(text) if path.endswith(".gz") else text


@pytest.mark.parametrize("name", _names())
def test_a_recorded_incident_gets_its_class_rank_and_advice(name: str, rules: Table) -> None:
    """Class and first rank are what was injected; no retry is forbidden that may help."""
    one = score(os.path.join(RECORDED, name), rules)
    assert one.acceptable, one.said
    assert not one.forbidden, one.said
    assert one.first is not False, one.said


@pytest.mark.parametrize("name", sorted(os.listdir(RECORDED)))
def test_a_label_is_what_its_case_injects(name: str) -> None:
    """expected.json is written from the case, which knows the fault."""
    run = table.INCIDENTS.get(name)
    written = invented.INCIDENTS.get(name) or (
        by_hand.INCIDENTS[name].label if not run else run.label
    )
    label = run.label.data("run") if run else written.data("by hand")
    assert expected_of(os.path.join(RECORDED, name)) == label
    assert {label["class"], *label["also"]} <= set(CLASSES)


def test_recordings_are_small_and_name_no_machine() -> None:
    """All together stay below 1.5 MB, and no path of the machine that recorded them is left."""
    paths = [os.path.join(at, name) for at, _, names in os.walk(RECORDED) for name in names]
    assert sum(os.path.getsize(path) for path in paths) < 1.5e6
    texts = {path: _bytes(path) for path in paths}
    assert [
        path for path, text in texts.items() if re.search(rb"/(root|home|work|var/tmp)/", text)
    ] == []


def test_gaps_are_recorded_incidents() -> None:
    """Every gap names an incident that is there."""
    assert set(GAPS) <= set(os.listdir(RECORDED))
