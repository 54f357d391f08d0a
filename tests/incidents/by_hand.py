"""Incidents that need GPUs, written by the form in which PyTorch writes them.

The watchdog's lines are those of ``ProcessGroupNCCL.cpp``. The dumps are the flight recorder's in
version 2.5 (https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html), as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.incidents.incident import Label

_START_NS = 1_795_321_160_000_000_000


class Collective(NamedTuple):
    """The collective that a rank was the last to start.

    Attributes:
        number: its sequence number.
        kind: as in ``OpType``.
        elements: how many values it has.
        waits: it has not ended.
    """

    number: int
    kind: str
    elements: int
    waits: bool = True


class Written(NamedTuple):
    """An incident by hand.

    Attributes:
        label: what is known.
        last: the last collective of each rank.
        words: a rank's own words after its last step.
    """

    label: Label
    last: dict[int, Collective]
    words: Mapping[int, str] = {}


_SUM = Collective(412, "ALLREDUCE", 1_048_576)

INCIDENTS: dict[str, Written] = {
    "nccl-other-collective": Written(
        Label(
            "rank 1 enters an all-gather as its collective 412, the others an all-reduce",
            "nccl_timeout", "after_fix", 1, ["hang", "user_code_error"],
        ),
        {rank: _SUM if rank != 1 else Collective(412, "_ALLGATHER_BASE", 64) for rank in range(4)},
    ),
}  # fmt: skip


def write(name: str, folder: str) -> None:
    """Write each rank's log and its dump."""
    os.makedirs(folder, exist_ok=True)
    incident = INCIDENTS[name]
    for rank, last in incident.last.items():
        with open(os.path.join(folder, f"rank-{rank}.log"), "w") as f:
            f.write(_log(rank, last, incident.words.get(rank, "")))
        with open(os.path.join(folder, f"nccl_trace_rank_{rank}.json"), "w") as f:
            f.write(json.dumps(_dump(rank, last)) + "\n")


def _log(rank: int, last: Collective, words: str) -> str:
    head = f"[rank{rank}]:[E1122 04:36:12.{730_000_000 + rank * 1000} ProcessGroupNCCL.cpp"
    lines = [
        f"2026-11-22 04:26:{n:02},101 INFO step {400 + n} loss {2 / (n + 1):.4f}" for n in range(12)
    ]
    text = "\n".join(lines) + "\n" + words
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    sizes = f"NumelIn={last.elements}, NumelOut={last.elements}"
    work = f"WorkNCCL(SeqNum={last.number}, OpType={last.kind}, {sizes}, Timeout(ms)=600000)"
    if not last.waits:
        done = f"Last enqueued NCCL work: {last.number}, last completed NCCL work: {last.number}."
        return text + (
            f"{head}:1682] {group} Observed flight recorder dump signal from another rank via TCPStore.\n"
            f"{head}:1743] {group} Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. {done}This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the order of collectives is not same for all ranks or the scheduled collective, for some reason, didn't run. Additionally, this can be caused by GIL deadlock or other reasons such as network errors or bugs in the communications library (e.g. NCCL), etc. \n"
        )
    done = f"last enqueued work: {last.number}, last completed work: {last.number - 1}"
    timed_out = f"Watchdog caught collective operation timeout: {work} ran for 600012 milliseconds before timing out."
    return text + (
        f"{head}:685] {group} {timed_out}\n"
        f"{head}:2252] {group}  failure detected by watchdog at work sequence id: {last.number} PG status: {done}\n"
        f"{head}:2104] {group} First PG on this rank to signal dumping.\n"
        f"{head}:699] {group} Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
        f"{head}:713] {group} To avoid data inconsistency, we are taking the entire process down.\n"
        f"{head}:1902] {group} Process group watchdog thread terminated with exception: [Rank {rank}] {timed_out}\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {group} Process group watchdog thread terminated with exception: [Rank {rank}] {timed_out}\n"
    )


def _dump(rank: int, last: Collective) -> dict[str, Any]:
    before = [
        Collective(n, "ALLREDUCE", 1_048_576, waits=False)
        for n in range(last.number - 3, last.number)
    ]
    entries = [_entry(n, collective) for n, collective in enumerate([*before, last])]
    completed = last.number - 1 if last.waits else last.number
    status = {"last_enqueued_collective": last.number, "last_started_collective": last.number}
    return {
        "version": "2.5",
        "rank": rank,
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
        "pg_status": {"0": {**status, "last_completed_collective": completed}},
        "entries": entries,
    }


def _entry(record: int, collective: Collective) -> dict[str, Any]:
    created = _START_NS + collective.number * 1_000_000_000
    name = {"ALLREDUCE": "all_reduce"}.get(collective.kind, "_all_gather_base")
    return {
        "record_id": record,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": collective.number,
        "p2p_seq_id": 0,
        "op_id": collective.number,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": created,
        "input_sizes": [[collective.elements]],
        "input_dtypes": ["Float"],
        "output_sizes": [[collective.elements]],
        "output_dtypes": ["Float"],
        "state": "started" if collective.waits else "completed",
        "time_discovered_started_ns": created + 1_000_000,
        "time_discovered_completed_ns": None if collective.waits else created + 9_000_000,
        "retired": not collective.waits,
        "timeout_ms": 600_000,
        "is_p2p": False,
    }
