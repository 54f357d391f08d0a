"""Trains the classifier: the same logs in the same order give the same bytes."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.diagnosis.classifier import IDF_UNITS, SCHEMA
from benchmarks.diagnosis.features import BITS

TEMPERATURES = (5, 10, 15, 20, 25, 30, 35, 40)
_DEFAULT_TEMPERATURE = 30
_LEVELS = 255


class Example(NamedTuple):
    """A log to train with.

    Attributes:
        features: its hashed features.
        klass: its class.
        group: its repository.
    """

    features: tuple[int, ...]
    klass: str
    group: str


def trained(examples: Sequence[Example], temperature: int = _DEFAULT_TEMPERATURE) -> bytes:
    """The data of a classifier.

    Args:
        examples: the logs.
        temperature: see `best_temperature`.
    """
    rareness = _rareness(examples)
    sums: dict[str, defaultdict[int, float]] = {}
    for each in examples:
        values = [(f, rareness[f]) for f in each.features if f in rareness]
        length = math.sqrt(sum(v * v for _, v in values)) or 1.0
        centroid = sums.setdefault(each.klass, defaultdict(float))
        for feature, value in values:
            centroid[feature] += value / length
    classes = sorted(sums)
    squares: list[int] = []
    entries: defaultdict[int, bytearray] = defaultdict(bytearray)
    for number, klass in enumerate(classes):
        most = max(sums[klass].values(), default=1.0)
        weights = {f: round(_LEVELS * v / most) for f, v in sums[klass].items()}
        squares.append(sum(w * w for w in weights.values()))
        for feature, weight in weights.items():
            if weight:
                entries[feature] += bytes((number, weight))
    header = {
        "schema": SCHEMA,
        "bits": BITS,
        "temperature": temperature,
        "classes": classes,
        "squares": squares,
    }
    features = range(1 << BITS)
    return b"".join(
        (
            json.dumps(header).encode() + b"\n",
            bytes(rareness.get(f, 0) for f in features),
            bytes(len(entries.get(f, b"")) // 2 for f in features),
            *(bytes(entries[f]) for f in features if f in entries),
        )
    )


def best_temperature(cosines: Sequence[Mapping[str, float]], classes: Sequence[str]) -> int:
    """The temperature that makes the true classes likeliest.

    Args:
        cosines: of logs that the classifier was not trained with.
        classes: the true class of each.
    """

    def likelihood(temperature: int) -> float:
        total = 0.0
        for scores, klass in zip(cosines, classes, strict=True):
            powers = {k: math.exp(temperature * cosine) for k, cosine in scores.items()}
            total += math.log(max(powers.get(klass, 0.0) / sum(powers.values()), 1e-9))
        return total

    return max(TEMPERATURES, key=likelihood)


def _rareness(examples: Sequence[Example]) -> dict[int, int]:
    """How rare each feature is that several logs have, 1 to 255."""
    seen = Counter(feature for each in examples for feature in each.features)
    rare = {f: math.log((len(examples) + 1) / (n + 1)) + 0.1 for f, n in seen.items() if n > 1}
    return {f: min(max(round(IDF_UNITS * value), 1), 255) for f, value in rare.items()}
