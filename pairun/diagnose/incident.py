"""Joins the findings of a job's logs to one incident: who failed first, why, what followed; as text and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from pairun.base.escapes import visible
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.compare import (
    HANG,
    MAY_FOLLOW,
    NO_OTHER,
    OF_ALL_RANKS,
    Case,
    Choice,
    delay,
    first_member,
    is_solid,
    named,
)
from pairun.diagnose.diagnosis import Diagnosis, Evidence, diagnosis_lines, of_class
from pairun.diagnose.signals import SYSTEM
from pairun.diagnose.stalls import Stall, stall
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import WAITING
from pairun.diagnose.times import first_delay, later
from pairun.diagnose.undecided import despite_success
from pairun.diagnose.weighing import BY_CODE, diagnose
from pairun.diagnose.writerlog import LOSSES, Finding, Gathered, members_of

_MAX_UNREAD = 5
_STOPS_OF_ALL = frozenset(("cancelled_by_user", "time_limit"))
"""Stops from outside that reach all ranks at once."""

_DEVICES = frozenset(("gpu_ecc_error", "gpu_lost", "nvlink_error"))
"""Classes of failed GPUs and links, which only the node's kernel or tools know."""

_OF_DEVICES = frozenset((
    "cuda_kernel_error", "cudnn_error", "gpu_not_available", "native_abort", "nccl_cuda_error",
    "nccl_system_error", "nccl_timeout", "peer_lost",
))  # fmt: skip
"""What ranks report when a GPU of their node fails."""


class Consequence(NamedTuple):
    """Members that failed because of the first one.

    Attributes:
        klass: their class.
        headline: of the first of them.
        members: their labels.
        after_s: seconds from the first failure to the first of these, negative if that came
            before; None if unknown.
    """

    klass: str
    headline: str
    members: tuple[str, ...]
    after_s: float | None = None


class Incident(NamedTuple):
    """What happened to a job.

    Attributes:
        diagnosis: why the job failed.
        first: the member that failed first; None if no fact names one.
        decided_by: the fact that names it, for people.
        consequences: failures of other members that followed.
        members: all of them.
        stall: what the ranks waited for, if known.
        unread: what was not read, for people.
    """

    diagnosis: Diagnosis
    first: Finding | None
    decided_by: str
    consequences: tuple[Consequence, ...]
    members: tuple[Finding, ...]
    stall: Stall | None
    unread: tuple[str, ...]


def join(gathered: Gathered, table: Table, facts: Circumstances | None = None) -> Incident:
    """Join findings to one incident.

    Args:
        gathered: what the files of a job show; at least one finding.
        table: the rules.
        facts: known of the whole job besides its logs.
    """
    members = members_of(gathered.findings)
    reports = [r for m in members for r in m.reports]
    # a report and the line that shows the rank of its process may be in different parts of a file
    known = {(r.kind, r.rank) for r in reports}
    reports += [r for w in gathered.wholes for r in w.reports if (r.kind, r.rank) not in known]
    silent = [m.rank for m in members if m.rank is not None and m.is_silent]
    recorded = {r.rank for r in gathered.states}
    waits = [r for m in members for r in m.reports if r.kind == WAITING and r.rank not in recorded]
    stalled = stall([*gathered.states, *waits], silent)
    case = Case(members, reports, stalled, table, gathered.wholes)
    choice = first_member(case)
    first, decided_by = choice.first, choice.decided_by
    diagnosis = _with_stacks(_why(choice, case, facts), first, members)
    diagnosis = _by_node(diagnosis, first, members)
    is_success = facts is not None and facts.exit_code == 0
    if is_success:
        diagnosis = _despite(diagnosis)
    if is_success or diagnosis.klass in _STOPS_OF_ALL:
        first, decided_by = None, ""
    consequences = _consequences(first, diagnosis, members) if first is not None else ()
    return Incident(
        diagnosis, first, decided_by, consequences, tuple(members), stalled, gathered.unread
    )


def _why(choice: Choice, case: Case, facts: Circumstances | None) -> Diagnosis:
    """Why the job failed."""
    first, why, stalled = choice.first, choice.why, case.stalled
    if why is not None and why.source != BY_CODE:
        return why
    wholes = [w.diagnosis for w in case.wholes if w.is_cause]
    if first is not None and first.is_cause:
        # judge a file in which all ranks write as a whole: a cause may lack its rank's prefix, but
        # of other ranks' lines, those about a lost connection may be the heaviest
        is_whole = len(case.wholes) == 1 and wholes
        follows = is_whole and is_solid(first) and wholes[0].klass in MAY_FOLLOW
        return wholes[0] if is_whole and not follows else first.diagnosis
    ranks = [m for m in case.members if not m.writer.launcher]
    # of those that wait, the most frequent class: if a rank dies, most others lose connections
    waiting = [m.diagnosis for m in ranks if m.is_waiting]
    counts = Counter(d.klass for d in waiting)
    waiting = [d for d in waiting if counts[d.klass] == max(counts.values())]
    launchers = [m for m in case.members if m.writer.launcher]
    reported = [m.diagnosis for m in launchers if m.is_cause and is_solid(m)]
    causes = [*wholes, *(m.diagnosis for m in ranks if m.is_cause)]
    if waiting:  # who sees no progress says less than who says what it waited for
        reported = [d for d in reported if d.klass != HANG]
        causes = [d for d in causes if d.klass != HANG]
    all_of = [m.diagnosis for m in case.members if not m.diagnosis.is_clean]
    failed = [d for d in all_of if d.klass != UNKNOWN]
    by_stall = [_by_stall(stalled)] if stalled is not None else []
    is_mismatch = stalled is not None and stalled.mismatch
    # a report such as a kernel's explains more than the exit code of a rank that it killed
    groups = (
        reported if first is not None else [],
        [why] if why is not None else [],
        by_stall if is_mismatch else [],
        causes, waiting, failed, all_of, by_stall,
    )  # fmt: skip
    group = next(filter(None, groups), None)
    if group is not None:
        best = max(group, key=lambda d: d.confidence)
    else:
        calm = [m.diagnosis for m in ranks or case.members]
        best = min(calm, key=lambda d: (d.klass != NONE, d.confidence))
    if best.is_clean and facts is not None and facts.exit_code not in (None, 0):
        shown = [d for w in case.wholes if (d := w.diagnosis).klass not in (NONE, UNKNOWN)]
        return shown[0] if len(shown) == 1 else _by_exit_code(case, facts)
    if stalled is not None and group is waiting:
        return best._replace(evidence=(*best.evidence, Evidence("", 0, stalled.words)))
    return best


