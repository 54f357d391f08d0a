"""Formats an incident for people and for programs."""

from __future__ import annotations

from typing import Any

from pairun.base.escapes import visible
from pairun.diagnose.brief import diagnosis_lines, is_consequence
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.compare import NO_OTHER_FAILURE, NO_OTHER_RANK, OF_ALL_RANKS, named
from pairun.diagnose.incident import DEVICES, Incident
from pairun.diagnose.times import later
from pairun.diagnose.writerlog import LOSSES, Finding

_MAX_UNREAD = 5


def incident_lines(incident: Incident) -> list[str]:
    """The lines for people: who failed first, why, what followed, what to do.

    No sentence repeats: a fact in the summary or the headline is not shown as evidence again.
    """
    diagnosis, summary = incident.diagnosis, _summary(incident, with_cause=False)
    if not summary:
        lines = diagnosis_lines(diagnosis)
    else:
        if diagnosis.headline in summary:
            diagnosis = diagnosis._replace(headline=CLASSES[diagnosis.klass].meaning)
        head, *rest = diagnosis_lines(diagnosis)
        advice = [line for line in rest if line.startswith("  do: ")]
        said = f"{visible(summary)}\n{head}"
        lines = [visible(summary), f"  {head}"]
        lines += [line for line in rest if line not in advice and line.strip() not in said]
        for each in incident.consequences:
            about = ", ".join(filter(None, (each.klass, later(each.after_s).strip())))
            lines.append(f"  then: {visible(f'{named(each.members)}: {each.headline} ({about})')}")
        # all ranks may write one log, so that no other one could show a failure
        logs = {f for m in incident.members if m.rank is not None for f in m.files}
        is_obvious = incident.decided_by in (NO_OTHER_FAILURE, NO_OTHER_RANK) and len(logs) < 2
        decided_by = visible(incident.decided_by)
        if decided_by not in said and not is_obvious:
            lines.append(f"  decided by: {decided_by}")
        lines += advice
    unread = [f"  not read: {visible(each)}" for each in incident.unread[:_MAX_UNREAD]]
    if len(incident.unread) > _MAX_UNREAD:
        unread.append(f"  not read: {len(incident.unread) - _MAX_UNREAD} more files or parts")
    return [*lines, *unread]


def _summary(incident: Incident, *, with_cause: bool) -> str:
    """The incident in one sentence; empty if the diagnosis alone contains as much.

    Args:
        incident: what happened.
        with_cause: whether the sentence includes the cause; otherwise print it on a separate line.
    """
    first, stalled, diagnosis = incident.first, incident.stall, incident.diagnosis
    if is_alone(incident):
        return ""
    if first is None:
        if stalled is not None and (is_consequence(diagnosis) or diagnosis.klass in DEVICES):
            return "" if diagnosis.klass in (NONE, UNKNOWN) else stalled.words
        count = len([m for m in incident.members if m.rank is not None] or incident.members)
        is_open = count > 1 and diagnosis.klass not in (NONE, UNKNOWN, *OF_ALL_RANKS)
        return f"no log shows which of {count} failed first" if is_open else ""
    others = [m for m in incident.members if m is not first]
    is_only = first in incident.members and all(m.diagnosis.is_clean for m in others)
    if is_only and stalled is None and not any(m.rank is not None for m in incident.members):
        return ""  # files of no rank beside a log do not matter for it
    what = _what_it_did(first, incident, with_cause=with_cause)
    waiting = [c for c in incident.consequences if c.klass in LOSSES]
    if not (lost := sum(len(c.members) for c in waiting)):
        return what
    after_s = min((c.after_s for c in waiting if c.after_s is not None), default=None)
    return f"{what}; {lost} other{'s' * (lost > 1)} stopped waiting for it{later(after_s)}"


def _what_it_did(first: Finding, incident: Incident, *, with_cause: bool) -> str:
    at = f" at {first.at.clock()}" if first.at is not None else ""
    if first.rank is None and first.diagnosis.source == "kernel":
        return f"{first.label} shows the first failure{at}"
    if first.is_cause and (exception := incident.diagnosis.details.get("exception")):
        return f"{first.label} raised {exception}{at}"
    if first.is_cause or first.label not in incident.decided_by:
        cause = f": {incident.diagnosis.headline}" if first.is_cause and with_cause else ""
        return f"{first.label} failed first{at}{cause}"
    has_end = first.is_silent and first.last is not None
    end = f"; its log ends at {first.last.clock()}" if has_end and first.last else ""
    return f"{incident.decided_by}{end}"


def is_alone(incident: Incident) -> bool:
    """Whether there is one rank's log only, and the diagnosis contains everything."""
    others_named = incident.first is not None and incident.first not in incident.members
    return len(incident.members) < 2 and incident.stall is None and not others_named


def incident_data(incident: Incident) -> dict[str, Any]:
    """Plain data, which ``pairun diagnose --json`` prints under ``incident``."""
    stalled, first = incident.stall, incident.first
    return {
        "summary": _summary(incident, with_cause=True),
        "first": None if first is None else _member_data(first),
        "decided_by": incident.decided_by,
        "consequences": [
            {"class": klass, "headline": headline, "members": list(members), "after_s": after_s}
            for klass, headline, members, after_s in incident.consequences
        ],
        "collective": stalled
        and {
            "number": stalled.number,
            "operation": stalled.operation,
            "waiting": list(stalled.waiting),
            "missing": list(stalled.missing),
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
        "at": member.at and member.at.iso(),
        "clock": member.at and member.at.clock(),
        "step": member.progress.step,
        "epoch": member.progress.epoch,
    }
