"""One result of the examination of a cluster."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.errors import PairunError

Level = Literal["ok", "warning", "failure"]


class DoctorFinding(NamedTuple):
    """What one check found.

    Attributes:
        subject: what the check is about.
        level: ``ok``; ``warning``: some jobs or commands may fail; ``failure``: jobs fail.
        message: the result.
        do: how to fix it; empty for ``ok``.
    """

    subject: str
    level: Level
    message: str
    do: str = ""


def of_error(subject: str, level: Level, error: PairunError, forbidden: str = "") -> DoctorFinding:
    """The finding for a request that the API server refused or did not answer.

    Args:
        subject: what the check is about.
        level: the level; a missing right of this login is always a warning.
        error: the API server's error.
        forbidden: what to do if this login lacks the right.
    """
    problem = error.problems[0]
    if isinstance(error, ClusterRefusal) and error.status == 403:
        return DoctorFinding(
            subject, "warning", "unknown: this login has no permission to check", forbidden or _ASK
        )
    return DoctorFinding(subject, level, problem.message, problem.hint or _ASK)


_ASK = "ask the cluster's administrator"
