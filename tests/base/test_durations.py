"""Durations: texts with units as seconds."""

from __future__ import annotations

import pytest

from pairun.base.durations import format_duration, parse_duration, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("1h30m", 5400.0), ("2d", 172800.0), ("10", None), ("1h ", None), ("", None)],
)
def test_units_are_needed(text: str, seconds: float | None) -> None:
    """A duration is numbers with units, and nothing between them."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["9" * 5000 + "s", "999999999999999h", "9" * 5000])
def test_the_longest_is_a_hundred_years(text: str) -> None:
    """A longer one counts as that, which every timer holds."""
    assert parse_seconds(text) == 100 * 365 * 86400
    assert format_duration(parse_seconds(text) or 0) == "36500d"
