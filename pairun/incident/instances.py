"""Which instance of a job failed first, from what each says of its end; logs are not needed.

Each instance's PID 1 has diagnosed its own failure. A cause comes before what follows from it, then the
clock decides. The journals' report, the recap of a run and the state of a job in a cluster use this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.brief import CONSEQUENCES
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.incident.spans import later


class InstanceFailure(NamedTuple):
    """How an instance failed.

    Attributes:
        label: of the instance.
        klass: the class of its failure; empty if it was not diagnosed.
        at: when it ended, in seconds since the epoch; None if unknown.
    """

    label: str
    klass: str
    at: float | None = None

    @property
    def is_consequence(self) -> bool:
        """Whether its diagnosis says that it follows from another instance's failure."""
        return self.klass in CONSEQUENCES and self.klass not in (NONE, UNKNOWN)


def first_of(failures: Sequence[InstanceFailure]) -> int:
    """The index of the first failure.

    Args:
        failures: one at least.
    """
    return min(range(len(failures)), key=lambda n: _order(failures[n]))


def _order(failure: InstanceFailure) -> tuple[bool, bool, float, str]:
    follows = failure.klass in CONSEQUENCES
    return follows, failure.at is None, failure.at or 0.0, failure.label


def what_followed(failures: Sequence[InstanceFailure]) -> str:
    """How many others stopped because of the first failure, and when; empty if none is known to have."""
    if not failures:
        return ""
    first = failures[first_of(failures)]
    others = [f for f in failures if f is not first and f.is_consequence]
    if first.klass in CONSEQUENCES or not others:
        return ""
    delays = [f.at - first.at for f in others if f.at is not None and first.at is not None]
    count = "1 other" if len(others) == 1 else f"{len(others)} others"
    return f"{count} stopped waiting for it{later(max(0.0, min(delays)) if delays else None)}"
