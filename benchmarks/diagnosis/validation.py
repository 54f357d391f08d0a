"""Whether the classifier would help the rules: cross-validation by repository, where rules are unsure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.diagnosis.classifier import Classifier, Guess, likeliest
from benchmarks.diagnosis.labelled import Label
from benchmarks.diagnosis.stored import Answer
from benchmarks.diagnosis.training import Example, best_temperature, trained
from pairun.diagnose.classes import NONE, UNKNOWN

FOLDS = 10
UNSURE = 0.75
"""Below which confidence the classifier would be asked."""

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Below which probability it would abstain."""


class Gain(NamedTuple):
    """What a classifier would change.

    Attributes:
        changed: how many answers.
        mended: wrong ones that became right.
        broken: right ones that became wrong.
    """

    changed: int
    mended: int
    broken: int


def fold_of(group: str) -> int:
    """The fold of a repository, by its hash; a repository is never in two folds."""
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS


def guesses(examples: Sequence[Example]) -> list[Guess]:
    """For each example, what a classifier says that no log of its repository trained or calibrated."""
    folds = [fold_of(each.group) for each in examples]
    cosines = _cosines(examples, folds)
    guessed: list[Guess] = [Guess(NONE, 0.0)] * len(examples)
    for fold in range(FOLDS):
        temperature = _temperature(
            [(c, e) for c, e, f in zip(cosines, examples, folds, strict=True) if f != fold]
        )
        for n, each in enumerate(cosines):
            if folds[n] == fold:
                guessed[n] = likeliest(each, temperature)
    return guessed


def final(examples: Sequence[Example]) -> bytes:
    """The data of the classifier that is trained and calibrated with all examples."""
    cosines = _cosines(examples, [fold_of(each.group) for each in examples])
    temperature = _temperature(list(zip(cosines, examples, strict=True)))
    return trained(examples, temperature)


def _cosines(examples: Sequence[Example], folds: Sequence[int]) -> list[dict[str, float]]:
    """For each example, the cosines of a classifier that is trained with the other folds."""
    cosines: list[dict[str, float]] = [{} for _ in examples]
    for fold in sorted(set(folds)):
        others = [e for e, f in zip(examples, folds, strict=True) if f != fold]
        classifier = Classifier(trained(others))
        for n, each in enumerate(examples):
            if folds[n] == fold:
                cosines[n] = classifier.cosines(each.features)
    return cosines


def _temperature(pairs: Sequence[tuple[Mapping[str, float], Example]]) -> int:
    return best_temperature([c for c, _ in pairs], [e.klass for _, e in pairs])


def guesses_beyond(known: Sequence[Example], examples: Sequence[Example]) -> list[Guess]:
    """For each example, what a classifier says that was trained with other repositories' logs.

    Args:
        known: the logs to train with; those of the examples' repositories are left out.
        examples: the logs to guess.
    """
    groups = {each.group for each in examples}
    others = [each for each in known if each.group not in groups]
    if 2 * len(others) < len(known):
        return guesses(examples)
    classifier = Classifier(final(others))
    return [classifier.guess(each.features) for each in examples]


def gain(cases: Sequence[tuple[Label, Answer, Guess]], threshold: float) -> Gain:
    """What the classifier would change.

    Args:
        cases: the logs for which it is asked.
        threshold: the least probability at which it answers.
    """
    changed = mended = broken = 0
    for label, answer, guess in cases:
        if guess.probability < threshold or guess.klass == answer.klass:
            continue
        changed += 1
        mended += label.accepts(guess.klass) and not label.accepts(answer.klass)
        broken += label.accepts(answer.klass) and not label.accepts(guess.klass)
    return Gain(changed, mended, broken)


def accuracy_lines(labels: Sequence[Label], guessed: Sequence[Guess]) -> Iterator[str]:
    """How often the classifier alone is right, and whether its probabilities are."""
    pairs = list(zip(labels, guessed, strict=True))
    alone = sum(label.accepts(guess.klass) for label, guess in pairs)
    yield f"the classifier alone: {alone} of {len(pairs)} right ({alone / len(pairs):.1%})"
    yield f"{'probability':16}{'count':>6}{'right':>8}"
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        within = [(lab, g) for lab, g in pairs if low <= g.probability < low + 0.2 + (low == 0.8)]
        right = sum(lab.accepts(g.klass) for lab, g in within)
        yield f"from {low:<11.1f}{len(within):6}{right / max(1, len(within)):8.1%}"


def gain_lines(
    labels: Sequence[Label], answers: Mapping[str, Answer], guessed: Sequence[Guess]
) -> Iterator[str]:
    """What the classifier would change where the rules are unsure."""
    cases = [
        (label, answers[label.id], guess)
        for label, guess in zip(labels, guessed, strict=True)
        if answers[label.id].confidence < UNSURE and not answers[label.id].fact
    ]
    rules = sum(label.accepts(answer.klass) for label, answer, _ in cases)
    own = sum(label.accepts(guess.klass) for label, _, guess in cases)
    head = f"rules are below {UNSURE} on {len(cases)} logs"
    yield f"{head}: rules alone {rules} right, classifier alone {own} right"
    for words, only in (("where rules are unsure", False), ("where rules know no cause", True)):
        asked = [c for c in cases if _is_asked(c[1], only_unknown=only)]
        yield f"asked {words}: {len(asked)} logs"
        yield f"{'threshold':>11}{'abstains':>10}{'changed':>9}{'mended':>8}{'broken':>8}{'right in all':>14}"
        for threshold in THRESHOLDS:
            changed, mended, broken = gain(asked, threshold)
            abstains = sum(guess.probability < threshold for _, _, guess in asked)
            after = rules + mended - broken
            yield f"{threshold:11}{abstains:10}{changed:9}{mended:8}{broken:8}{after:14}"


def _is_asked(answer: Answer, *, only_unknown: bool) -> bool:
    """Whether the classifier is asked; it never makes a failure of a log in which rules find none."""
    return answer.klass == UNKNOWN if only_unknown else answer.klass != NONE
