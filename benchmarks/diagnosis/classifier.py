"""A linear classifier of endings: one centroid for each class, compared by cosine (Rocchio).

On a few hundred logs it is right more often than multinomial logistic regression and naive Bayes on the same
features, and its training has a closed form. A temperature turns cosines into probabilities (Guo et al.,
ICML'17). `benchmarks/diagnosis` trains it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

SCHEMA = 1
IDF_UNITS = 40
"""How many units the rareness of a feature has for each natural logarithm."""


class Guess(NamedTuple):
    """A class and its probability."""

    klass: str
    probability: float


class Classifier:
    """A trained classifier.

    Args:
        data: a line of JSON (``schema``, ``bits``, ``classes``, ``squares``: the squared length of each
            centroid, ``temperature``); then, a byte for each feature, its rareness and how many classes have it;
            then, for each feature and class, the number of the class and its weight, a byte each.

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
        self._lengths = [math.sqrt(square) or 1.0 for square in header["squares"]]
        self._temperature: float = header["temperature"]
        self._rareness, counts = body[:features], body[features : 2 * features]
        self._entries = body[2 * features :]
        self._starts = list(accumulate(counts, initial=0))
        if len(self._entries) != 2 * self._starts[-1]:
            raise ValueError("the classifier is damaged")

    def cosines(self, features: Iterable[int]) -> dict[str, float]:
        """How near an ending is to each class, 0 to 1.

        Args:
            features: of the ending; see `benchmarks.diagnosis.features.features_of`.
        """
        sums = [0] * len(self._classes)
        square = 0
        for feature in features:
            rare = self._rareness[feature]
            square += rare * rare
            for at in range(2 * self._starts[feature], 2 * self._starts[feature + 1], 2):
                sums[self._entries[at]] += rare * self._entries[at + 1]
        length = math.sqrt(square) or 1.0
        pairs = zip(self._classes, sums, self._lengths, strict=True)
        return {klass: each / (length * norm) for klass, each, norm in pairs}

    def guess(self, features: Iterable[int]) -> Guess:
        """The likeliest class, with its probability."""
        return likeliest(self.cosines(features), self._temperature)


def likeliest(cosines: Mapping[str, float], temperature: float) -> Guess:
    """The likeliest class, with its probability."""
    powers = {k: math.exp(temperature * cosine) for k, cosine in cosines.items()}
    best = max(powers, key=lambda k: powers[k])
    return Guess(best, powers[best] / sum(powers.values()))
