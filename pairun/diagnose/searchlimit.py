"""The time limit of a search for reasons."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

Clock = Callable[[], float]
"""Seconds, as ``time.monotonic`` within a grace time, or ``time.process_time`` on the command line."""


class SearchLimit(NamedTuple):
    """The time limit of a search for reasons.

    Attributes:
        until: the clock's value at the limit, in seconds.
        clock: returns the time.
    """

    until: float = math.inf
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> SearchLimit:
        """The limit in so many seconds from now, on a clock."""
        return cls(clock() + seconds, clock)

    def is_over(self, spare_s: float = 0.0) -> bool:
        """Whether the limit plus ``spare_s`` seconds is exceeded."""
        return self.clock() > self.until + spare_s


NO_LIMIT = SearchLimit()
