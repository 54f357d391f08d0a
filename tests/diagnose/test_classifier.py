"""The classifier of messages: its data, and what damages them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.diagnosis.training import Example, trained
from pairun.diagnose import classifier
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.classifier import Classifier, read_classifier
from pairun.diagnose.wording import features_of

DATA = trained(
    [
        Example(features_of(f"{text} {more}"), klass)
        for klass, text in (
            ("gpu_oom", "the card ran out of memory"),
            ("disk_full", "no space is left"),
        )
        for more in ("here", "now", "again")
    ]
)


def test_the_class_with_the_same_words_is_the_likeliest() -> None:
    """A text without known words tells nothing; then the prior decides."""
    known = Classifier(DATA)
    likely = known.probabilities(features_of("the memory of card 3"), {})
    assert likely["gpu_oom"] > 0.7
    assert sum(likely.values()) == pytest.approx(1)
    unknown = known.probabilities(features_of("xyzzy"), {})
    assert unknown["gpu_oom"] == pytest.approx(unknown["disk_full"], abs=0.1)
    assert known.probabilities((), {"disk_full": 3.0})["disk_full"] > 0.9


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[", DATA[:-1]])
def test_damaged_data_are_refused(data: bytes) -> None:
    """And those of another version."""
    with pytest.raises(ValueError, match=r"version|damaged|Expecting"):
        Classifier(data)


def test_without_weights_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in PID 1, which has no such file; a damaged file is no reason to fail either."""
    (tmp_path / "w").write_bytes(b"x")
    for name in ("none", "w"):
        monkeypatch.setattr(classifier, "WEIGHTS", str(tmp_path / name))
        assert read_classifier() is None


def test_the_weights_in_use() -> None:
    """They are small, and know pairun's classes alone."""
    assert (Path(classifier.__file__).parent / classifier.WEIGHTS).stat().st_size < 1_000_000
    known = read_classifier()
    assert known is not None
    likely = known.probabilities(features_of("we are out of GPU credits for this month"), {})
    assert likely.keys() <= CLASSES.keys()
    assert max(likely, key=lambda k: likely[k]) == "service_quota"
