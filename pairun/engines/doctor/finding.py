"""One result of the examination of a cluster."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.errors import PairunError

Level = Literal["ok", "warning", "failure"]


class Finding(NamedTuple):
    """What one check found.

    Attributes:
        subject: what was checked.
        level: ``ok``; ``warning``: some jobs or commands may not work; ``failure``: jobs do not.
        message: what was found.
        do: what to do about it; empty for ``ok``.
    """

    subject: str
    level: Level
    message: str
    do: str = ""


def of_error(subject: str, level: Level, error: PairunError, forbidden: str = "") -> Finding:
    """The finding for a question that the API server did not answer.

    Args:
        subject: what was checked.
        level: what it means, unless this login may not ask: that is a warning.
        error: the server's refusal.
        forbidden: what to do where this login may not ask.
    """
    problem = error.problems[0]
    if isinstance(error, ClusterRefusal) and error.status == 403:
        return Finding(subject, "warning", "unknown: this login may not ask", forbidden or _ASK)
    return Finding(subject, level, problem.message, problem.hint or _ASK)


def is_missing(error: PairunError) -> bool:
    """Whether the API server says that there is no such object or kind."""
    return isinstance(error, ClusterRefusal) and error.status == 404


_ASK = "ask the cluster's administrator"
