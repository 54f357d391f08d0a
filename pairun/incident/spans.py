"""How much later something happened, in words."""

from __future__ import annotations


def later(after_s: float | None) -> str:
    """The clause for the end of a sentence, with a leading space; empty if the time is unknown.

    Args:
        after_s: in seconds.
    """
    if after_s is None:
        return ""
    return " within 1 s" if after_s < 1 else f" {_span(after_s)} later"


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
