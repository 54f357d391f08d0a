"""Finds the member of a job that failed first.

A member's logs show one of these: a cause of its own (`Finding.is_cause`); a loss, of a member that it
waited for or was connected to (`_is_loss`); where it hangs (`Finding.stack`); or no reason at all
(`_is_quiet`). Besides, logs show when they end, and name other members (`Report`, `Stall`). Each
function of `_ORDER` looks at one of these; the first that decides counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import groupby
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.signals import KUBERNETES
from pairun.diagnose.stalls import Stall, odd_stack
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import ENDED, MISSING, Report
from pairun.diagnose.times import SKEW_S, seconds_between
from pairun.diagnose.weighing import BY_CODE, diagnose
from pairun.diagnose.writerlog import CHILD_FAILED, LOSSES, Finding, named_in

HANG = "hang"
"""The class of a rank that stops without an error."""

OF_ALL_RANKS = frozenset(("node_stuck", "terminated_sigterm"))
"""Classes of what stops all ranks at once: none of them fails first."""

MAY_FOLLOW = frozenset(("network_unreachable", "nccl_system_error", "native_abort"))
"""Classes that ranks also show when another rank dies: used if no rank shows a better one."""

_NETWORK = MAY_FOLLOW - {"native_abort"}
"""Classes of connections that fail: the network's failure, or the end of the rank at the other end."""

_OWN_ENDINGS = frozenset((None, 0, 1, 2, 134, 143))
"""Exit codes that a rank may also have after another one failed."""

_GOODBYE = re.compile(
    r"(?i)\b(?:bye|good-?bye|leaving|exit(?:s|ing|ed)?|finish(?:ed|ing)|complete[d]?|done|shut(?:ting)? ?down|stop(?:s|ping|ped)"
    r"|exhausted|limit reached|no more|nothing (?:left|more))\b"
)
"""How programs say that they end."""

NO_OTHER = ("no other log shows a failure", "no other rank's log shows a failure")
"""The deciding facts if one member shows a cause, and no other log or at most a launcher's shows anything."""

_EXIT_CODES = ("exit codes",)
_NOUNS = {
    **dict.fromkeys(LOSSES, ("timeouts", "closed connections")),
    CHILD_FAILED: _EXIT_CODES,
    "native_abort": ("aborts",),
    "nccl_system_error": ("network errors",),
    "network_unreachable": ("network errors",),
    "terminated_sigterm": ("stop signals",),
}
"""What a log of a class reports."""


class Choice(NamedTuple):
    """The member that failed first.

    Attributes:
        first: the member; None if none failed first.
        why: its diagnosis, or the job's, if its own log has none.
        decided_by: the fact that names it, for people.
    """

    first: Finding | None = None
    why: Diagnosis | None = None
    decided_by: str = ""


class Case:
    """What is known of a job.

    Args:
        members: of the job.
        reports: what their logs report about ranks.
        stalled: what the ranks waited for, if known.
        table: the rules.
        wholes: of each file in which several writers' lines alternate, the diagnosis of all of it.
    """

    def __init__(
        self,
        members: Sequence[Finding],
        reports: Sequence[Report],
        stalled: Stall | None,
        table: Table,
        wholes: Sequence[Finding] = (),
    ) -> None:
        self.members, self.reports, self.stalled, self.table = members, reports, stalled, table
        self.wholes = wholes
        self.ranks = [m for m in members if not m.writer.launcher]
        self.waiting = [m for m in self.ranks if m.is_waiting]
        self.stacks = {m.label: m.stack for m in self.ranks if m.stack is not None}
        causes = [m for m in self.ranks if m.is_cause]
        self.all_hang = all(m.diagnosis.klass == HANG for m in causes)
        # of several stacks, each only shows where it waits
        is_shown = self.all_hang and len(self.stacks) > 1
        self.causes = [m for m in causes if not (is_shown and m.stack)]


def first_member(case: Case) -> Choice:
    """The member that failed first."""
    return next((choice for each in _ORDER if (choice := each(case)) is not None), Choice())


