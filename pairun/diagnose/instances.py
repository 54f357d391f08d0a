"""Finds the instance that failed first, from each one's own diagnosis; needs no logs.

Each instance's PID 1 diagnoses its own failure. A cause comes before its consequences; otherwise
the clock decides. The journals' report, a run's recap and a job's status in a cluster use this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.brief import CONSEQUENCES
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.times import first_delay, later


class InstanceFailure(NamedTuple):
    """How an instance failed.

    Attributes:
        label: of the instance.
        klass: its failure class; empty if it was not diagnosed.
        at: when it ended, in seconds since the epoch; None if unknown.
    """

    label: str
    klass: str
    at: float | None = None

    @property
    def is_consequence(self) -> bool:
        """Whether, by its diagnosis, another instance's failure caused it."""
        return self.klass in CONSEQUENCES and self.klass not in (NONE, UNKNOWN)


def first_of(failures: Sequence[InstanceFailure]) -> int:
    """The index of the first failure.

    Args:
        failures: at least one.
    """
    return min(range(len(failures)), key=lambda n: _order(failures[n]))


def _order(failure: InstanceFailure) -> tuple[bool, bool, float, str]:
    follows = failure.klass in CONSEQUENCES
    return follows, failure.at is None, failure.at or 0.0, failure.label


def what_followed(failures: Sequence[InstanceFailure]) -> str:
    """How many others stopped because of the first failure, and when; empty if none did."""
    if not failures:
        return ""
    first = failures[first_of(failures)]
    others = [f for f in failures if f is not first and f.is_consequence]
    if first.klass in CONSEQUENCES or not others:
        return ""
    delays = [f.at - first.at for f in others if f.at is not None and first.at is not None]
    count = "1 other" if len(others) == 1 else f"{len(others)} others"
    return f"{count} stopped waiting for it{later(first_delay(delays))}"
