"""Trains the classifier: the same messages in the same order give the same bytes."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classifier import RARENESS_UNITS, SCHEMA, WEIGHT_UNITS
from pairun.diagnose.wording import BITS

_SMOOTHING = 0.05
_LEAST_RARENESS = 0.3


class Example(NamedTuple):
    """A message to train with.

    Attributes:
        features: its hashed words.
        klass: its class.
    """

    features: tuple[int, ...]
    klass: str


def trained(examples: Sequence[Example]) -> bytes:
    """The data of a classifier; see `pairun.diagnose.classifier.Classifier`.

    Args:
        examples: the messages.
    """
    rareness = _rareness(examples)
    sums: dict[str, defaultdict[int, float]] = {}
    for each in examples:
        length = math.sqrt(sum(rareness[f] ** 2 for f in each.features)) or 1.0
        of_class = sums.setdefault(each.klass, defaultdict(float))
        for feature in each.features:
            of_class[feature] += rareness[feature] / length
    classes = sorted(sums)
    bases = []
    entries: defaultdict[int, bytearray] = defaultdict(bytearray)
    for number, klass in enumerate(classes):
        bases.append(math.log(_SMOOTHING / (sum(sums[klass].values()) + _SMOOTHING * (1 << BITS))))
        for feature, total in sums[klass].items():
            weight = min(round(WEIGHT_UNITS * math.log(total / _SMOOTHING + 1)), 255)
            if weight:
                entries[feature] += bytes((number, weight))
    header = {
        "schema": SCHEMA,
        "bits": BITS,
        "classes": classes,
        "bases": [round(base, 4) for base in bases],
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


def _rareness(examples: Sequence[Example]) -> dict[int, int]:
    """How rare each feature is, 1 to 255."""
    seen = Counter(feature for each in examples for feature in each.features)
    return {
        f: _in_units(math.log((len(examples) + 1) / (seen[f] + 1)) + _LEAST_RARENESS)
        for f in range(1 << BITS)
    }


def _in_units(rareness: float) -> int:
    return min(max(round(RARENESS_UNITS * rareness), 1), 255)
