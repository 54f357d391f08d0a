"""The results of a run as JSON; ``benchmarks/history`` has one file for each release."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import ROOT, Row

SCHEMA = 1
HISTORY = ROOT / "benchmarks" / "history"


class Machine(NamedTuple):
    """Where it was measured.

    Attributes:
        processors: that this process may use.
        model: the processor's name, or its architecture.
        kernel: its release.
        python: its version.
        load: how many processes wanted a processor in the last minute, before it began.
    """

    processors: int
    model: str
    kernel: str
    python: str
    load: float

    @classmethod
    def here(cls) -> Machine:
        """This one, now."""
        return cls(
            len(os.sched_getaffinity(0)),
            _model(),
            platform.release(),
            platform.python_version(),
            os.getloadavg()[0],
        )

    def sentence(self) -> str:
        """The first line of the table."""
        processors = f"{self.processors} processor{'s' * (self.processors > 1)}"
        busy = " (busy: trust the ratios, not the times)" if self.load > self.processors / 2 else ""
        return f"{processors}, {self.model}, Python {self.python}, load {self.load:.1f}{busy}"


class Measured(NamedTuple):
    """A row, with what the machine did besides.

    Attributes:
        part: of the benchmarks.
        row: what was measured.
        load: of the machine at its end.
    """

    part: str
    row: Row
    load: float


class Record(NamedTuple):
    """The results of a run.

    Attributes:
        version: of pairun.
        machine: where.
        measured: the rows.
        unmeasured: by part why there are none.
    """

    version: str
    machine: Machine
    measured: Sequence[Measured]
    unmeasured: Mapping[str, str]


def record_data(record: Record) -> dict[str, Any]:
    """The results as JSON."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {
        "schema": SCHEMA,
        "pairun": record.version,
        "date": today,
        "machine": record.machine._asdict(),
        "rows": [_row_data(m) for m in record.measured],
        "not_measured": dict(record.unmeasured),
    }


def _row_data(measured: Measured) -> dict[str, Any]:
    row = measured.row
    return {
        "part": measured.part,
        "what": row.what,
        "unit": row.unit,
        "least": round(row.measured.least, 3),
        "median": round(row.measured.median, 3),
        "runs": row.measured.runs,
        "goal": round(row.goal, 3),
        "met": not row.is_over,
        "peer": row.peer,
        "peer_least": round(row.peer_measured.least, 3),
        "peer_median": round(row.peer_measured.median, 3),
        "ratio": round(row.ratio, 4),
        "load": round(measured.load, 2),
        "note": row.note,
    }


def record_of(path: pathlib.Path) -> dict[str, Any]:
    """The results that a file keeps.

    Raises:
        ValueError: they have another schema.
    """
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path}: its schema is {document.get('schema')}, not {SCHEMA}")
    return document


def merged(kept: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Earlier results of the same version with those parts replaced that were measured again."""
    if kept is None or kept["pairun"] != new["pairun"]:
        return dict(new)
    parts = {row["part"] for row in new["rows"]} | new["not_measured"].keys()
    rows = [row for row in kept["rows"] if row["part"] not in parts]
    reasons = {p: why for p, why in kept["not_measured"].items() if p not in parts}
    return {
        **new,
        "rows": [*rows, *new["rows"]],
        "not_measured": {**reasons, **new["not_measured"]},
    }


def history() -> list[dict[str, Any]]:
    """The results of every release, the oldest first."""
    paths = sorted(HISTORY.glob("*.json"), key=lambda p: [int(n) for n in p.stem.split(".")])
    return [record_of(path) for path in paths]


def _model() -> str:
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = text.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
