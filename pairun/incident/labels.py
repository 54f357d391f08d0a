"""Names several members in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def named(labels: Sequence[str]) -> str:
    """Labels for a sentence: ranks as ranges, of others the first few."""
    ranks = [
        int(label[5:]) for label in labels if label.startswith("rank ") and label[5:].isdigit()
    ]
    if len(ranks) == len(labels):
        word = "rank" if len(ranks) == 1 else "ranks"
        return f"{word} {_ranges(ranks)}"
    if len(labels) <= 4:
        return ", ".join(labels)
    return f"{', '.join(labels[:3])} and {len(labels) - 3} more"


def _ranges(numbers: Sequence[int]) -> str:
    ordered = sorted(numbers)
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
