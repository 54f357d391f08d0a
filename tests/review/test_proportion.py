"""The review of a job takes work in proportion to the job, whatever the job repeats."""

from __future__ import annotations

import functools
import os

import pytest

from benchmarks.proportion import DIMENSIONS, EXPONENT, review, text_of
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.secrets import shapes
from tests.calls import calls_of


@pytest.fixture(scope="module")
def layers() -> Layers:
    """The built-in content, with what its first review loads."""
    layers = Layers(open_content([], os.environ))
    for make in DIMENSIONS.values():
        review(text_of(make(2)), layers)
    return layers


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
    texts = [text_of(make(n)) for n in (40, 80, 160)]
    some, more, most = (calls_of(functools.partial(review, text, layers)) for text in texts)
    # Of two differences, what every review costs is no part.
    assert most - more <= 2**EXPONENT * (more - some)
