"""The classifier: its data, and what damages them."""

from __future__ import annotations

import pytest

from benchmarks.diagnosis.classifier import Classifier
from benchmarks.diagnosis.features import features_of
from benchmarks.diagnosis.training import Example, trained

EXAMPLES = [
    Example(features_of([f"{text} {n}"]), klass, f"{klass}/{n}")
    for klass, text in (("gpu_oom", "CUDA ran out of memory"), ("disk_full", "no space is left"))
    for n in range(3)
]


def test_the_nearest_class_is_the_likeliest() -> None:
    """Cosines lie between 0 and 1; a text without known words is near to none."""
    classifier = Classifier(trained(EXAMPLES))
    guess = classifier.guess(features_of(["the CUDA memory"]))
    assert guess.klass == "gpu_oom"
    assert guess.probability > 0.5
    cosines = classifier.cosines(EXAMPLES[0].features)
    assert cosines["gpu_oom"] == pytest.approx(1, abs=0.01)
    assert cosines["disk_full"] < 0.5
    assert set(classifier.cosines(features_of(["xyzzy"])).values()) == {0}


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[", trained(EXAMPLES)[:-1]])
def test_damaged_data_are_refused(data: bytes) -> None:
    """And those of another version."""
    with pytest.raises(ValueError, match=r"version|damaged|Expecting"):
        Classifier(data)
