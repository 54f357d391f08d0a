"""Words that are almost another word."""

from __future__ import annotations

from difflib import get_close_matches

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.closeness import closest

WORDS = st.text("abcés", max_size=8)


@given(WORDS, st.lists(WORDS, max_size=5), st.sampled_from([0.0, 0.5, 0.65, 0.75, 0.85, 1.0]))
def test_the_word_is_that_of_difflib(word: str, known: list[str], cutoff: float) -> None:
    """The filter removes no word that difflib would choose."""
    assert closest(word, known, cutoff) == next(
        iter(get_close_matches(word, known, n=1, cutoff=cutoff)), None
    )


@pytest.mark.parametrize(("word", "near"), [("pasword", "password"), ("timeout", None), ("", None)])
def test_a_misspelt_word_is_close(word: str, near: str | None) -> None:
    """A letter may be missing."""
    assert closest(word, ("password", "token"), 0.85) == near
