"""The measurement of the diagnosis on labelled logs: repeatable from what is kept, and for any labels."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks.diagnosis import __main__ as command
from benchmarks.diagnosis import stored
from benchmarks.diagnosis.classifier import Guess
from benchmarks.diagnosis.features import BITS, features_of
from benchmarks.diagnosis.labelled import Label
from benchmarks.diagnosis.stored import Answer
from benchmarks.diagnosis.training import Example
from benchmarks.diagnosis.validation import final, gain, guesses, guesses_beyond
from pairun.diagnose.classes import CLASSES


def _examples(group: str) -> list[Example]:
    texts = {"gpu_oom": "CUDA ran out of memory", "disk_full": "no space left on the disk"}
    return [
        Example(features_of([f"{text} {n}"]), klass, f"{group}/{n}")
        for klass, text in texts.items()
        for n in range(8)
    ]


def test_what_is_kept_is_complete() -> None:
    """Each label has its features, its source and both answers; its class is one of pairun's."""
    labels, features = stored.read_labels(), stored.read_features()
    assert len(labels) == len(features) > 500
    assert {each.klass for each in labels} <= CLASSES.keys()
    assert all(each.source and each.group for each in labels)
    names = {each.id for each in labels}
    assert len(names) == len(labels)
    for answers in (stored.read_answers(stored.NOW), stored.read_answers(stored.UNSEEN)):
        assert answers.keys() == names


@pytest.mark.parametrize("text_set", ["unseen-1", "unseen-2"])
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
    """What is kept gives the weights that were measured."""
    examples = command.examples_of(stored.read_labels(), stored.read_features())
    assert hashlib.sha256(final(examples)).hexdigest().startswith("13a635b37d12db0a")


def test_labels_features_and_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also empty ones, and those with separators."""
    labels = [Label("a", "hang", ("none", "host_oom"), "retry", 'a, "b"', "file", 137, "u", "g", "s"), Label("b", "none")]  # fmt: skip
    features = [(0, 5, (1 << BITS) - 1), ()]
    answers = {"a": Answer("hang", 0.5, "Slurm", ""), "b": Answer("none", 0.9, "", "never")}
    stored.write_labels(labels, tmp_path)
    stored.write_features(features, tmp_path)
    stored.write_answers(answers, tmp_path)
    assert stored.read_labels(tmp_path) == labels
    assert stored.read_features(tmp_path) == features
    assert stored.read_answers(stored.NOW, tmp_path) == answers


def test_a_repository_never_trains_for_itself() -> None:
    """A class that only one repository has is never guessed for it."""
    examples = [*_examples("a"), Example(features_of(["the flux is low"]), "hang", "b")]
    guessed = guesses(examples)
    assert [g.klass for g in guessed[:-1]] == [e.klass for e in examples[:-1]]
    assert guessed[-1].klass != "hang"
    known = [*_examples("a"), *_examples("c"), examples[-1]]
    assert guesses_beyond(known, [examples[-1]])[0].klass != "hang"
    assert guesses_beyond(known, _examples("d"))[0].klass == "gpu_oom"


def test_what_a_guess_changes() -> None:
    """Below the threshold it abstains; acceptable classes are right."""
    label = Label("a", "hang", ("node_stuck",))
    wrong, right = Answer("host_oom", 0.5, "", ""), Answer("hang", 0.5, "", "")
    cases = [
        (label, wrong, Guess("node_stuck", 0.8)),
        (label, right, Guess("host_oom", 0.8)),
        (label, wrong, Guess("hang", 0.3)),
        (label, wrong, Guess("host_oom", 0.9)),
    ]
    assert gain(cases, 0.5) == (2, 1, 1)


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
