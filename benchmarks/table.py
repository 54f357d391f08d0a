"""The table of ``make bench`` as text: every number has its unit."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import Row, Unit

HEAD = ("what", "least", "median", "goal", "", "ratio", "of")


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells, in the order of `HEAD`."""
    compared = f"{row.peer} ({amount(row.peer_measured.least, row.unit)})"
    return (
        row.what,
        amount(row.measured.least, row.unit),
        amount(row.measured.median, row.unit) if row.measured.runs > 1 else "",
        amount(row.goal, row.unit),
        "over" if row.is_over else "ok",
        f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.4f}",
        f"{compared}; {row.note}" if row.note else compared,
    )


def line(texts: Sequence[str]) -> str:
    """A line of the table."""
    what, least, median, goal, verdict, ratio, rest = texts
    return f"{what:34} {least:>10} {median:>10} {goal:>10}  {verdict:4} {ratio:>6}  {rest}"


def amount(value: float, unit: Unit) -> str:
    """A number with its unit, as exact as it is worth."""
    text = f"{value:.2f}" if value < 100 and unit != "count" else f"{value:.0f}"
    return text if unit == "count" else f"{text} {unit}"
