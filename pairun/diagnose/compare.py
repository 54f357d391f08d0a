"""Finds the member of a job that failed first.

A member's logs show one of these: a cause of its own (`Member.is_cause`); a loss, of a member that it
waited for or was connected to (`_is_loss`); where it hangs (`Member.stack`); or no reason at all
(`_is_quiet`). Besides, logs show when they end, and name other members (`Testimony`, `Stall`). Each
function of `_ORDER` looks at one of these; the first that decides counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.collectives import Stall
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.members import Member, against_others, earliest_of, named, reports_of
from pairun.diagnose.signals import KUBERNETES
from pairun.diagnose.stacks import odd_stack
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import ENDED, MISSING, Testimony
from pairun.diagnose.weighing import diagnose
from pairun.diagnose.writerlog import CHILD_FAILED, Finding

HANG = "hang"
"""The class of a rank that stops without an error."""

OF_ALL_RANKS = frozenset(("node_stuck", "terminated_sigterm"))
"""Classes of what stops all ranks at once: none of them fails first."""

MAY_FOLLOW = frozenset(("network_unreachable", "nccl_system_error", "native_abort"))
"""Classes that ranks also show when another rank dies: used if no rank shows a better one."""

_DIFFERENT = "collectives-differ"
"""The rule for what each rank reports when one enters another collective: it does not show which."""

_NETWORK = frozenset(("network_unreachable", "nccl_system_error"))
"""Classes of connections that fail: the network's failure, or the end of the rank at the other end."""

_OWN_ENDINGS = frozenset((None, 0, 1, 2, 134, 143))
"""Exit codes that a rank may also have after another one failed."""

_GOODBYE = re.compile(
    r"(?i)\b(?:bye|good-?bye|leaving|exit(?:s|ing|ed)?|finish(?:ed|ing)|complete[d]?|done|shut(?:ting)? ?down|stop(?:s|ping|ped)"
    r"|exhausted|limit reached|no more|nothing (?:left|more))\b"
)
"""How programs say that they end."""


class Choice(NamedTuple):
    """The member that failed first.

    Attributes:
        first: the member; None if none failed first.
        why: its diagnosis, or the job's, if its own log has none.
        decided_by: the fact that names it, for people.
    """

    first: Member | None = None
    why: Diagnosis | None = None
    decided_by: str = ""


class Case:
    """What is known of a job.

    Args:
        members: of the job.
        said: what their logs report about ranks.
        stalled: what the ranks waited for, if known.
        table: the rules.
        wholes: of each file in which several writers' lines alternate, the diagnosis of all of it.
    """

    def __init__(
        self,
        members: Sequence[Member],
        said: Sequence[Testimony],
        stalled: Stall | None,
        table: Table,
        wholes: Sequence[Finding] = (),
    ) -> None:
        self.members, self.said, self.stalled, self.table = members, said, stalled, table
        self.wholes = [whole.diagnosis for whole in wholes]
        self.ranks = [m for m in members if not m.launcher]
        causes = [m for m in self.ranks if m.is_cause]
        self.differing = [m for m in causes if m.diagnosis.rule == _DIFFERENT]
        self.stacks = {m.label: m.stack for m in self.ranks if m.stack is not None}
        self.causes = [m for m in causes if m not in self.differing]
        self.all_hang = all(m.diagnosis.klass == HANG for m in self.causes)
        if self.all_hang and len(self.stacks) > 1:  # each only shows where it waits
            self.causes = [m for m in self.causes if m.stack is None]
        self.solid = [m for m in self.causes if is_solid(m)]
        self.waiting = [m for m in self.ranks if m.is_waiting]
        self.quiet = [m for m in self.ranks if _is_quiet(m)]


def first_member(case: Case) -> Choice:
    """The member that failed first."""
    return next((choice for each in _ORDER if (choice := each(case)) is not None), Choice())


def _all_finished(case: Case) -> Choice | None:
    ranks = [f for m in case.ranks for f in m.findings]
    if len(ranks) > 1 and all(f.finished for f in ranks) and case.stalled is None:
        return Choice(None, of_class(NONE, 0.9))
    # one file holds several attempts; only all of it shows that the last one succeeded
    is_none = len(case.wholes) == 1 and case.wholes[0].klass == NONE
    return Choice(None, case.wholes[0]) if is_none and case.stalled is None else None


def _busy_elsewhere(case: Case) -> Choice | None:
    """A rank does something else while the others wait for it, by the stacks."""
    if not case.all_hang or (odd := odd_stack(case.stacks)) is None:
        return None
    label, words = odd
    member = next(m for m in case.members if m.label == label)
    shown = Evidence("", 0, words), *member.diagnosis.evidence[:1]
    return Choice(member, of_class(HANG, 0.8, case.stacks[label].shown, *shown), words)


