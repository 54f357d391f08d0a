"""How much later, or earlier, something happened."""

from __future__ import annotations

from collections.abc import Iterable

SKEW_S = 2.0
"""The assumed clock difference of two hosts without common steps, in seconds."""


def first_delay(delays: Iterable[float]) -> float | None:
    """Seconds from a cause to the first of its consequences; negative if that came before.

    Clocks that differ a little can show a consequence before its cause: that is 0.

    Args:
        delays: from the cause to each consequence, in seconds.

    Returns:
        The shortest delay; None if there is none.
    """
    shortest = min(delays, default=None)
    return 0.0 if shortest is not None and -SKEW_S <= shortest < 0 else shortest


def later(after_s: float | None) -> str:
    """The clause for the end of a sentence, with a leading space; empty if the time is unknown.

    Args:
        after_s: in seconds; negative for what came earlier.
    """
    if after_s is None:
        return ""
    if after_s < 0:
        return f" {_span(-after_s)} earlier"
    return " within 1 s" if after_s < 1 else f" {_span(after_s)} later"


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
