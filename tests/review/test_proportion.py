"""The review of a job takes work in proportion to the job, whatever the job repeats."""

from __future__ import annotations

import os
import sys
from types import FrameType

import pytest

from benchmarks.proportion import DIMENSIONS, EXPONENT, review, text_of
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.secrets import shapes


@pytest.fixture(scope="module")
def layers() -> Layers:
    """The built-in content, with what its first review loads."""
    layers = Layers(open_content([], os.environ))
    for make in DIMENSIONS.values():
        review(text_of(make(2)), layers)
    return layers


def _calls(text: bytes, layers: Layers) -> int:
    """How many functions a review calls, those of C included."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        review(text, layers)
    finally:
        sys.setprofile(before)
    return calls


def test_the_text_of_a_job_is_split_once(layers: Layers, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[int] = []

    def counted(text: str) -> list[str]:
        texts.append(len(text))
        return yaml_lines(text)

    yaml_lines = shapes.yaml_lines
    monkeypatch.setattr(shapes, "yaml_lines", counted)
    for name in ("commands", "roles"):
        texts.clear()
        text = text_of(DIMENSIONS[name](50))
        review(text, layers)
        assert texts.count(len(text)) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_twice_as_many_take_twice_the_work(layers: Layers, dimension: str) -> None:
    make = DIMENSIONS[dimension]
    some, more, most = (_calls(text_of(make(n)), layers) for n in (40, 80, 160))
    # Of two differences, what every review costs is no part.
    assert most - more <= 2**EXPONENT * (more - some)
