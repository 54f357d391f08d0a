"""Flight recorder dumps: read as plain values, and never run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from pairun.diagnose.stalls import is_dump, read_dump
from pairun.diagnose.table import Table
from tests.diagnose.jobs import incident_of, write


def dump(rank: int, last: int, *, waiting: bool) -> dict[str, Any]:
    """What a rank dumps that has finished some collectives, and may wait in the next one."""
    entries = [
        {"process_group": ("0", "default_pg"), "collective_seq_id": n, "is_p2p": False,
         "profiling_name": "nccl:all_reduce", "state": "completed", "timeout_ms": 600000}
        for n in range(1, last + 1)
    ]  # fmt: skip
    if waiting:
        entries.append({**entries[-1], "collective_seq_id": last + 1, "state": "started"})
    return {"version": "2.5", "rank": rank, "pg_config": {}, "entries": entries}


class _Call:
    """A pickle of it calls a function when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self._path), "w")


def test_the_rank_that_is_behind_is_named(tmp_path: Path, table: Table) -> None:
    """Three ranks wait in collective 8; one has finished 7 and entered none since."""
    logs: dict[str, str | bytes] = {
        f"nccl_trace_rank_{rank}": pickle.dumps(dump(rank, 7, waiting=rank != 2), protocol=2)
        for rank in range(4)
    }
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.stall is not None
    assert incident.stall.words == "rank 2 never entered collective 8 (ALL_REDUCE)"
    assert incident.diagnosis.klass == "nccl_timeout"


def test_the_json_form_says_the_same() -> None:
    """A dump in JSON gives the state of its pickle."""
    values = dump(3, 7, waiting=True)
    assert is_dump(json.dumps(values).encode())
    as_json = read_dump(json.dumps(values).encode(), "x.json")
    assert as_json == read_dump(pickle.dumps(values), "x")
    assert (as_json[0].number, as_json[0].entered) == (8, 8)


def test_a_pickle_that_names_a_function_runs_nothing(tmp_path: Path) -> None:
    """A dump that would call `open` is refused, and the file is not made."""
    made = tmp_path / "made"
    with pytest.raises(ValueError, match="names no class"):
        read_dump(pickle.dumps({"entries": [_Call(made)]}), "nccl_trace_rank_0")
    assert not made.exists()


def test_a_hostile_dump_in_a_folder_is_named_and_left_out(tmp_path: Path, table: Table) -> None:
    """The other logs of the job are still diagnosed."""
    made = tmp_path / "made"
    logs: dict[str, str | bytes] = {
        "nccl_trace_rank_0": pickle.dumps({"entries": [_Call(made)]}),
        "rank1.log": "ModuleNotFoundError: No module named 'einops'\n",
    }
    incident = incident_of(write(tmp_path / "job", logs), table)
    assert incident.diagnosis.klass == "module_not_found"
    assert "names no class" in incident.unread[0]
    assert not made.exists()
