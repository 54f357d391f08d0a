"""Scores the diagnosis on labelled logs, and measures what similar messages add to the rules.

Without arguments it uses what the project keeps: labels, the rules' last answers, and messages.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Iterable, Sequence

from benchmarks.diagnosis import stored
from benchmarks.diagnosis.labelled import LabelledLog, labelled_logs
from benchmarks.diagnosis.messages import messages_of_rules, written_messages
from benchmarks.diagnosis.scoring import score_lines
from benchmarks.diagnosis.stored import Answer
from benchmarks.diagnosis.validation import (
    DEADLINE_S,
    by_writers,
    cases,
    change_lines,
    classifier_of,
)
from pairun.diagnose import classifier
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.rules import Rules, read_rules
from pairun.report.problems import print_problems
from pairun.secrets.vault import Vault

_WEIGHTS = pathlib.Path(classifier.__file__).parent / classifier.WEIGHTS


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument("--labels", action="append", default=[], type=pathlib.Path, metavar="FILE",
                        help="labelled logs with their texts: JSON lines, or CSV beside a folder of logs")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root with further rules")  # fmt: skip
    parser.add_argument("--keep", action="store_true",
                        help="store labels and answers, without texts, in the project")  # fmt: skip
    parser.add_argument("--train", action="store_true",
                        help="write the weights of the classifier of messages, and end")  # fmt: skip
    args = parser.parse_args(argv)
    problems = Problems()
    rules = read_rules(open_content(args.root, os.environ), problems)
    print_problems(problems, Vault())
    if args.train:
        _WEIGHTS.write_bytes(classifier_of([*written_messages(), *messages_of_rules(rules)]))
        print(f"{_WEIGHTS}: {_WEIGHTS.stat().st_size} bytes")
        return 0
    if not args.labels:
        return _print_stored(rules)
    logs = [each for file in args.labels for each in labelled_logs(file)]
    labels = [each.label for each in logs]
    table = rules.table()
    answers = {each.label.id: answer_of(each, table) for each in logs}
    if args.keep:
        stored.write_labels(labels)
        stored.write_answers(answers)
    _print(score_lines(labels, answers))
    known = classifier.read_classifier()
    if known is not None:
        _print(("", *change_lines(list(cases(logs, table, known)))))
    return 0


def _print_stored(rules: Rules) -> int:
    """Print the stored scores, and what messages change that did not train the classifier."""
    _print(score_lines(stored.read_labels(), stored.read_answers(stored.NOW)))
    asked = by_writers(written_messages(), messages_of_rules(rules), rules.table())
    _print(("", "messages, by a classifier without their writer's:", *change_lines(list(asked))))
    return 0


def answer_of(each: LabelledLog, table: Table) -> Answer:
    """What the diagnosis says of a log."""
    facts = Circumstances(exit_code=each.label.exit_code)
    said = diagnose(each.logs, table, facts, DEADLINE_S)
    return Answer(said.klass, said.confidence, said.source, said.retry or "")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
