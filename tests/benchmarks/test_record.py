"""The results of a run as JSON, and those that are kept of each release."""

from __future__ import annotations

import json
import pathlib
import tomllib
from typing import Any

import pytest

from benchmarks.measure import ROOT, Row, fixed, samples
from benchmarks.record import (  # fmt: skip
    HISTORY,
    Machine,
    Measured,
    Record,
    history,
    merged,
    record_data,
    record_of,
)

MACHINE = Machine(2, "a processor", "6.1", "3.11.2", 0.5)


def _data(version: str, *parts: str, least: float = 1.0) -> dict[str, Any]:
    row = Row("a start", "ms", samples([least, 3.0]), 2.0, "a peer", fixed(4.0))
    measured = [Measured(part, row, 0.7) for part in parts]
    return record_data(Record(version, MACHINE, measured, {}))


def test_a_row_says_what_was_measured_and_beside_what() -> None:
    """With both samples, their number, the peer's, and the load."""
    (row,) = _data("1.0", "tasks")["rows"]
    assert (row["least"], row["median"], row["runs"], row["unit"]) == (1.0, 2.0, 2, "ms")
    assert (row["met"], row["peer_least"], row["ratio"], row["load"]) == (True, 4.0, 0.25, 0.7)


def test_measuring_a_part_again_replaces_that_part() -> None:
    """So the parts of a release may be measured one after another."""
    both = merged(_data("1.0", "tasks", "init"), _data("1.0", "init", least=2.0))
    assert [(r["part"], r["least"]) for r in both["rows"]] == [("tasks", 1.0), ("init", 2.0)]


def test_another_version_begins_anew() -> None:
    """A file of the history holds one release."""
    assert [r["part"] for r in merged(_data("1.0", "tasks"), _data("1.1", "init"))["rows"]] == [
        "init"
    ]


def test_a_file_of_another_schema_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "1.0.json"
    path.write_text(json.dumps({"schema": 0}))
    with pytest.raises(ValueError, match="schema"):
        record_of(path)


def test_the_history_has_this_version() -> None:
    """And every file is named after the release whose results it holds."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (HISTORY / f"{version}.json").exists()
    assert all((HISTORY / f"{r['pairun']}.json").exists() for r in history())