def _with_solid_cause(case: Case) -> Choice | None:
    return _first_cause(case.solid, case) if case.solid else None


def _differs(case: Case) -> Choice | None:
    """Ranks that report different collectives name no first one."""
    return Choice(None, case.differing[0].diagnosis) if case.differing else None


def _died(case: Case) -> Choice | None:
    """A launcher saw a rank die by itself."""
    for each in case.said:
        if each.kind == ENDED and each.exit_code not in _OWN_ENDINGS:
            member = Member.named(each, case.members)
            why = member.diagnosis if member.is_cause else _by_exit(each, member, case.table)
            return Choice(member, why, each.words)
    return None


def _left_early(case: Case) -> Choice | None:
    """The one rank that ended by itself, as its log says, while all others waited for it."""
    calm = [m for m in case.ranks if m in case.quiet or (m.is_healthy and m.findings)]
    waiting = [m for m in case.waiting if m not in calm]
    left = [m for m in calm if m.is_healthy and any(map(_says_goodbye, m.findings))]
    if case.causes or len(left) != 1 or len(waiting) < max(2, len(calm)):
        return None
    words = f"{left[0].label} ended by itself while others report {reports_of(waiting)}"
    return Choice(left[0], None, words)


def _says_goodbye(finding: Finding) -> bool:
    """Whether a log ends with success, or its last line says that the program ends."""
    last = finding.tail[-1].text if finding.tail else ""
    return finding.finished or _GOODBYE.search(last) is not None


def _with_cause(case: Case) -> Choice | None:
    """A failed connection is a cause only if no other rank just ends."""
    is_first = case.causes and not (_ended_quietly(case) and all(map(_is_loss, case.causes)))
    return _first_cause(case.causes, case) if is_first else None


def _never_entered(case: Case) -> Choice | None:
    """A rank did not enter the collective in which the others wait."""
    if case.stalled is None or len(case.stalled.missing) != 1:
        return None
    rank = case.stalled.missing[0]
    mine = [m for m in case.members if m.rank == rank]
    return Choice(mine[-1] if mine else Member.unseen(rank), None, case.stalled.words)


def _has_no_log(case: Case) -> Choice | None:
    """The one rank that has no log: a gap in the ranks, all of which wait."""
    known = {m.rank for m in case.ranks if m.rank is not None}
    absent = set(range(max(known, default=0) + 1)) - known
    if len(known) < 2 or len(absent) != 1 or len(case.waiting) < len(case.ranks):
        return None
    rank = absent.pop()
    words = f"rank {rank} has no log, and all others report {reports_of(case.ranks)}"
    return Choice(Member.unseen(rank), None, words)


def _missed(case: Case) -> Choice | None:
    """The others name the one rank for which they wait."""
    missing = {t.label: t for t in case.said if t.kind == MISSING}
    if len(missing) != 1:
        return None
    (each,) = missing.values()
    return Choice(Member.named(each, case.members), None, each.words)


def _just_ended(case: Case) -> Choice | None:
    quiet = _ended_quietly(case)
    if quiet is None or (case.stalled is not None and case.stalled.all_entered):
        return None
    why = quiet.first.diagnosis if quiet.first is not None else None
    return quiet._replace(why=why) if why and why.klass == CHILD_FAILED else quiet


def _ended_quietly(case: Case) -> Choice | None:
    """The one rank, or the ranks of one host, whose logs end without a reason while others wait."""
    quiet = case.quiet
    waiting = [m for m in case.ranks if _is_loss(m) and m not in quiet]
    if not quiet or not waiting:
        return None
    missing = "an error" if all(m.is_silent for m in quiet) else "a reason"
    reports = f"while others report {reports_of(waiting)}"
    if len(quiet) == 1 and all(f.diagnosis.source == KUBERNETES for f in quiet[0].findings):
        # its log is not known, only its Pod
        return Choice(quiet[0], None, f"the Pod of {quiet[0].label} failed {reports}")
    if len(quiet) == 1:
        words = f"the log of {quiet[0].label} ends without {missing} {reports}"
        return Choice(quiet[0], None, words)
    hosts = {m.host for m in quiet}
    if len(hosts) == 1 and hosts.isdisjoint({"", *(m.host for m in waiting)}):
        logs = f"the logs of {named([m.label for m in quiet])}, all on {hosts.pop()},"
        return Choice(quiet[0], None, f"{logs} end without {missing} {reports}")
    return None


def _is_loss(member: Member) -> bool:
    """Whether a member waited for, or lost, another one, or reports what such a loss looks like."""
    return member.is_waiting or member.diagnosis.klass in _NETWORK


