"""The grace time: one clock for all that must end before the platform kills the container."""

from __future__ import annotations

import time

GRACE_VARIABLE = "PAIRUN_GRACE"
"""The variable with the Pod's grace time; engines set both to the same value."""

RESERVE_SHARE = 0.2
RESERVE_S = 2.0
"""The minimum time reserved for everything after the command, in seconds."""

SUMMARY_SHARE = 0.05
_MIN_SUMMARY_S = 1.0
"""The minimum part of the reserve for the exit summary, in seconds."""

MARGIN_S = 0.5
"""The last part of the reserve, for stopping remaining processes and our own exit."""

KUBELET_S = 2.0
"""The seconds of a Pod's grace time that may pass before PID 1 gets the stop signal."""


class Grace:
    """The time after the first stop signal.

    It has four parts: for the command, the exit handlers, the exit summary, and a margin. The next
    part gets the time that a part does not use.

    Args:
        seconds: the time from the first stop signal until the platform kills the container.

    Attributes:
        signal: the first stop signal; None before it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.signal: int | None = None
        self._end: float | None = None

    @property
    def reserve_s(self) -> float:
        """The time after the command: a fifth, at least 2 seconds, at most half."""
        return min(max(self.seconds * RESERVE_SHARE, RESERVE_S), self.seconds / 2)

    @property
    def margin_s(self) -> float:
        """The margin; at most a third of the reserve."""
        return min(MARGIN_S, self.reserve_s / 3)

    @property
    def summary_s(self) -> float:
        """The exit summary's part: a twentieth, at least a second, at most a third of the reserve."""
        return min(max(self.seconds * SUMMARY_SHARE, _MIN_SUMMARY_S), self.reserve_s / 3)

    @property
    def command_s(self) -> float:
        """The command's part."""
        return self.seconds - self.reserve_s

    @property
    def handlers_s(self) -> float:
        """The part of all exit handlers together."""
        return self.reserve_s - self.summary_s - self.margin_s

    def begin(self, number: int) -> None:
        """Start the grace time at a stop signal; ignores later ones."""
        if self.signal is None:
            self.signal = number
            self._end = time.monotonic() + self.seconds

    def for_command_s(self) -> float | None:
        """Seconds left for the command, or None before a stop signal."""
        return self._left(self.reserve_s)

    def for_handlers_s(self) -> float | None:
        """Seconds left for exit handlers, or None before a stop signal."""
        return self._left(self.margin_s + self.summary_s)

    def for_summary_s(self) -> float | None:
        """Seconds left for the exit summary, or None before a stop signal."""
        return self._left(self.margin_s)

    def left_s(self) -> float | None:
        """Seconds until the platform kills the container, or None before a stop signal."""
        return self._left(0.0)

    def _left(self, reserved_s: float) -> float | None:
        return None if self._end is None else max(0.0, self._end - reserved_s - time.monotonic())