def _all_finished(case: Case) -> Choice | None:
    if case.stalled is not None:
        return None
    # one file holds several attempts; only all of it shows that the last one succeeded
    wholes = [whole.diagnosis for whole in case.wholes]
    if len(wholes) == 1 and wholes[0].klass == NONE:
        return Choice(None, wholes[0])
    are_done = len(case.ranks) > 1 and all(m.finished for m in case.ranks)
    return Choice(None, of_class(NONE, 0.9)) if are_done else None


def _busy_elsewhere(case: Case) -> Choice | None:
    """A rank does something else while the others wait for it, by the stacks."""
    if not case.all_hang or (odd := odd_stack(case.stacks)) is None:
        return None
    label, words = odd
    member = next(m for m in case.members if m.label == label)
    place = filter(None, [case.stacks[label].shown])
    shown = (*place, Evidence("", 0, words), *member.diagnosis.evidence[:1])
    return Choice(member, of_class(HANG, 0.8, *shown), words)


def _with_solid_cause(case: Case) -> Choice | None:
    solid = [m for m in case.causes if is_solid(m)]
    return _first_cause(solid, case) if solid else None


def _died(case: Case) -> Choice | None:
    """A launcher saw a rank die by itself."""
    for each in case.reports:
        if each.kind == ENDED and each.exit_code not in _OWN_ENDINGS:
            member = named_in(each, case.members)
            why = member.diagnosis if member.is_cause else _by_exit(each, member, case.table)
            return Choice(member, why, each.words)
    return None


def _with_cause(case: Case) -> Choice | None:
    """A failed connection is a cause only if no other rank just ends."""
    is_first = case.causes and not (all(map(_is_loss, case.causes)) and _ended_quietly(case))
    return _first_cause(case.causes, case) if is_first else None


def _waited_for(case: Case) -> Choice | None:
    """The one rank that did not enter the others' collective, that has no log, or that the others name."""
    stalled = case.stalled
    behind = [Report(MISSING, r, stalled.words) for r in stalled.missing] if stalled else []
    known = {m.rank for m in case.ranks if m.rank is not None}
    are_all = len(known) > 1 and len(case.waiting) == len(case.ranks)
    gaps = set(range(max(known, default=0))) - known if are_all else set()
    words = f"has no log, and all others report {reports_of(case.ranks)}"
    absent = [Report(MISSING, rank, f"rank {rank} {words}") for rank in gaps]
    named = {each.label: each for each in case.reports if each.kind == MISSING}
    for reports in (behind, absent, list(named.values())):
        if len(reports) == 1:
            return Choice(named_in(reports[0], case.members), None, reports[0].words)
    return None


def _ended_quietly(case: Case) -> Choice | None:
    """The one rank, or the ranks of one host, whose logs end without a reason while others wait."""
    quiet = [m for m in case.ranks if _is_quiet(m)]
    waiting = [m for m in case.ranks if _is_loss(m) and m not in quiet]
    reports = f"while others report {reports_of(waiting)}"
    ended = [
        m for m in case.ranks if m.finished or any(_GOODBYE.search(e.text) for e in m.tail[-1:])
    ]
    left = [m for m in ended if m.diagnosis.is_clean]
    if len(left) == 1 and len(waiting) >= max(2, len(quiet)):
        return Choice(left[0], None, f"{left[0].label} ended by itself {reports}")
    if not quiet or not waiting or (case.stalled is not None and not case.stalled.missing):
        return None
    first, labels, hosts = quiet[0], named([m.label for m in quiet]), {m.host for m in quiet}
    end = f"without {'an error' if all(m.is_silent for m in quiet) else 'a reason'} {reports}"
    if len(quiet) == 1:
        is_pod = first.diagnosis.source == KUBERNETES  # its log is not known
        words = (
            f"the Pod of {labels} failed {reports}" if is_pod else f"the log of {labels} ends {end}"
        )
    elif len(hosts) == 1 and hosts.isdisjoint({"", *(m.host for m in waiting)}):
        words = f"the logs of {labels}, all on {hosts.pop()}, end {end}"
    else:
        return None
    why = first.diagnosis if first.diagnosis.klass == CHILD_FAILED else None
    return Choice(first, why, words)


