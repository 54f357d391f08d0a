"""Scores the diagnosis on labelled logs; without arguments, prints the scores that the project keeps."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence

from benchmarks.diagnosis import stored
from benchmarks.diagnosis.labelled import LabelledLog, labelled_logs
from benchmarks.diagnosis.scoring import score_lines
from benchmarks.diagnosis.stored import Answer
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.rules import read_rules
from pairun.report.problems import print_problems
from pairun.secrets.vault import Vault

_DEADLINE_S = 60.0
"""The limit for one log, in seconds."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument("--labels", action="append", default=[], type=pathlib.Path, metavar="FILE",
                        help="labelled logs with their texts: JSON lines, or CSV beside a folder of logs")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root with further rules")  # fmt: skip
    parser.add_argument("--keep", action="store_true",
                        help="store labels and answers, without texts, in the project")  # fmt: skip
    args = parser.parse_args(argv)
    if not args.labels:
        print(*score_lines(stored.read_labels(), stored.read_answers(stored.NOW)), sep="\n")
        return 0
    problems = Problems()
    table = read_rules(open_content(args.root, os.environ), problems).table()
    print_problems(problems, Vault())
    logs = [each for file in args.labels for each in labelled_logs(file)]
    labels = [each.label for each in logs]
    answers = {each.label.id: answer_of(each, table) for each in logs}
    if args.keep:
        stored.write_labels(labels)
        stored.write_answers(answers)
    print(*score_lines(labels, answers), sep="\n")
    return 0


def answer_of(each: LabelledLog, table: Table) -> Answer:
    """What the diagnosis says of a log."""
    facts = Circumstances(exit_code=each.label.exit_code)
    said = diagnose(each.logs, table, facts, _DEADLINE_S)
    return Answer(said.klass, said.confidence, said.source, said.retry or "")


if __name__ == "__main__":
    sys.exit(main())
