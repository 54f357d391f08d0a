"""The table of the benchmarks: every number has its unit."""

from __future__ import annotations

import pytest

from benchmarks.measure import HEAD, Row, amount, cells, fixed, in_turns, line, samples


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(12.345, "ms", "12.35 ms"), (1234.5, "ms", "1234 ms"), (11.0, "MB", "11.00 MB"), (200, "count", "200")],
)  # fmt: skip
def test_a_number_has_its_unit(value: float, unit: str, text: str) -> None:
    """Memory and sizes are no times."""
    assert amount(value, unit) == text  # type: ignore[arg-type]


def test_a_row_shows_least_median_and_what_it_is_compared_with() -> None:
    """A goal is held against the smallest sample."""
    row = Row(
        "a start", "ms", samples([9.0, 5.0, 7.0]), 6.0, "a peer", samples([2.5, 3.0]), "twice"
    )
    shown = dict(zip(HEAD, cells(row), strict=True))
    assert (shown["least"], shown["median"], shown[""]) == ("5.00 ms", "7.00 ms", "ok")
    assert (shown["ratio"], shown["of"]) == ("2.00", "a peer (2.50 ms); twice")
    assert line(cells(row)).startswith("a start")


def test_a_size_has_no_median() -> None:
    """What is the same in every run is shown once."""
    row = Row("a size", "MB", fixed(3.0), 2.0, "another", fixed(6.0))
    assert cells(row)[2] == ""
    assert row.is_over


def test_measures_are_taken_in_turns() -> None:
    order = ""

    def taken(name: str) -> float:
        nonlocal order
        order += name
        return float(len(order))

    first, second = in_turns(3, lambda: taken("a"), lambda: taken("b"))
    assert order == "ababab"
    assert (first, second) == (samples([1, 3, 5]), samples([2, 4, 6]))
