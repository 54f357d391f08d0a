"""What the project keeps of labelled logs: labels, sources and the rules' answers; no texts."""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmarks.diagnosis.labelled import Label

DATA = pathlib.Path(__file__).parent / "data"
_LABELS = "labels.csv"

NOW = "answers.csv"
"""The answers of the rules as they are; whoever wrote them has read most of these logs."""

UNSEEN = "answers-unseen.csv"
"""The answers of the rules as they were before anyone had read the logs of the set ``work``."""


class Answer(NamedTuple):
    """What rules say of a log.

    Attributes:
        klass: the class.
        confidence: 0 to 1.
        fact: the source of the structured fact that decided; empty if none did.
        retry: the advice on retries; empty if there is none.
    """

    klass: str
    confidence: float
    fact: str
    retry: str


def write_labels(labels: Iterable[Label], folder: pathlib.Path = DATA) -> None:
    """Write the labels and their sources."""
    with open(folder / _LABELS, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(Label._fields)
        for label in labels:
            code = "" if label.exit_code is None else str(label.exit_code)
            row = {**label._asdict(), "also": " ".join(label.also), "exit_code": code}
            out.writerow(row.values())


def read_labels(folder: pathlib.Path = DATA) -> list[Label]:
    """The labels that are kept."""
    with open(folder / _LABELS, newline="", encoding="utf-8") as f:
        return [_label(row) for row in csv.DictReader(f)]


def _label(row: Mapping[str, str]) -> Label:
    return Label(
        id=row["id"],
        klass=row["klass"],
        also=tuple(row["also"].split()),
        retry=row["retry"],
        framework=row["framework"],
        kind=row["kind"],
        exit_code=int(row["exit_code"]) if row["exit_code"] else None,
        source=row["source"],
        group=row["group"],
        text_set=row["text_set"],
    )


def write_answers(answers: Mapping[str, Answer], folder: pathlib.Path = DATA) -> None:
    """Write what rules say of each log."""
    with open(folder / NOW, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(("id", *Answer._fields))
        out.writerows((name, *answer) for name, answer in answers.items())


def read_answers(name: str, folder: pathlib.Path = DATA) -> dict[str, Answer]:
    """What rules said of each log.

    Args:
        name: `NOW` or `UNSEEN`.
        folder: where the data are.
    """
    with open(folder / name, newline="", encoding="utf-8") as f:
        return {
            row["id"]: Answer(row["klass"], float(row["confidence"]), row["fact"], row["retry"])
            for row in csv.DictReader(f)
        }