def _is_loss(member: Finding) -> bool:
    """Whether a member waited for, or lost, another one, or reports what such a loss looks like."""
    return member.is_waiting or member.diagnosis.klass in _NETWORK


def _is_quiet(member: Finding) -> bool:
    """Whether a member's logs show no reason for its end: at most its exit code, or a cut traceback."""
    diagnosis = member.diagnosis
    is_unclear = diagnosis.klass in (UNKNOWN, CHILD_FAILED) and not diagnosis.is_clean
    return member.is_silent or is_unclear


def _seen_first(case: Case) -> Choice | None:
    """A launcher saw no earlier failure."""
    if (seen := next((each for each in case.reports if each.first), None)) is None:
        return None
    member, why = named_in(seen, case.members), None
    if seen.exit_code is not None and not case.waiting:
        why = _by_exit(seen, member, case.table)
    return Choice(member, why if why and why.klass != UNKNOWN else None, seen.words)


def _alone(case: Case) -> Choice | None:
    if len(case.waiting) == len(case.ranks) == 1:
        return Choice(case.waiting[0], None, "it is the only log with a failure")
    return None


_ORDER: tuple[Callable[[Case], Choice | None], ...] = (
    _all_finished, _busy_elsewhere, _with_solid_cause, _died, _with_cause, _waited_for, _ended_quietly,
    _seen_first, _alone,
)  # fmt: skip
"""The facts that name the first member, strongest first."""


def is_solid(member: Finding) -> bool:
    """Whether a member's class does not also follow from another member's death."""
    return member.diagnosis.klass not in MAY_FOLLOW


def _first_cause(causes: Sequence[Finding], case: Case) -> Choice:
    """Of several causes the earliest, if clocks were compared; else the one that the launcher saw first."""
    if len(causes) == 1:
        (cause,) = causes
        ended = [each for each in cause.reports if each.kind == ENDED]
        if cause.rank is not None or len(ended) != 1:
            return Choice(cause, None, _against_others(cause, case.members))
        # the rank whose failure a log of all ranks shows; without the log if its node failed
        said, member = ended[0], named_in(ended[0])
        if said.rank is not None and cause.diagnosis.klass not in OF_ALL_RANKS:
            writer = cause.writer._replace(label=said.label, rank=said.rank)
            member = cause._replace(writer=writer)
        return Choice(member, cause.diagnosis, said.words)
    seen = [named_in(r, case.members) for r in case.reports if r.kind == ENDED and r.first]
    if not any(m in case.members for m in seen) and (above := _by_lines(causes, case.members)):
        file = above.file.rpartition("/")[2]
        return Choice(above, None, f"its failure is the first of {len(causes)} in {file}")
    earliest, candidates = _earliest_of(causes)
    are_alike = len({m.diagnosis.klass for m in causes}) == 1
    if are_alike and (absent := next((m for m in seen if m not in case.members), None)):
        words = "the launcher saw it fail first; its log is missing"
        return Choice(absent, causes[0].diagnosis, words)
    if accused := next((m for m in seen if m in candidates), None):
        return Choice(accused, None, "the launcher saw it fail first")
    if earliest is not None and (len(candidates) == 1 or len({m.host for m in candidates}) == 1):
        return Choice(earliest, None, f"its failure is the earliest of {len(causes)}")
    if len({m.diagnosis.klass for m in candidates}) == 1:
        best = min(candidates, key=lambda m: m.rank if m.rank is not None else 1 << 30)
        return Choice(best, None, f"{len(candidates)} fail alike, in no known order")
    best = max(candidates, key=lambda m: (m.diagnosis.confidence, -(m.rank or 0)))
    return Choice(best, None, "its log has the clearest cause; the times do not decide")


