"""Texts that an expression describes."""

from __future__ import annotations

import re

import pytest

from benchmarks.diagnosis.expansions import expansions


def test_each_alternative_occurs() -> None:
    """Also within groups; what is optional occurs and is left out."""
    texts = expansions(r"(?:disk|volume) is (?P<how>full|used up)(?: now)?")
    assert len(texts) == 8
    assert "volume is used up now" in texts
    assert "disk is full" in texts


@pytest.mark.parametrize(
    "pattern",
    [
        r"^E\d+ [a-c]x\S+ (?i:failed)$",
        r"a{2,3}b+c*[^d]e.f",
        r"\bport \d+ (?=is)is [\w.]+ (?!not)taken",
        "(?>a|b)c",
    ],
)
def test_texts_match_what_has_no_conditions(pattern: str) -> None:
    """The same expression gives the same texts; they match unless it looks around."""
    texts = expansions(pattern)
    assert texts == expansions(pattern)
    assert any(re.search(pattern, each) for each in texts)