def _with_stacks(shown: Diagnosis, first: Finding | None, members: Sequence[Finding]) -> Diagnosis:
    """The diagnosis of a hang, with the place that the dumps of stacks show instead of the advice to take one."""
    dumped = [first] if first is not None and first.stack is not None else members
    places = {each.stack.words for each in dumped if each.stack is not None}
    if shown.klass != HANG or shown.advice != CLASSES[HANG].advice or not places:
        return shown
    what = f"see why it does not go on at {min(places)}"
    what = what if len(places) == 1 else "compare the stacks of the ranks"
    return shown._replace(advice=f"{what}; run it again")


def _by_node(diagnosis: Diagnosis, first: Finding | None, members: Sequence[Finding]) -> Diagnosis:
    """The failed GPU that a node reports beside the logs of ranks, if these show what follows from it."""
    others = {m.host for m in members if m.rank is not None and m is not first}
    others -= {"", first.host if first is not None else ""}
    reports = [
        d
        for m in members
        if m.rank is None and (d := m.diagnosis).klass in _DEVICES and d.source
        if 100 * d.confidence >= SYSTEM
        if not any(host in f"{m.host} {d.evidence[0].text}" for host in others)
    ]
    if not reports or diagnosis.klass not in _OF_DEVICES:
        return diagnosis
    report = max(reports, key=lambda each: each.confidence)
    return report._replace(
        evidence=(*report.evidence, *diagnosis.evidence),
        alternatives=((diagnosis.klass, diagnosis.confidence), *diagnosis.alternatives),
    )


def _by_exit_code(case: Case, facts: Circumstances) -> Diagnosis:
    """The diagnosis from the exit code of a job whose logs show no failure."""
    decided = diagnose([], case.table, facts)
    if decided.klass != UNKNOWN:
        return decided
    kind, tail = CLASSES[UNKNOWN], next((m.tail for m in case.members if m.tail), ())
    return decided._replace(headline=kind.meaning, advice=kind.advice, evidence=tail)


def _despite(shown: Diagnosis) -> Diagnosis:
    """The diagnosis of a job with exit code 0, even if its logs show failures."""
    if shown.klass == NONE:
        return shown
    if shown.klass == UNKNOWN:
        return of_class(NONE, 0.9)
    said, advice = despite_success(shown.headline)
    return of_class(NONE, 0.7, *shown.evidence[:1])._replace(headline=said, advice=advice)


def _by_stall(stalled: Stall) -> Diagnosis:
    """The diagnosis of waiting ranks for which only flight recorders report anything."""
    shown = of_class("nccl_timeout", 0.8, Evidence("", 0, stalled.words))
    if stalled.mismatch:
        advice = "make every rank enter the same collectives in the same order"
        shown = shown._replace(fault="user", retry="after_fix", advice=advice)
    return shown._replace(headline=stalled.words)


def _consequences(
    first: Finding, why: Diagnosis, members: Sequence[Finding]
) -> tuple[Consequence, ...]:
    """What followed the first failure; the log of all ranks that shows why did not follow."""
    groups: dict[str, list[Finding]] = {}
    for member in members:
        is_whole = first not in members and member.diagnosis == why
        is_failed = member.diagnosis.klass not in (NONE, UNKNOWN)
        if is_failed and not is_whole and member is not first and not member.writer.launcher:
            groups.setdefault(member.diagnosis.klass, []).append(member)
    consequences = []
    for klass, group in groups.items():
        after_s = first_delay([d for m in group if (d := delay(first, m)) is not None])
        after_s = None if after_s is None else round(after_s, 3)
        labels = tuple(m.label for m in group)
        consequences.append(Consequence(klass, group[0].diagnosis.headline, labels, after_s))
    return tuple(sorted(consequences, key=lambda c: -len(c.members)))


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
        is_obvious = incident.decided_by in NO_OTHER and len(logs) < 2
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
        if stalled is not None and (diagnosis.is_consequence or diagnosis.klass in _DEVICES):
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
        and {k: getattr(stalled, k) for k in ("number", "operation", "waiting", "missing")},
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
