"""Finds the instance that failed first, from each one's own diagnosis; needs no logs.

A cause comes before its consequences; otherwise the clock decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classes import CONSEQUENCES, NONE, UNKNOWN
from pairun.diagnose.times import first_delay, later


class InstanceFailure(NamedTuple):
    """How an instance failed: its label, its class (empty if unknown), and when (seconds since the epoch)."""

    label: str
    klass: str
    at: float | None = None


def first_of(failures: Sequence[InstanceFailure]) -> int:
    """The index of the first failure; of at least one."""

    def order(n: int) -> tuple[bool, bool, float, str]:
        label, klass, at = failures[n]
        return klass in CONSEQUENCES, at is None, at or 0.0, label

    return min(range(len(failures)), key=order)


def what_followed(failures: Sequence[InstanceFailure]) -> str:
    """How many others stopped because of the first failure, and when; empty if none did."""
    first = failures[first_of(failures)] if failures else InstanceFailure("", UNKNOWN)
    others = [f for f in failures if f.klass in CONSEQUENCES - {NONE, UNKNOWN}]
    if first.klass in CONSEQUENCES or not others:
        return ""
    delays = [f.at - first.at for f in others if f.at is not None and first.at is not None]
    count = "1 other" if len(others) == 1 else f"{len(others)} others"
    return f"{count} stopped waiting for it{later(first_delay(delays))}"
