"""Dumps of stacks show which rank does something else while the others wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.lines import Log
from pairun.diagnose.stalls import last_stack
from pairun.diagnose.table import Table
from tests.diagnose.jobs import incident_of, write

RUNNING = "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
_TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
WATCHDOG = (
    "Timeout (0:05:00)!\nThread 0x00007fef86433b80 (most recent call first):\n"
    '{inner}  File "/job/train.py", line {line} in {function}\n'
    '  File "/job/train.py", line 90 in <module>\n'
)
SPIED = (
    "Process 20: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
    'Thread 20 (idle): "MainThread"\n{inner}    {function} (train.py:{line})\n'
    "    <module> (train.py:90)\n"
)
INNER = {
    WATCHDOG: f'  File "{_TORCH}", line 3252 in all_reduce\n',
    SPIED: "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n",
}


@pytest.mark.parametrize("form", [WATCHDOG, SPIED], ids=["faulthandler", "py-spy"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_the_rank_outside_of_the_collective_is_named(
    tmp_path: Path, table: Table, form: str, ranks: int
) -> None:
    """No log has an error; the others wait for it in torch."""
    waits = form.format(inner=INNER[form], line=41, function="average")
    busy = form.format(inner="", line=17, function="find_latest")
    logs = {f"rank{n}.log": RUNNING + (busy if n == 1 else waits) for n in range(ranks)}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert incident.diagnosis.klass == "hang"
    assert incident.decided_by == (
        "rank 1 is at train.py:17 (find_latest), the others wait at train.py:41 (all_reduce)"
    )
    shown = incident.diagnosis.evidence[0]
    lines = (tmp_path / "rank1.log").read_text().splitlines()
    assert shown.file.endswith("rank1.log")
    assert shown.text == lines[shown.line - 1].strip()
    assert "17" in shown.text
    assert incident.diagnosis.advice == (
        "see why it does not go on at train.py:17 (find_latest); run it again"
    )


def test_stacks_that_are_all_the_same_name_no_rank(tmp_path: Path, table: Table) -> None:
    """Each only shows that it waits."""
    waits = WATCHDOG.format(inner=INNER[WATCHDOG], line=41, function="average")
    incident = incident_of(write(tmp_path, {f"rank{n}.log": waits for n in range(4)}), table)
    assert incident.first is None
    assert incident.diagnosis.klass == "hang"
    assert incident.diagnosis.advice == (
        "see why it does not go on at train.py:41 (all_reduce); run it again"
    )


def test_stacks_at_different_places_are_compared(tmp_path: Path, table: Table) -> None:
    """Two and two: no rank is the odd one, and the dumps are at hand."""
    logs = {
        f"rank{n}.log": WATCHDOG.format(inner=INNER[WATCHDOG], line=41 + n % 2, function="average")
        for n in range(4)
    }
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.diagnosis.klass == "hang"
    assert incident.diagnosis.advice == "compare the stacks of the ranks; run it again"


def test_a_log_with_a_dump_needs_no_other_one(tmp_path: Path, table: Table) -> None:
    """The one log of a job shows where it waits."""
    log = RUNNING + WATCHDOG.format(inner=INNER[WATCHDOG], line=41, function="average")
    incident = incident_of(write(tmp_path, {"train.log": log}), table)
    assert incident.diagnosis.advice == (
        "see why it does not go on at train.py:41 (all_reduce); run it again"
    )


def test_the_stack_of_a_crash_shows_no_hang() -> None:
    """Python prints it for a crash, too."""
    text = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
    text += '  File "/job/train.py", line 17 in <module>\n'
    assert last_stack(Log(text.encode())) is None
