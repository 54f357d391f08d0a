"""A linear classifier of messages: multinomial naive Bayes on hashed words, each weighted by its rareness.

All classes are equally likely beforehand (Rennie et al., ICML'03, describe such weights). The
script `benchmarks/diagnosis` trains it; the weights are a file of this package.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from itertools import accumulate

SCHEMA = 2
RARENESS_UNITS, WEIGHT_UNITS = 25, 36
"""How many units of a byte one natural logarithm has."""

WEIGHTS = "messages.weights"
"""The file of the weights, beside this module."""

TEMPERATURE = 1.5
"""By how much the scores are scaled, so that they are honest probabilities (Guo et al., ICML'17)."""


class Classifier:
    """A trained classifier.

    Args:
        data: a line of JSON (``schema``, ``bits``, ``classes``, ``bases``: the score of an unknown
            feature); then, a byte for each feature, its rareness and how many classes have it; then, for
            each feature and class, the number of the class and its weight, a byte each.

    Raises:
        ValueError: the data are of another version, or damaged.
    """

    def __init__(self, data: bytes) -> None:
        head, _, body = data.partition(b"\n")
        header = json.loads(head)
        if header.get("schema") != SCHEMA:
            raise ValueError("not a classifier of this version")
        features = 1 << header["bits"]
        self._classes: list[str] = header["classes"]
        self._bases: list[float] = header["bases"]
        self._rareness, counts = body[:features], body[features : 2 * features]
        self._entries = body[2 * features :]
        self._starts = list(accumulate(counts, initial=0))
        if len(self._entries) != 2 * self._starts[-1]:
            raise ValueError("the classifier is damaged")

    def probabilities(
        self, features: Iterable[int], priors: Mapping[str, float]
    ) -> dict[str, float]:
        """How likely each class is.

        Args:
            features: of the message; see `pairun.diagnose.wording.features_of`.
            priors: by how much a class is likelier than others beforehand, as a natural logarithm.
        """
        sums = [0] * len(self._classes)
        total = square = 0
        for feature in features:
            rare = self._rareness[feature]
            total += rare
            square += rare * rare
            for at in range(2 * self._starts[feature], 2 * self._starts[feature + 1], 2):
                sums[self._entries[at]] += rare * self._entries[at + 1]
        length = math.sqrt(square) or 1.0
        scores = {
            klass: TEMPERATURE * (base * total + each / WEIGHT_UNITS) / length
            + priors.get(klass, 0.0)
            for klass, base, each in zip(self._classes, self._bases, sums, strict=True)
        }
        most = max(scores.values())
        powers = {klass: math.exp(score - most) for klass, score in scores.items()}
        whole = sum(powers.values())
        return {klass: power / whole for klass, power in powers.items()}


def read_classifier() -> Classifier | None:
    """The classifier with the weights of this package; None if a program has no such file, as PID 1."""
    try:
        with open(os.path.join(os.path.dirname(__file__), WEIGHTS), "rb") as f:
            return Classifier(f.read())
    except (OSError, ValueError):
        return None
