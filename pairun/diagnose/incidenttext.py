"""Formats an incident for people and for programs."""

from __future__ import annotations

from typing import Any

from pairun.base.escapes import visible
from pairun.diagnose.brief import diagnosis_lines, is_consequence
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.compare import NO_OTHER_FAILURE, NO_OTHER_RANK, OF_ALL_RANKS, named
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.incident import DEVICES, Consequence, Incident
from pairun.diagnose.times import later
from pairun.diagnose.writerlog import LOSSES, Finding

_MAX_UNREAD = 5


def incident_lines(incident: Incident) -> list[str]:
    """The lines for people: who failed first, why, what followed, what to do.

    No sentence repeats: a fact in the summary or the headline is not shown as evidence again.
    """
    summary = _summary(incident, with_cause=False)
    if not summary:
        lines = diagnosis_lines(incident.diagnosis)
    else:
        head, *rest = diagnosis_lines(_with_other_headline(incident.diagnosis, summary))
        advice = [line for line in rest if line.startswith("  do: ")]
        said = f"{visible(summary)}\n{head}"
        lines = [visible(summary), f"  {head}"]
        lines += [line for line in rest if line not in advice and line.strip() not in said]
        lines += [f"  then: {visible(_consequence(c))}" for c in incident.consequences]
        decided_by = visible(incident.decided_by)
        if decided_by and decided_by not in said and not _is_obvious(incident):
            lines.append(f"  decided by: {decided_by}")
        lines += advice
    unread = [f"  not read: {visible(each)}" for each in incident.unread[:_MAX_UNREAD]]
    if len(incident.unread) > _MAX_UNREAD:
        unread.append(f"  not read: {len(incident.unread) - _MAX_UNREAD} more files or parts")
    return [*lines, *unread]


def summary_of(incident: Incident) -> str:
    """The incident in one sentence; empty if the diagnosis alone contains as much."""
    return _summary(incident, with_cause=True)


def _summary(incident: Incident, *, with_cause: bool) -> str:
    """The incident in one sentence.

    Args:
        incident: what happened.
        with_cause: whether the sentence includes the cause; otherwise print it on a separate line.
    """
    first, stall = incident.first, incident.stall
    if is_alone(incident) or _is_one_log_of_no_rank(incident):
        return ""
    if first is None:
        if incident.diagnosis.klass in (NONE, UNKNOWN):
            return ""
        is_of_wait = is_consequence(incident.diagnosis) or incident.diagnosis.klass in DEVICES
        if stall is not None and is_of_wait:
            return stall.words
        ranks = [m for m in incident.members if m.rank is not None] or incident.members
        if len(ranks) < 2 or incident.diagnosis.klass in OF_ALL_RANKS:
            return ""
        return f"no log shows which of {len(ranks)} failed first"
    what_it_did = _what_it_did(first, incident, with_cause=with_cause)
    return "; ".join(filter(None, (what_it_did, _others(incident))))


def _with_other_headline(diagnosis: Diagnosis, summary: str) -> Diagnosis:
    """A diagnosis that does not repeat the summary: its headline comes from its class."""
    if diagnosis.headline not in summary or diagnosis.klass not in CLASSES:
        return diagnosis
    return diagnosis._replace(headline=CLASSES[diagnosis.klass].meaning)


def _is_one_log_of_no_rank(incident: Incident) -> bool:
    """Whether the one log with a failure has no rank, and the other logs do not matter for it."""
    first = incident.first
    return (
        first is not None
        and first.rank is None
        and incident.stall is None
        and first in incident.members
        and all(m.rank is None and m.diagnosis.is_clean for m in incident.members if m is not first)
    )


def _is_obvious(incident: Incident) -> bool:
    """Whether all ranks write one log, so that no other log could show a failure."""
    files = {f for m in incident.members if m.rank is not None for f in m.files}
    return incident.decided_by in (NO_OTHER_FAILURE, NO_OTHER_RANK) and len(files) < 2


def is_alone(incident: Incident) -> bool:
    """Whether there is one rank's log only, and the diagnosis contains everything."""
    others_named = incident.first is not None and incident.first not in incident.members
    return len(incident.members) < 2 and incident.stall is None and not others_named


def incident_data(incident: Incident) -> dict[str, Any]:
    """Plain data, which ``pairun diagnose --json`` prints under ``incident``."""
    stall, first = incident.stall, incident.first
    return {
        "summary": summary_of(incident),
        "first": None if first is None else _member_data(first),
        "decided_by": incident.decided_by,
        "consequences": [
            {
                "class": c.klass,
                "headline": c.headline,
                "members": list(c.members),
                "after_s": c.after_s,
            }
            for c in incident.consequences
        ],
        "collective": None
        if stall is None
        else {
            "number": stall.number,
            "operation": stall.operation,
            "waiting": list(stall.waiting),
            "missing": list(stall.missing),
        },
        "members": [_member_data(m) for m in incident.members],
        "unread": list(incident.unread),
    }


def _member_data(member: Finding) -> dict[str, Any]:
    diagnosis = member.diagnosis
    return {
        "label": member.label,
        "rank": member.rank,
        "host": member.host,
        "launcher": member.writer.launcher,
        "logs": list(member.files),
        "class": diagnosis.klass,
        "confidence": diagnosis.confidence,
        "headline": diagnosis.headline,
        "at": member.at.iso() if member.at is not None else None,
        "clock": member.at.clock() if member.at is not None else None,
        "step": member.progress.step,
        "epoch": member.progress.epoch,
    }


def _what_it_did(first: Finding, incident: Incident, *, with_cause: bool) -> str:
    at = f" at {first.at.clock()}" if first.at is not None else ""
    if first.rank is None and first.diagnosis.source == "kernel":
        return f"{first.label} shows the first failure{at}"
    if first.is_cause:
        exception = incident.diagnosis.details.get("exception")
        if exception:
            return f"{first.label} raised {exception}{at}"
        cause = f": {incident.diagnosis.headline}" if with_cause else ""
        return f"{first.label} failed first{at}{cause}"
    if first.is_silent and first.last is not None and first.label in incident.decided_by:
        return f"{incident.decided_by}; its log ends at {first.last.clock()}"
    return (
        incident.decided_by
        if first.label in incident.decided_by
        else f"{first.label} failed first{at}"
    )


def _others(incident: Incident) -> str:
    """How many others failed because of the first one."""
    waiting = [c for c in incident.consequences if c.klass in LOSSES]
    count = sum(len(c.members) for c in waiting)
    if not count:
        return ""
    delays = [c.after_s for c in waiting if c.after_s is not None]
    others = "1 other" if count == 1 else f"{count} others"
    return f"{others} stopped waiting for it{later(min(delays, default=None))}"


def _consequence(consequence: Consequence) -> str:
    about = ", ".join(filter(None, (consequence.klass, later(consequence.after_s).strip())))
    return f"{named(consequence.members)}: {consequence.headline} ({about})"
