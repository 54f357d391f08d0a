"""The measurement of the diagnosis on labelled logs: what is kept of it, and the scores of any labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from benchmarks import diagnose as command
from pairun.diagnose.classes import CLASSES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks/labelled"


def rows(file: Path) -> dict[str, dict[str, str]]:
    """The rows of a table that is kept, by their id."""
    with open(file, newline="", encoding="utf-8") as f:
        return {row["id"]: row for row in csv.DictReader(f)}


@pytest.mark.parametrize("text_set", ["", "unseen-1", "unseen-2", "unseen-3", "unseen-4"])
def test_what_is_kept_is_complete(text_set: str) -> None:
    """Each label has its source and the rules' answer; the page of benchmarks has the shares of the unseen ones."""
    labels = rows(KEPT / text_set / "labels.csv")
    answers = rows(KEPT / text_set / "answers.csv")
    assert answers.keys() == labels.keys()
    assert {each["klass"] for each in labels.values()} <= CLASSES.keys()
    assert all(each["source"] and each["group"] for each in labels.values())
    strict = sum(each["klass"] == answers[n]["klass"] for n, each in labels.items()) / len(labels)
    accepted = sum(
        answers[n]["klass"] in (each["klass"], *each["also"].split()) for n, each in labels.items()
    ) / len(labels)
    row = f"| all | {len(labels)} | {strict:.1%} | {accepted:.1%} |".replace("%", " %")
    assert not text_set or row in (ROOT / "docs/reference/benchmarks.md").read_text()


def test_own_labelled_logs_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator scores the rules, with those of a content root, on logs with labels."""
    (tmp_path / "a.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n")
    records = [
        {
            "id": "a",
            "class": "gpu_oom",
            "file": "a.log",
            "kind": "file",
            "line": "CUDA out of memory",
        },
        {"id": "b", "class": "none", "text": "step 1/2 loss: 0.5\ntraining is done\n"},
        {"id": "c", "class": "hang", "also": ["unknown"], "files": {"x": "FATAL: flux\n"}},
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    assert command.main(["--labels", str(file)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (own,) = [line for line in lines if line[:2] == ["set", "own"]]
    assert own[2::2] == ["3", "(21%-100%)", "(21%-100%)", "(21%-94%)", "(44%-100%)", "(44%-100%)"]
    assert own[3::2] == ["100.0%", "100.0%", "66.7%", "100.0%", "100.0%", "-"]
    assert ["false", "alarms:", "0", "of", "1", "healthy", "logs"] in lines
