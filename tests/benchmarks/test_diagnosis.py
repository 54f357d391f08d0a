"""The measurement of the diagnosis on labelled logs: repeatable from what is kept, and for any labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.diagnosis import __main__ as command
from benchmarks.diagnosis import stored
from benchmarks.diagnosis.labelled import Label
from benchmarks.diagnosis.stored import Answer
from pairun.diagnose.classes import CLASSES


def test_what_is_kept_is_complete() -> None:
    """Each label has its source and both answers; its class is one of pairun's."""
    labels = stored.read_labels()
    assert len(labels) > 500
    assert {each.klass for each in labels} <= CLASSES.keys()
    assert all(each.source and each.group for each in labels)
    names = {each.id for each in labels}
    assert len(names) == len(labels)
    for answers in (stored.read_answers(stored.NOW), stored.read_answers(stored.UNSEEN)):
        assert answers.keys() == names


@pytest.mark.parametrize("text_set", ["unseen-1", "unseen-2", "unseen-3", "unseen-4"])
def test_what_is_kept_of_unseen_logs_is_complete(text_set: str) -> None:
    """The page on accuracy is about these: each label has its source and the rules' answer."""
    folder = stored.DATA / text_set
    labels = stored.read_labels(folder)
    answers = stored.read_answers(stored.NOW, folder)
    assert answers.keys() == {each.id for each in labels}
    strict = sum(each.klass == answers[each.id].klass for each in labels) / len(labels)
    accepted = sum(each.accepts(answers[each.id].klass) for each in labels) / len(labels)
    page = (Path(__file__).parents[2] / "docs/accuracy.md").read_text()
    row = f"| all | {len(labels)} | {strict:.1%} | {accepted:.1%} |"
    assert row.replace("%", " %") in page


def test_labels_and_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also empty ones, and those with separators."""
    labels = [Label("a", "hang", ("none", "host_oom"), "retry", 'a, "b"', "file", 137, "u", "g", "s"), Label("b", "none")]  # fmt: skip
    answers = {"a": Answer("hang", 0.5, "Slurm", ""), "b": Answer("none", 0.9, "", "never")}
    stored.write_labels(labels, tmp_path)
    stored.write_answers(answers, tmp_path)
    assert stored.read_labels(tmp_path) == labels
    assert stored.read_answers(stored.NOW, tmp_path) == answers


@pytest.mark.slow
def test_own_labelled_logs_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator scores the rules, with those of a content root, on logs with labels."""
    (tmp_path / "a.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n")
    records = [
        {"id": "a", "class": "gpu_oom", "file": "a.log", "kind": "file"},
        {"id": "b", "class": "none", "text": "step 1/2 loss: 0.5\ntraining is done\n"},
        {"id": "c", "class": "hang", "also": ["unknown"], "files": {"x": "FATAL: flux\n"}},
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    assert command.main(["--labels", str(file)]) == 0
    out = capsys.readouterr().out
    assert "set own                          3   66.7%             100.0%" in out
    assert "false alarms: 0 of 1 healthy logs" in out
