"""How much a test of random cases tries: a night tries more than a person waits for."""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("PAIRUN_TEST_EFFORT") or 1)


def cases(count: int) -> int:
    """How many random cases a test tries.

    Args:
        count: how many it tries when nothing else is asked for.
    """
    return max(1, round(count * EFFORT))
