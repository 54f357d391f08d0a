"""Servers that were stopped and shut down: nothing failed, and no checkpoint helps."""

from __future__ import annotations

import pytest

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

SERVED = '(APIServer pid=1) INFO:     10.2.0.5:40059 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 4
UVICORN = """\
(APIServer pid=1) INFO:     Shutting down
(APIServer pid=1) INFO:     Waiting for application shutdown.
(APIServer pid=1) INFO:     Application shutdown complete.
(APIServer pid=1) INFO:     Finished server process [1]
"""
TORCH = "[rank0]:[W1121 03:20:01.2 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called\n"
SIGTERM = "(APIServer pid=1) WARNING 11-21 03:20:00 [launcher.py:97] received SIGTERM, stopping\n"
GUNICORN = "[2026-11-21 03:20:00 +0000] [1] [INFO] Handling signal: term\n[2026-11-21 03:20:01 +0000] [1] [INFO] Shutting down: Master\n"


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        (SERVED + SIGTERM + UVICORN + TORCH, None),
        (SERVED + SIGTERM + UVICORN, 143),
        (SERVED + UVICORN + TORCH, 143),
        (GUNICORN, 143),
    ],
)
def test_a_server_that_was_stopped_shut_down(
    text: str, exit_code: int | None, table: Table
) -> None:
    """The answer shows the line of the shutdown, and does not ask for checkpoints."""
    diagnosis = diagnose([Log(text.encode(), "a.log")], table, Circumstances(exit_code=exit_code))
    assert diagnosis.klass == "terminated_sigterm"
    assert diagnosis.headline == "the server was stopped from outside, and shut down"
    assert "checkpoint" not in diagnosis.advice
    ends = ("Finished server process [1]", "Shutting down: Master")
    assert any(e.text.endswith(ends) for e in diagnosis.evidence)


@pytest.mark.parametrize(
    "text",
    [
        SERVED + UVICORN + "step 1 loss 0.5\n" * 40 + SIGTERM,
        "step 1 loss 0.5\n" + SIGTERM,
    ],
)
def test_a_training_that_was_stopped_keeps_its_advice(text: str, table: Table) -> None:
    """An earlier server's shutdown is not the end of this log."""
    diagnosis = diagnose([Log(text.encode())], table)
    assert diagnosis.headline == "the job was stopped from outside"
    assert "checkpoint" in diagnosis.advice


def test_a_named_stop_keeps_its_headline(table: Table) -> None:
    """Who stopped the server is more than that it was stopped."""
    text = (
        SERVED
        + UVICORN
        + "slurmstepd: error: *** JOB 991 ON gpu3 CANCELLED AT 2026-11-21T03:20:00 DUE TO PREEMPTION ***\n"
    )
    diagnosis = diagnose([Log(text.encode())], table)
    assert diagnosis.headline == "Slurm preempted the job for another one"
    assert "checkpoint" not in diagnosis.advice
    assert diagnose([Log((SERVED + UVICORN).encode())], table).klass == "none"
