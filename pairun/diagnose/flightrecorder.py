"""Reads dumps of PyTorch's flight recorder: the state of a rank's collectives.

A dump is a pickle of plain values (FlightRecorder.hpp, versions 1 to 2.10) or their JSON form. A
pickle can call any function, so this reader allows only numbers, texts, lists and mappings. It
refuses everything else.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

from pairun.base.foreignjson import parse_json
from pairun.diagnose.collectives import RankState

MAX_BYTES = 64 << 20

_MARKS = (b"entries", b"pg_config", b"version")
_RANK = re.compile(r"(\d+)(?:\.(?:pkl|pickle|json|bin))?$")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a dump names no class: {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("a dump refers to nothing outside")


def is_dump(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a dump."""
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return True
    return head.lstrip()[:1] == b"{" and all(
        mark in head for mark in (b'"entries"', b'"pg_config"')
    )


def read_dump(data: bytes, name: str) -> list[RankState]:
    """How far a dump's rank got in each process group.

    Args:
        data: the dump.
        name: the file's name; it ends with the rank: ``nccl_trace_rank_3``.

    Raises:
        ValueError: it is not a dump, or it names objects.
    """
    dump = _values(data)
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no flight recorder's dump: it has no entries")  # noqa: TRY004
    rank = _rank_of(dump, name)
    if rank is None:
        return []
    states: dict[str, RankState] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        number = entry.get("collective_seq_id", entry.get("seq_id"))
        if not isinstance(number, int):
            continue
        group = str(_group_of(entry))
        before = states.get(group, RankState(rank, group, enqueued=-1, completed=-1))
        states[group] = _advanced(before, number, entry)
    status = dump.get("pg_status")
    for group, state in states.items():
        counts = status.get(group) if isinstance(status, dict) else None
        if isinstance(counts, dict):
            states[group] = _by_status(state, counts, entries)
    return list(states.values())


def _by_status(state: RankState, counts: dict[str, Any], entries: list[Any]) -> RankState:
    """Complete a state from its group's counters; gloo's entries lack what has completed."""
    enqueued = counts.get("last_enqueued_collective")
    completed = counts.get("last_completed_collective")
    if not isinstance(enqueued, int) or not isinstance(completed, int):
        return state
    waiting = completed + 1 if enqueued > completed else None
    names = (
        str(entry.get("profiling_name") or "")
        for entry in entries
        if isinstance(entry, dict) and entry.get("collective_seq_id") == waiting
    )
    operation = next(names, "").rpartition(":")[2].upper() if waiting is not None else ""
    return state._replace(
        waiting=waiting, operation=operation, enqueued=enqueued, completed=completed
    )


def _advanced(state: RankState, number: int, entry: dict[str, Any]) -> RankState:
    completed = state.completed if state.completed is not None else -1
    enqueued = state.enqueued if state.enqueued is not None else -1
    if entry.get("state") == "completed":
        completed = max(completed, number)
    elif state.waiting is None or number < state.waiting:
        operation = str(entry.get("profiling_name") or "").rpartition(":")[2].upper()
        state = state._replace(waiting=number, operation=operation)
    return state._replace(enqueued=max(enqueued, number), completed=completed)


def _values(data: bytes) -> Any:
    try:
        if data.lstrip()[:1] == b"{":
            return parse_json(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError, ValueError, EOFError, AttributeError, IndexError, KeyError, TypeError,
        RecursionError, MemoryError, ImportError, OverflowError,
    ) as e:  # fmt: skip
        raise ValueError(f"no flight recorder's dump: {e}") from e


def _rank_of(dump: dict[str, Any], name: str) -> int | None:
    for key in ("rank", "global_rank"):
        if isinstance(dump.get(key), int):
            return int(dump[key])
    match = _RANK.search(name)
    return int(match[1]) if match else None


def _group_of(entry: dict[str, Any]) -> Any:
    group = entry.get("pg_name", entry.get("pg_id", 0))
    name = entry.get("process_group")
    if isinstance(name, (list, tuple)) and name:
        return name[0]
    return group
