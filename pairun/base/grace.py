"""The grace time: one clock for everything that must end before the platform kills us."""

from __future__ import annotations

import time

VARIABLE = "PAIRUN_GRACE"
"""Tells the grace time of the Pod; whoever sets the Pod's sets this one too."""

RESERVE_SHARE = 0.2
RESERVE_S = 2.0
"""What is kept of the grace time for all that follows the command, at the least."""

SUMMARY_SHARE = 0.05
SUMMARY_S = 1.0
"""What is kept of that for the exit summary, at the least."""

MARGIN_S = 0.5
"""What is kept at the very end, for what is left to stop and our own exit."""


class Grace:
    """Starts to run with the first stop signal, and is the same for all that follows.

    It is cut into four: the command, the exit handlers, the exit summary, the margin. What one does
    not use falls to the next.

    Args:
        seconds: from the first stop signal to the moment when the platform kills everything.

    Attributes:
        signal: the first stop signal, or None while nobody told us to stop.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.signal: int | None = None
        self._end: float | None = None

    @property
    def reserve_s(self) -> float:
        """What is kept from the command: a fifth, 2 seconds at least, half at most."""
        return min(max(self.seconds * RESERVE_SHARE, RESERVE_S), self.seconds / 2)

    @property
    def margin_s(self) -> float:
        """The part that belongs to nobody but us; a third of the reserve at most."""
        return min(MARGIN_S, self.reserve_s / 3)

    @property
    def summary_s(self) -> float:
        """The exit summary's part: a twentieth, a second at least, a third of the reserve at most."""
        return min(max(self.seconds * SUMMARY_SHARE, SUMMARY_S), self.reserve_s / 3)

    @property
    def command_s(self) -> float:
        """The command's part."""
        return self.seconds - self.reserve_s

    @property
    def handlers_s(self) -> float:
        """The exit handlers' part, for all of them together."""
        return self.reserve_s - self.summary_s - self.margin_s

    def begin(self, number: int) -> None:
        """Note a stop signal; only the first one counts."""
        if self.signal is None:
            self.signal = number
            self._end = time.monotonic() + self.seconds

    def for_command_s(self) -> float | None:
        """Seconds that the command still has, or None while nobody told us to stop."""
        return self._left(self.reserve_s)

    def for_handlers_s(self) -> float | None:
        """Seconds that exit handlers still have, or None while nobody told us to stop."""
        return self._left(self.margin_s + self.summary_s)

    def for_summary_s(self) -> float | None:
        """Seconds that the exit summary still has, or None while nobody told us to stop."""
        return self._left(self.margin_s)

    def left_s(self) -> float | None:
        """Seconds until the platform kills everything, or None while nobody told us to stop."""
        return self._left(0.0)

    def _left(self, kept: float) -> float | None:
        return None if self._end is None else max(0.0, self._end - kept - time.monotonic())
