"""Durations: parses them with their units, and formats them for people."""

from __future__ import annotations

import re
from typing import NewType

Duration = NewType("Duration", float)
"""Seconds; in YAML with a unit (``500ms``, ``10s``, ``1h30m``)."""

DURATION_PATTERN = r"(\d+(\.\d+)?(ms|[dhms]))+"
"""The regular expression for a duration with units, without anchors."""

_UNITS_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


_LONGEST_S = 100 * 365 * 86400.0
"""A hundred years: longer durations are cut to this, so that every clock and timer accepts them."""


def parse_duration(text: str) -> Duration | None:
    """The seconds of a duration with units (``500ms``, ``10s``, ``1h30m``, ``2d``), or None."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[dhms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return Duration(min(_LONGEST_S, sum(float(number) * _UNITS_S[unit] for number, unit in parts)))


def parse_seconds(text: str) -> float | None:
    """The seconds of a duration with units, or of a plain number of seconds; None if neither."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return min(_LONGEST_S, float(text))
    return parse_duration(text)


def format_duration(seconds: float) -> str:
    """A duration as YAML has it, for settings and limits: ``250ms``, ``2.5s``, ``1h30m``."""
    short = float(f"{seconds:.3g}")
    if short < 1:
        return f"{short * 1000:.6g}ms" if short >= 1e-6 else "0s"
    if short < 60:
        return f"{short:g}s"
    text, rest = "", round(seconds)
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(_UNITS_S[unit]))
        text += f"{count}{unit}" if count else ""
    return text


def shown_duration(seconds: float) -> str:
    """A measured duration: ``17.8 ms``, ``2.5 s``, ``1h 30m``."""
    parts = re.findall(r"([0-9.]+)([a-z]+)", format_duration(seconds))
    return " ".join(f"{n}{unit}" if len(parts) > 1 else f"{n} {unit}" for n, unit in parts)
