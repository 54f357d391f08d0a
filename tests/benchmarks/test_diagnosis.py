"""The measurement of the diagnosis on labelled logs: repeatable from what is kept, and for any labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.diagnosis import __main__ as command
from benchmarks.diagnosis import stored
from benchmarks.diagnosis.labelled import Label
from benchmarks.diagnosis.messages import Message, messages_of_rules, written_messages
from benchmarks.diagnosis.stored import Answer
from benchmarks.diagnosis.validation import Case, by_writers, change, classifier_of
from pairun.diagnose import classifier
from pairun.diagnose.classes import CLASSES
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import read_rules


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


def test_the_messages_are_complete() -> None:
    """Each has a class of pairun's and a writer; none is there twice."""
    messages = written_messages()
    assert len(messages) > 3000
    assert {each.klass for each in messages} <= CLASSES.keys()
    assert {klass for each in messages for klass in each.also} <= CLASSES.keys()
    assert all(each.writer and each.text.strip() for each in messages)
    assert len({each.text for each in messages}) == len(messages)


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


@pytest.mark.slow
def test_training_repeats_bit_for_bit() -> None:
    """The same messages give the same weights, of the size and the classes of those in use."""
    rules = read_rules(Content([built_in_root()]), Problems())
    messages = [*written_messages(), *messages_of_rules(rules)]
    weights = classifier_of(messages)
    assert weights == classifier_of(messages)
    used = (Path(classifier.__file__).parent / classifier.WEIGHTS).read_bytes()
    assert 0.9 < len(used) / len(weights) < 1.1
    assert json.loads(used.partition(b"\n")[0])["classes"] == sorted({m.klass for m in messages})


def test_labels_and_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also empty ones, and those with separators."""
    labels = [Label("a", "hang", ("none", "host_oom"), "retry", 'a, "b"', "file", 137, "u", "g", "s"), Label("b", "none")]  # fmt: skip
    answers = {"a": Answer("hang", 0.5, "Slurm", ""), "b": Answer("none", 0.9, "", "never")}
    stored.write_labels(labels, tmp_path)
    stored.write_answers(answers, tmp_path)
    assert stored.read_labels(tmp_path) == labels
    assert stored.read_answers(stored.NOW, tmp_path) == answers


def test_a_writer_never_trains_for_itself() -> None:
    """A message of which only its own writer knows the words is not guessed."""
    table = read_rules(Content([built_in_root()]), Problems()).table()
    text = "the flux of the plasma cannot be held"
    others = [
        Message("all is well", "none", (), "b"),
        Message("the mixer wants another flavour", "config_error", (), "b"),
    ]
    own = Message(text, "device_busy", (), "a")
    known = [*others, Message(f"{text} now", "device_busy", (), "b")]
    for messages, guessed in ((others, False), (known, True)):
        cases = by_writers([own, *messages], [], table)
        assert [c.guessed == "device_busy" for c in cases if c.label.group == "a"] == [guessed]


def test_what_guesses_change() -> None:
    """Acceptable classes are right; an abstention changes nothing."""
    label, healthy = Label("a", "hang", ("node_stuck",)), Label("b", "none")
    cases = [
        Case(label, "unknown", "node_stuck"),
        Case(label, "none", "hang"),
        Case(label, "hang", "host_oom"),
        Case(label, "unknown", "unknown"),
        Case(healthy, "none", "hang"),
    ]
    assert change(cases) == (5, 4, 2, 2, -1, 1)


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
    assert "rules say " in out
