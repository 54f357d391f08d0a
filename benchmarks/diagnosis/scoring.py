"""Scores of the rules on labelled logs: accuracy, calibration, false alarms, wrong advice, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.diagnosis.labelled import Label
from benchmarks.diagnosis.stored import Answer
from pairun.diagnose.classes import NONE

_LIMITS = (0.75, 0.85, 0.95, 1.01)
_FEW = 8
_CONFUSIONS = 15
_STOPS = ("after_fix", "never")
_GOES_ON = ("retry", "retry_elsewhere")


def score_lines(labels: Sequence[Label], answers: Mapping[str, Answer]) -> Iterator[str]:
    """The tables, as lines of text.

    Args:
        labels: the labels.
        answers: what the rules say, by the label's id.
    """
    yield f"{'logs':28}{'count':>6}{'strict':>8}{'with alternatives':>19}"
    groups: dict[str, list[Label]] = {}
    for label in labels:
        names = ["all", f"kind {label.kind}", "healthy" if label.klass == NONE else "failed"]
        names += [f"set {label.text_set}"] if label.text_set else []
        for name in (*names, *([f"framework {label.framework}"] if label.framework else [])):
            groups.setdefault(name, []).append(label)
    for name in sorted(groups, key=lambda n: (n.startswith("framework"), n)):
        of_group = groups[name]
        if name.startswith("framework") and len(of_group) < _FEW:
            continue
        strict = sum(answers[each.id].klass == each.klass for each in of_group)
        right = sum(each.accepts(answers[each.id].klass) for each in of_group)
        n = len(of_group)
        yield f"{name:28}{n:6}{strict / n:8.1%}{right / n:19.1%}"
    yield ""
    yield from _calibration(labels, answers)
    yield ""
    healthy = [each for each in labels if each.klass == NONE]
    alarms = sum(not each.accepts(answers[each.id].klass) for each in healthy)
    yield f"false alarms: {alarms} of {len(healthy)} healthy logs"
    retryable = [each for each in labels if each.retry in _GOES_ON]
    stops = sum(answers[each.id].retry in _STOPS for each in retryable)
    yield f"wrong 'do not retry': {stops} of {len(retryable)} failures that a retry may mend"
    yield ""
    yield from _confusion(labels, answers)


def _calibration(labels: Sequence[Label], answers: Mapping[str, Answer]) -> Iterator[str]:
    yield f"{'confidence':28}{'count':>6}{'right':>8}"
    low = 0.0
    for high in _LIMITS:
        within = [each for each in labels if low <= answers[each.id].confidence < high]
        right = sum(each.accepts(answers[each.id].klass) for each in within)
        name = f"from {low:.2f}" if high > 1 else f"below {high:.2f}"
        yield f"{name:28}{len(within):6}{right / max(1, len(within)):8.1%}"
        low = high


def _confusion(labels: Sequence[Label], answers: Mapping[str, Answer]) -> Iterator[str]:
    pairs = Counter(
        (each.klass, answers[each.id].klass)
        for each in labels
        if not each.accepts(answers[each.id].klass)
    )
    for (klass, answered), count in pairs.most_common(_CONFUSIONS):
        yield f"{klass} was taken for {answered}: {count}"
