"""Logs of small jobs, written by the forms in which PyTorch and its launchers report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pairun.diagnose.gathering import gather
from pairun.diagnose.incident import Incident, join
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table

KEY_ERROR = """\
2026-03-01 12:04:16,870 INFO step 120 loss 0.71
Traceback (most recent call last):
  File "/job/train.py", line 41, in <module>
    weight = weights[name]
KeyError: 'label'
"""


def watchdog(rank: int, clock: str, number: int = 121, enqueued: int | None = None) -> str:
    """What the watchdog of a rank prints when a collective takes too long."""
    head = f"[rank{rank}]:[E301 {clock}.250000000 ProcessGroupNCCL.cpp:629] [Rank {rank}]"
    work = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000)"
    last = number if enqueued is None else enqueued
    return (
        f"{head} Watchdog caught collective operation timeout: {work} ran for 600012 milliseconds before "
        f"timing out.\n[rank{rank}]:[E301 {clock}.260000000 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0 "
        f"Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: {number}, "
        f"last enqueued NCCL work: {last}, last completed NCCL work: {number - 1}.\n"
    )


def write(folder: Path, logs: Mapping[str, str | bytes]) -> Path:
    """Write the logs of a job below a folder."""
    for name, text in logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def incident_of(folder: Path, table: Table) -> Incident:
    """Diagnose what lies below a folder."""
    return join(gather(files_in([str(folder)]), table, 60), table)