def _by_lines(causes: Sequence[Finding], members: Sequence[Finding]) -> Finding | None:
    """The first of several causes in a file in which their writers' lines alternate."""
    # what most ranks meet by themselves has no first one
    are_alike = len({m.diagnosis.headline for m in causes}) == 1 and 2 * len(causes) > len(members)
    starts, ends = [m.lines[0] for m in causes], [m.lines[1] for m in causes]
    if len({m.file for m in causes}) > 1 or are_alike or max(starts) >= min(ends):
        return None
    lines = [next((e.line for e in m.diagnosis.evidence if e.line), 0) for m in causes]
    return causes[lines.index(min(lines))] if all(lines) else None


def _earliest_of(members: Sequence[Finding]) -> tuple[Finding | None, list[Finding]]:
    """The member that failed first, and all that may have; None unless the times of all are known.

    The clocks of two hosts may differ by `SKEW_S`.
    """
    if any(m.at is None for m in members):
        return None, list(members)

    first = reduce(lambda a, b: b if (delay(a, b) or 0) < 0 else a, members)
    skew_s = {m.host: 0.0 if m.host == first.host else SKEW_S for m in members}
    return first, [m for m in members if (delay(first, m) or 0) <= skew_s[m.host] or m is first]


def delay(first: Finding, then: Finding) -> float | None:
    """Seconds from one member's failure to another's, by their clocks; None if unknown."""
    if first.at is None or then.at is None:
        return None
    return seconds_between(first.at, then.at)


def _by_exit(said: Report, member: Finding, table: Table) -> Diagnosis:
    diagnosis = diagnose([], table, Circumstances(exit_code=said.exit_code))
    if diagnosis.klass == UNKNOWN and not member.diagnosis.is_clean:
        diagnosis = member.diagnosis
    evidence = (Evidence("", 0, said.words), *member.diagnosis.evidence[:1])
    return diagnosis._replace(evidence=evidence)


def _against_others(first: Finding, members: Sequence[Finding]) -> str:
    """Why a member with a cause is the first: what the other members' logs show.

    Args:
        first: the only member with a cause that another rank's end does not explain.
        members: of the job.
    """
    others = [m for m in members if m is not first and not m.diagnosis.is_clean]
    failed = [m for m in others if not m.writer.launcher]
    if not failed:
        return NO_OTHER[len(others) > 0]
    if not (reported := reports_of(failed)):
        return "no other log shows a cause"
    if len(failed) < sum(not m.writer.launcher for m in members if m is not first):
        who = named([m.label for m in failed])
    else:
        who = f"the other rank{'s' if len(failed) > 1 else ''}"
    return f"{who} only {'reports' if len(failed) == 1 else 'report'} {reported}"


def reports_of(members: Iterable[Finding]) -> str:
    """What members without a cause report, in words; empty if the logs of one are unclear."""
    nouns: dict[str, None] = {}
    for member in members:
        klass, by_code = member.diagnosis.klass, member.diagnosis.source == BY_CODE
        if klass == UNKNOWN or not (by_code or klass in _NOUNS):
            return ""
        nouns.update(dict.fromkeys(_EXIT_CODES if by_code else _NOUNS[klass]))
    *most, last = nouns or ("",)
    return f"{', '.join(most)} or {last}" if most else last


def named(labels: Sequence[str]) -> str:
    """Labels for a sentence: ranks as ranges, of others the first few."""
    ranks = [int(each[5:]) for each in labels if each.startswith("rank ") and each[5:].isdigit()]
    if len(ranks) == len(labels):
        # neighbours have the same distance to their places in the order
        runs = [
            [*run] for _, run in groupby(enumerate(sorted(ranks)), lambda each: each[1] - each[0])
        ]
        spans = [(run[0][1], run[-1][1]) for run in runs]
        texts = [str(a) if a == b else f"{a}-{b}" for a, b in spans]
        return f"rank{'s' * (len(ranks) > 1)} {', '.join(texts)}"
    if len(labels) <= 4:
        return ", ".join(labels)
    return f"{', '.join(labels[:3])} and {len(labels) - 3} more"
