"""Finds the instance that failed first; each instance reports its failure to the leader."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.errors import PairunError
from pairun.rendezvous import peers
from pairun.rendezvous.facts import Facts

SAME_FAILURE_S = 3600.0
"""Failures further apart, in seconds, are unrelated; a collective waits 30 minutes at most."""

_ASK_S = 0.7
"""The limit for all requests to the leader, in seconds; part of the exit summary's time."""

_UNKNOWN = "unknown"
"""The class of a failure whose headline already states that its cause is unknown."""

STOPPED = "terminated_sigterm"
"""The class of an instance that was stopped and did not fail."""


class OwnFailure(NamedTuple):
    """Why this instance failed.

    Attributes:
        klass: the class of the failure.
        headline: the failure in one sentence.
        is_consequence: whether another instance's failure caused it.
    """

    klass: str
    headline: str
    is_consequence: bool


def first_failure(own: OwnFailure, volume: str) -> str | None:
    """Report why this instance failed, and ask which instance failed first.

    A cause outranks its consequences, so the leader keeps the first failure of each kind.

    Args:
        own: why this instance failed.
        volume: path of the shared volume.

    Returns:
        A sentence about the first failure; None if it is unknown or this instance's.
    """
    others = peers.peers_of(volume, "runtime")
    if others is None:
        return None
    now = time.time()
    report = {"by": others.name, "class": own.klass, "headline": own.headline, "at": now}
    with contextlib.suppress(PairunError):
        if not own.is_consequence:
            return _sentence(_first("first cause", report, others.facts), others.name, now)
        first = _first("first consequence", report, others.facts)
        with contextlib.suppress(PairunError):
            cause = others.facts.get("first cause", _ASK_S / 2)
            if (sentence := _sentence(cause, others.name, now)) is not None:
                return sentence
        if _class(first) == own.klass == STOPPED:
            return None  # All instances were stopped; none failed.
        return _sentence(first, others.name, now)
    return None


def _class(report: object) -> object:
    return report.get("class") if isinstance(report, dict) else None


def _first(name: str, report: Mapping[str, Any], facts: Facts) -> object:
    """The first failure of a kind; replaces an old one from before a restart."""
    first = facts.put(name, report, _ASK_S / 2)
    if _is_recent(first, report["at"]):
        return first
    return facts.put(name, report, _ASK_S / 2, replace=True)


def _is_recent(report: object, now: float) -> bool:
    at = report.get("at") if isinstance(report, dict) else None
    return isinstance(at, int | float) and now - at < SAME_FAILURE_S


def _sentence(report: object, own_name: str, now: float) -> str | None:
    if not isinstance(report, dict) or report.get("by") == own_name:
        return None
    if not _is_recent(report, now):
        return None
    by, headline, klass = (str(report.get(name))[:200] for name in ("by", "headline", "class"))
    return f"{by} failed first{_before(now - report['at'])}: {headline}" + (
        "" if klass == _UNKNOWN else f" ({klass})"
    )


def _before(seconds: float) -> str:
    """How long before this instance another one failed; empty for less than a minute."""
    return f", {seconds / 60:.0f} min before" if seconds >= 60 else ""
