"""How much a test of random cases tries: a person waits for less than the gate, a night for more."""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("PAIRUN_TEST_EFFORT") or (1 if os.environ.get("CI") else 1 / 3))

NIGHT = 20.0
"""The effort of `make nightly`."""


def cases(count: int) -> int:
    """How many random cases a test tries.

    Args:
        count: how many it tries in CI.
    """
    return max(1, round(count * EFFORT))
