"""When the search for reasons ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

Clock = Callable[[], float]
"""Seconds, as ``time.monotonic`` within a grace time, or ``time.process_time`` on the command line."""


class SearchLimit(NamedTuple):
    """When the search for reasons ends.

    Attributes:
        until: the end on the clock, in seconds.
        clock: what measures it.
    """

    until: float = math.inf
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> SearchLimit:
        """The limit that is so many seconds away on a clock."""
        return cls(clock() + seconds, clock)

    def is_over(self, spare_s: float = 0.0) -> bool:
        """Whether it is reached, and so many seconds more."""
        return self.clock() > self.until + spare_s


NO_LIMIT = SearchLimit()
