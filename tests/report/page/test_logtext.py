"""The log text of a run's page."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import attrs

from pairun.report.page.lanes import MAX_LINES
from pairun.report.page.runpage import MOST_EXCERPTS, excerpts, model
from tests.report.page import stories
from tests.report.page.test_runpage import instances_of


def shown(folder: pathlib.Path, records: stories.Records, output: Sequence[str] = ()) -> Any:
    """The excerpts of the page on one instance with this output of its command."""
    (instance,) = instances_of(folder / "logs", {"w-0": records})
    text = "".join(f"{line}\n" for line in output)
    return model([attrs.evolve(instance, read_output=lambda: text)], ())["logs"]


def test_a_failed_command_shows_its_evidence_and_its_end(tmp_path: pathlib.Path) -> None:
    """Five lines around the evidence, the last ones, and which of them are evidence."""
    lines = [f"step {n}" for n in range(200)]
    lines[20] = "KeyError: 'loss'"
    around, last = shown(tmp_path, stories.gang(1, failing=0)["worker-0"], lines)
    assert around["title"] == "w-0: around the evidence"
    assert around["lines"] == lines[15:26]
    assert around["marked"] == [5]
    assert last["title"] == f"w-0: last {MAX_LINES} lines of the command"
    assert last["lines"] == lines[-MAX_LINES:]
    assert last["marked"] == []


def test_evidence_in_the_end_is_marked_there(tmp_path: pathlib.Path) -> None:
    """No line is shown twice."""
    records = stories.gang(1, failing=0)["worker-0"]
    (last,) = shown(tmp_path, records, ["begin", "  KeyError: 'loss'", "end"])
    assert last["title"] == "w-0: last 3 lines of the command"
    assert last["lines"] == ["begin", "  KeyError: 'loss'", "end"]
    assert last["marked"] == [1]


def test_a_failed_task_shows_its_last_lines(tmp_path: pathlib.Path) -> None:
    (last,) = shown(tmp_path, stories.retries(), ["output of no command"])
    assert last == {
        "title": "w-0: last 2 lines of mount_storage",
        "lines": ["mount: /data", "mount: access denied"],
        "marked": [],
    }


def test_a_success_shows_no_log(tmp_path: pathlib.Path) -> None:
    assert shown(tmp_path, stories.success(), ["all is well"]) == []


def test_a_page_has_a_bounded_number_of_excerpts(tmp_path: pathlib.Path) -> None:
    """Those of the first instances; a very long line is cut, and codes for terminals are replaced."""
    instances = [
        attrs.evolve(each, read_output=lambda: f"\x1b[31m{'x' * 9000}\n")
        for each in instances_of(tmp_path / "logs", stories.gang(MOST_EXCERPTS + 5))
    ]
    found = excerpts(instances)
    assert len(found) == MOST_EXCERPTS
    assert found[0]["title"] == f"{instances[0].label}: last 1 line of the command"
    (line,) = found[0]["lines"]
    assert len(line) < 1000
    assert line.isprintable()
