"""Scores the diagnosis on labelled logs, and repeats the measurement of a statistical second opinion.

Without arguments it uses what the project keeps: labels, hashed features and the rules' last answers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import sys
from collections.abc import Iterable, Sequence

from benchmarks.diagnosis import stored
from benchmarks.diagnosis.features import decisive_lines, features_of
from benchmarks.diagnosis.labelled import Label, LabelledLog, labelled_logs
from benchmarks.diagnosis.scoring import score_lines
from benchmarks.diagnosis.stored import Answer
from benchmarks.diagnosis.training import Example
from benchmarks.diagnosis.validation import (
    accuracy_lines,
    final,
    gain_lines,
    guesses,
    guesses_beyond,
)
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.rules import read_rules
from pairun.report.problems import print_problems
from pairun.secrets.vault import Vault

_DEADLINE_S = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument("--labels", action="append", default=[], type=pathlib.Path, metavar="FILE",
                        help="labelled logs with their texts: JSON lines, or CSV beside a folder of logs")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root with further rules")  # fmt: skip
    parser.add_argument("--keep", action="store_true",
                        help="store labels, features and answers, without texts, in the project")  # fmt: skip
    args = parser.parse_args(argv)
    if not args.labels:
        return _print_stored()
    logs = [each for file in args.labels for each in labelled_logs(file)]
    labels = [each.label for each in logs]
    problems = Problems()
    table = read_rules(open_content(args.root, os.environ), problems).table()
    print_problems(problems, Vault())
    answers = {each.label.id: answer_of(each, table) for each in logs}
    features = [features_of(decisive_lines(each.logs)) for each in logs]
    if args.keep:
        stored.write_labels(labels)
        stored.write_features(features)
        stored.write_answers(answers)
    known = examples_of(stored.read_labels(), stored.read_features())
    guessed = guesses_beyond(known, examples_of(labels, features))
    _print(score_lines(labels, answers))
    _print(("", *accuracy_lines(labels, guessed), "", *gain_lines(labels, answers, guessed)))
    return 0


def _print_stored() -> int:
    """Repeat the cross-validation and the training with what the project keeps."""
    labels = stored.read_labels()
    examples = examples_of(labels, stored.read_features())
    guessed = guesses(examples)
    now, unseen = stored.read_answers(stored.NOW), stored.read_answers(stored.UNSEEN)
    _print(score_lines(labels, now))
    _print(("", *accuracy_lines(labels, guessed)))
    _print(("", "rules as they are:", *gain_lines(labels, now, guessed)))
    head = "rules as they were before anyone had read these logs:"
    _print(("", head, *gain_lines(labels, unseen, guessed)))
    weights = final(examples)
    print(f"\nthe weights: {len(weights)} bytes, SHA-256 {hashlib.sha256(weights).hexdigest()}")
    return 0


def answer_of(each: LabelledLog, table: Table) -> Answer:
    """What the rules say of a log."""
    facts = Circumstances(exit_code=each.label.exit_code)
    said = diagnose(each.logs, table, facts, _DEADLINE_S)
    return Answer(said.klass, said.confidence, said.source, said.retry or "")


def examples_of(labels: Sequence[Label], features: Sequence[tuple[int, ...]]) -> list[Example]:
    """The examples to train with."""
    pairs = zip(labels, features, strict=True)
    return [Example(each, label.klass, label.group) for label, each in pairs]


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
