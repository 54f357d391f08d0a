"""Asks the classifier for a second opinion where rules know no cause."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.surroundings import TROUBLE
from pairun.opinion.classifier import Classifier, Guess
from pairun.opinion.features import decisive_lines, features_of

WEIGHTS = os.path.join(os.path.dirname(__file__), "weights.bin")
LEAST = 0.3
"""The least probability at which the classifier answers; below, it abstains."""

MOST = 0.55
"""The largest confidence of an opinion: too little to advise against a retry, or to explain a log."""

_RETRIES = ("retry", "retry_elsewhere")


def opinion_on(logs: Sequence[Log]) -> Guess | None:
    """The class of similar logs, or None if no class is likely enough.

    Args:
        logs: the logs, whose cause no rule knows.
    """
    try:
        with open(WEIGHTS, "rb") as f:
            classifier = Classifier(f.read())
    except (OSError, ValueError):
        return None  # an opinion is a convenience; the rules' answer stands
    guess = classifier.guess(features_of(decisive_lines(logs)))
    is_answer = guess.probability >= LEAST and guess.klass not in (NONE, UNKNOWN)
    return guess if is_answer else None


def with_opinion(diagnosis: Diagnosis, guess: Guess | None) -> Diagnosis:
    """A diagnosis, with the class of similar logs if rules know no cause.

    An opinion never speaks against rules or facts, and never advises against a retry.

    Args:
        diagnosis: what the rules say.
        guess: the opinion; see `opinion_on`.
    """
    if guess is None or diagnosis.klass != UNKNOWN or not diagnosis.evidence:
        return diagnosis
    kind = CLASSES[guess.klass]
    trouble = [each for each in diagnosis.evidence if TROUBLE.search(each.text)]
    first = (trouble or diagnosis.evidence)[-1]
    return diagnosis._replace(
        klass=guess.klass,
        fault=kind.fault,
        retry=diagnosis.retry or (kind.retry if kind.retry in _RETRIES else None),
        confidence=round(min(guess.probability, MOST), 2),
        headline=f"no rule matches; similar logs: {kind.meaning}",
        advice=kind.advice,
        evidence=(first, *(each for each in diagnosis.evidence if each is not first)),
        details={**diagnosis.details, "opinion": "similar logs"},
    )
