"""Options that several commands have."""

from __future__ import annotations

from pairun.base.durations import parse_duration
from pairun.errors import PairunError, Problem


def duration_s(option: str, text: str) -> float:
    """The seconds of an option's duration.

    Args:
        option: as it is typed, with its dashes.
        text: its value.

    Raises:
        PairunError: the value is not a duration (PR801).
    """
    seconds = parse_duration(text)
    if seconds is None:
        hint = f"did you mean '{text}s'?" if text.isdigit() else "as in 500ms, 30s, 1h30m"
        raise PairunError(Problem("PR801", f"{option} {text} is not a duration", hint=hint))
    return seconds
