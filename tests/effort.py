"""How much a test of random cases tries: a third before a merge, all and more at night."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

EFFORT = float(os.environ.get("PAIRUN_TEST_EFFORT") or 1 / 3)

NIGHT = 20.0
"""The effort of `make nightly`."""


def cases(count: int) -> int:
    """How many random cases a test tries.

    Args:
        count: how many it tries with an effort of 1; the default is a third.
    """
    return max(1, round(count * EFFORT))


Row = TypeVar("Row")


def rows(table: Sequence[Row], count: int) -> Sequence[Row]:
    """The rows of a long table that a test tries; the night tries each.

    Args:
        table: all rows.
        count: how many rows it tries before the night, spread over the table.
    """
    return table if EFFORT >= NIGHT else table[:: max(1, len(table) // count)]
