"""Each recorded incident gets the class and the retry advice that its fault calls for."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import read_rules

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")
GAPS: dict[str, str] = {
    "checkpoint-damaged": "torch says no more than: Invalid argument",
    "mpi-abort": "MPI_ABORT is taken for an abort in native code",
    "ranks-sigkill": "the timeouts of those who wait outweigh the connections that closed",
    "ranks-stopped": "the exit codes in pods.json are not read",
    "shell-source": "a file given to source is taken for a program",
    "torchrun-heals": "the attempt that failed counts although the next one finished",
    "torchrun-sigkill": "the launcher's SIGTERM to the others outweighs the SIGKILL before it",
}
"""What the diagnosis of an incident still gets wrong. An entry that is right again fails."""


@pytest.fixture(scope="module")
def table() -> Table:
    """Return the built-in rules."""
    return read_rules(Content([built_in_root()]), Problems()).table()


def _names() -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=GAPS[name])) if name in GAPS else name
        for name in sorted(os.listdir(RECORDED))
    ]


def _expected(name: str) -> dict[str, Any]:
    with open(os.path.join(RECORDED, name, "expected.json")) as f:
        expected: dict[str, Any] = json.load(f)
    return expected


def _logs(name: str) -> list[Log]:
    """Read the files of an incident."""
    folder = os.path.join(RECORDED, name)
    paths = [os.path.join(at, file) for at, _, files in os.walk(folder) for file in files]
    logs = []
    for path in sorted(paths):
        shown = os.path.relpath(path, folder)
        if shown != "expected.json":
            with open(path, "rb") as f:
                logs.append(Log(f.read(), shown, 1))
    return logs


@pytest.mark.parametrize("name", _names())
def test_a_recorded_incident_gets_its_class_and_advice(name: str, table: Table) -> None:
    """The class is the one that was injected, or acceptable; no retry is forbidden that may help."""
    expected = _expected(name)
    diagnosis = diagnose(_logs(name), table, Circumstances(), 20, clock=time.process_time)
    assert diagnosis.klass in {expected["class"], *expected["also"]}, expected["how"]
    if expected["retry"] in {"retry", "retry_elsewhere"}:
        assert diagnosis.retry not in {"after_fix", "never"}, expected["how"]


def test_gaps_are_recorded_incidents() -> None:
    """Every gap names an incident that is there."""
    assert set(GAPS) <= set(os.listdir(RECORDED))
