"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from pairun.base.pattern import Pattern


def test_a_pattern_is_compiled_at_its_first_use_and_once() -> None:
    """Until then even an invalid one costs nothing."""
    pattern = Pattern("A.", re.IGNORECASE)
    assert pattern.compiled.fullmatch("ab")
    assert pattern.compiled is pattern.compiled
    invalid = Pattern("(")
    with pytest.raises(re.error):
        invalid.compiled.search("")