def _is_quiet(member: Member) -> bool:
    """Whether a member's logs show no reason for its end: at most its exit code, or a cut traceback."""
    is_unclear = member.diagnosis.klass in (UNKNOWN, CHILD_FAILED) and not member.is_healthy
    return member.is_silent or is_unclear


def _seen_first(case: Case) -> Choice | None:
    """A launcher saw no earlier failure."""
    for each in case.said:
        if each.first:
            member, why = Member.named(each, case.members), None
            if each.exit_code is not None and not case.waiting:
                why = _by_exit(each, member, case.table)
            is_known = why is not None and why.klass != UNKNOWN
            return Choice(member, why if is_known else None, each.words)
    return None


def _alone(case: Case) -> Choice | None:
    if len(case.waiting) == len(case.ranks) == 1:
        return Choice(case.waiting[0], None, "it is the only log with a failure")
    return None


_ORDER: tuple[Callable[[Case], Choice | None], ...] = (
    _all_finished, _busy_elsewhere, _with_solid_cause, _differs, _died, _left_early, _with_cause, _never_entered,
    _has_no_log, _missed, _just_ended, _seen_first, _alone,
)  # fmt: skip
"""The facts that name the first member, strongest first."""


def is_solid(member: Member) -> bool:
    """Whether a member's class does not also follow from another member's death."""
    return member.diagnosis.klass not in MAY_FOLLOW


def _first_cause(causes: Sequence[Member], case: Case) -> Choice:
    """Of several causes the earliest, if clocks were compared; else the one that the launcher saw first."""
    if len(causes) == 1:
        (cause,) = causes
        ended = [t for f in cause.findings for t in f.testimonies if t.kind == ENDED]
        if cause.rank is not None or len(ended) != 1:
            return Choice(cause, None, against_others(cause, case.members))
        # the rank whose failure a log of all ranks shows; without the log if its node failed
        said, member = ended[0], Member.named(ended[0], ())
        if said.rank is not None and cause.diagnosis.klass not in OF_ALL_RANKS:
            member = cause._replace(label=said.label, rank=said.rank)
        return Choice(member, cause.diagnosis, said.words)
    accused = [Member.named(t, case.members) for t in case.said if t.kind == ENDED and t.first]
    if not any(m in case.members for m in accused) and (above := _by_lines(causes, case.members)):
        file = above.findings[0].file.rpartition("/")[2]
        return Choice(above, None, f"its failure is the first of {len(causes)} in {file}")
    earliest, candidates = earliest_of(causes)
    alike = len({m.diagnosis.klass for m in causes}) == 1
    if alike and (unseen := next((m for m in accused if m not in case.members), None)) is not None:
        words = "the launcher saw it fail first; its log is missing"
        return Choice(unseen, causes[0].diagnosis, words)
    if (seen := next((m for m in accused if m in candidates), None)) is not None:
        return Choice(seen, None, "the launcher saw it fail first")
    if earliest is not None and (len(candidates) == 1 or len({m.host for m in candidates}) == 1):
        return Choice(earliest, None, f"its failure is the earliest of {len(causes)}")
    if len({m.diagnosis.klass for m in candidates}) == 1:
        best = min(candidates, key=lambda m: m.rank if m.rank is not None else 1 << 30)
        return Choice(best, None, f"{len(candidates)} fail alike, in no known order")
    best = max(candidates, key=lambda m: (m.diagnosis.confidence, -(m.rank or 0)))
    return Choice(best, None, "its log has the clearest cause; the times do not decide")


def _by_lines(causes: Sequence[Member], members: Sequence[Member]) -> Member | None:
    """The first of several causes in a file in which their writers' lines alternate."""
    findings = [m.findings[0] for m in causes]
    # what most ranks meet by themselves has no first one
    are_alike = len({m.diagnosis.headline for m in causes}) == 1 and 2 * len(causes) > len(members)
    starts, ends = [f.lines[0] for f in findings], [f.lines[1] for f in findings]
    if len({f.file for f in findings}) > 1 or are_alike or max(starts) >= min(ends):
        return None
    lines = [next((e.line for e in f.diagnosis.evidence if e.line), 0) for f in findings]
    return causes[lines.index(min(lines))] if all(lines) else None


def _by_exit(said: Testimony, member: Member, table: Table) -> Diagnosis:
    diagnosis = diagnose([], table, Circumstances(exit_code=said.exit_code))
    if diagnosis.klass == UNKNOWN and not member.is_healthy:
        diagnosis = member.diagnosis
    evidence = (Evidence("", 0, said.words), *member.diagnosis.evidence[:1])
    return diagnosis._replace(evidence=evidence)
