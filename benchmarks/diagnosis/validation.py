"""What similar messages change where rules know nothing specific: mended and broken answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.diagnosis.labelled import Label, LabelledLog
from benchmarks.diagnosis.messages import Message
from benchmarks.diagnosis.training import Example, trained
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.classifier import Classifier
from pairun.diagnose.findings import findings_in
from pairun.diagnose.lines import Log
from pairun.diagnose.opinion import second_opinion, situation
from pairun.diagnose.searchlimit import SearchLimit
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import UNSURE, diagnose
from pairun.diagnose.wording import features_of

DEADLINE_S = 60.0
"""The limit for one log, in seconds."""

_SLICES = {NONE: "no failure is found", UNKNOWN: "the cause is unknown"}
_EXCEPTION = "an exception of any kind"


class Case(NamedTuple):
    """A log of which similar messages are asked.

    Attributes:
        label: what a person says of it.
        by_rules: the class by rules alone.
        guessed: the class with similar messages; the same if they abstain.
    """

    label: Label
    by_rules: str
    guessed: str

    @property
    def kind(self) -> str:
        """What rules find."""
        return _SLICES.get(self.by_rules, _EXCEPTION)


class Change(NamedTuple):
    """What similar messages change.

    Attributes:
        asked: number of logs.
        answered: how many of them got another class.
        mended: wrong ones that became right or acceptable.
        broken: right or acceptable ones that became wrong.
        strictly: how many more are right without acceptable alternatives.
        alarms: healthy logs that got a failure.
    """

    asked: int
    answered: int
    mended: int
    broken: int
    strictly: int
    alarms: int


def classifier_of(messages: Iterable[Message]) -> bytes:
    """The weights of a classifier that some messages train."""
    return trained([Example(features_of(each.text), each.klass) for each in messages])


def cases(logs: Iterable[LabelledLog], table: Table, classifier: Classifier) -> Iterator[Case]:
    """The logs of which similar messages are asked.

    Args:
        logs: with labels.
        table: the rules.
        classifier: knows messages.
    """
    for label, texts in logs:
        facts = Circumstances(exit_code=label.exit_code)
        by_rules = diagnose(texts, table, facts, DEADLINE_S, guesses=False)
        if by_rules.confidence >= UNSURE or situation(by_rules, facts) is None:
            continue
        limit = SearchLimit.after(DEADLINE_S, time.monotonic)
        failed = facts.exit_code not in (None, 0)
        findings = [findings_in(each, table, limit, failed=failed) for each in texts]
        guess = second_opinion(by_rules, findings, table, facts, classifier)
        yield Case(label, by_rules.klass, guess.klass)


def by_writers(
    written: Sequence[Message], of_rules: Sequence[Message], table: Table
) -> Iterator[Case]:
    """The written messages as logs; no writer's messages train the classifier that judges them.

    Args:
        written: the messages.
        of_rules: what the rules say; always trains.
        table: the rules.
    """
    for writer in sorted({each.writer for each in written}):
        others = [each for each in written if each.writer != writer]
        classifier = Classifier(classifier_of([*others, *of_rules]))
        logs = [_as_log(n, m) for n, m in enumerate(written) if m.writer == writer]
        yield from cases(logs, table, classifier)


def _as_log(number: int, message: Message) -> LabelledLog:
    label = Label(str(number), message.klass, message.also, group=message.writer)
    return LabelledLog(label, (Log(message.text.encode()),))


def change(of_slice: Sequence[Case]) -> Change:
    """What similar messages change in some cases."""
    answered = [each for each in of_slice if each.guessed != each.by_rules]
    right = [(c.label.accepts(c.by_rules), c.label.accepts(c.guessed)) for c in answered]
    return Change(
        asked=len(of_slice),
        answered=len(answered),
        mended=right.count((False, True)),
        broken=right.count((True, False)),
        strictly=sum(
            (c.guessed == c.label.klass) - (c.by_rules == c.label.klass) for c in answered
        ),
        alarms=sum(c.label.klass == NONE and not c.label.accepts(c.guessed) for c in answered),
    )


def change_lines(asked: Sequence[Case]) -> Iterator[str]:
    """What similar messages change, as a table."""
    yield f"{'rules say':28}" + "".join(f"{name:>10}" for name in Change._fields)
    for name in (*_SLICES.values(), _EXCEPTION, "all"):
        row = change([each for each in asked if name in (each.kind, "all")])
        yield f"{name:28}" + "".join(f"{number:10}" for number in row)
