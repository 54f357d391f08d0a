"""Finds the member of a job that failed first.

A member's logs show one of these: a cause of its own (`Member.is_cause`); a loss, of a member that it
waited for or was connected to (`is_loss`); where it hangs (`Member.stack`); or no reason at all
(`is_quiet`). Besides, logs show when they end and how far the member got, and name other members
(`Testimony`, `Stall`). Each function of `_ORDER` looks at one of these; the first that decides counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from pairun.diagnose.absence import (
    Choice,
    came_late,
    ended_quietly,
    is_loss,
    left_early,
    without_log,
)
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.collectives import Stall
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.members import Clocks, Member, against_others
from pairun.diagnose.signals import SLURM
from pairun.diagnose.stacks import OddRank, odd_rank, odd_stack
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import ENDED, MISSING, Testimony
from pairun.diagnose.weighing import diagnose
from pairun.diagnose.writerlog import CHILD_FAILED, Finding

SAME_ORDER = "make every rank enter the same collectives in the same order"
"""The advice for ranks that entered different collectives."""

HANG = "hang"
"""The class of a rank that stops without an error."""

OF_ALL_RANKS = frozenset(("node_stuck", "terminated_sigterm"))
"""Classes of what stops all ranks at once: none of them fails first."""

_DIFFERENT = "collectives-differ"
"""The rule for what each rank reports when one enters another collective: it does not show which."""

_ABORTED, _STOPPED, _SURE = 134, "terminated_sigterm", 0.85
MAY_FOLLOW = frozenset(("network_unreachable", "nccl_system_error", "native_abort"))
"""Classes that ranks also show when another rank dies: used if no rank shows a better one."""

_OWN_ENDINGS = frozenset((None, 0, 1, 2, _ABORTED, 143))
"""Exit codes that a rank may also have after another one failed."""


class Case:
    """What is known of a job.

    Args:
        members: of the job.
        said: what their logs report about ranks.
        stalled: what the ranks waited for, if known.
        clocks: compares the members' times.
        table: the rules.
        wholes: of each file in which several writers' lines alternate, the diagnosis of all of it.
    """

    def __init__(
        self,
        members: Sequence[Member],
        said: Sequence[Testimony],
        stalled: Stall | None,
        clocks: Clocks,
        table: Table,
        wholes: Sequence[Finding] = (),
    ) -> None:
        self.members, self.said, self.stalled, self.clocks = members, said, stalled, clocks
        self.table, self.wholes = table, [whole.diagnosis for whole in wholes]
        self.ranks = [m for m in members if not m.launcher]
        causes = [m for m in self.ranks if m.is_cause]
        self.differing = [m for m in causes if m.diagnosis.rule == _DIFFERENT]
        self.stacks = {m.label: m.stack for m in self.ranks if m.stack is not None}
        self.causes = [m for m in causes if m not in self.differing]
        self.all_hang = all(m.diagnosis.klass == HANG for m in self.causes)
        if self.all_hang and len(self.stacks) > 1:  # each only shows where it waits
            self.causes = [m for m in self.causes if m.stack is None]
        self.waiting = [m for m in self.ranks if m.is_waiting]

    @cached_property
    def solid(self) -> list[Member]:
        """The members with a cause that does not also follow from another member's death."""
        return [m for m in self.causes if is_solid(m)]

    def named(self, said: Testimony) -> Member:
        """The member that a report names."""
        return Member.named(said, self.members)

    def labelled(self, label: str) -> Member:
        """The member with a label."""
        return next(m for m in self.members if m.label == label)


def first_member(case: Case) -> Choice:
    """The member that failed first."""
    return next((choice for each in _ORDER if (choice := each(case)) is not None), Choice())


def _stopped_by_slurm(case: Case) -> Choice | None:
    """Slurm stopped the whole job, such as a preemption, and no rank had failed before."""
    shown = list(case.wholes)
    if not any(m.is_cause and is_solid(m) for m in case.ranks):
        shown += [m.diagnosis for m in case.members if m.launcher]
    stops = (d for d in shown if d.klass == _STOPPED and d.source == SLURM)
    stop = next((d for d in stops if d.confidence > _SURE), None)
    return Choice(None, stop) if stop is not None else None


def _all_finished(case: Case) -> Choice | None:
    ranks = [f for m in case.ranks for f in m.findings]
    if len(ranks) > 1 and all(f.finished for f in ranks) and case.stalled is None:
        return Choice(None, finished())
    return None


def _busy_elsewhere(case: Case) -> Choice | None:
    """A rank does something else while the others wait for it, by the stacks."""
    if not case.all_hang or (odd := odd_stack(case.stacks)) is None:
        return None
    member = case.labelled(odd.label)
    return Choice(member, _hung(odd.words, member), odd.words)


def _whole_succeeded(case: Case) -> Choice | None:
    """One file holds several attempts; only all of it shows that the last one succeeded."""
    is_none = len(case.wholes) == 1 and case.wholes[0].klass == NONE
    return Choice(None, case.wholes[0]) if is_none and case.stalled is None else None


def _with_solid_cause(case: Case) -> Choice | None:
    return _first_cause(case.solid, case) if case.solid else None


def _differs(case: Case) -> Choice | None:
    """Ranks that report different collectives name no first one."""
    return Choice(None, case.differing[0].diagnosis) if case.differing else None


def _died(case: Case) -> Choice | None:
    """A launcher saw a rank die by itself."""
    for each in case.said:
        if each.kind == ENDED and each.exit_code not in _OWN_ENDINGS:
            member = case.named(each)
            why = member.diagnosis if member.is_cause else _by_exit(each, member, case.table)
            return Choice(member, why, each.words)
    return None


def _left(case: Case) -> Choice | None:
    """A rank ended by itself, as its log says."""
    return None if case.causes else left_early(case.members)


def _with_cause(case: Case) -> Choice | None:
    """A failed connection is a cause only if no other rank just ends."""
    is_first = case.causes and not (ended_quietly(case.members) and all(map(is_loss, case.causes)))
    return _first_cause(case.causes, case) if is_first else None


def _never_entered(case: Case) -> Choice | None:
    """A rank did not enter the collective in which the others wait."""
    if case.stalled is None or len(case.stalled.missing) != 1:
        return None
    rank = case.stalled.missing[0]
    mine = [m for m in case.members if m.rank == rank]
    return Choice(mine[-1] if mine else Member.unseen(rank), None, case.stalled.words)


def _waits_elsewhere(case: Case) -> Choice | None:
    """A rank waits at another line of the code than all others."""
    places = {m.label: place for m in case.waiting if (place := m.findings[0].place) is not None}
    if ended_quietly(case.members) is not None or (other := odd_rank(places)) is None:
        return None
    member = case.labelled(other.label)
    return Choice(member, _by_place(other, member), other.words)


def _has_no_log(case: Case) -> Choice | None:
    return without_log(case.members)


def _missed(case: Case) -> Choice | None:
    """The others name the one rank for which they wait."""
    missing = {t.label: t for t in case.said if t.kind == MISSING}
    if len(missing) != 1:
        return None
    (each,) = missing.values()
    return Choice(case.named(each), None, each.words)


def _just_ended(case: Case) -> Choice | None:
    quiet = ended_quietly(case.members)
    if quiet is None or (case.stalled is not None and case.stalled.all_entered):
        return None
    why = quiet.first.diagnosis if quiet.first is not None else None
    return quiet._replace(why=why) if why and why.klass == CHILD_FAILED else quiet


def _came_late(case: Case) -> Choice | None:
    return came_late(case.waiting, case.clocks)


def _seen_first(case: Case) -> Choice | None:
    """A launcher saw no earlier failure."""
    for each in case.said:
        if each.kind == "waiting" or (each.kind == ENDED and each.first):
            member, why = case.named(each), None
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
    _stopped_by_slurm, _all_finished, _busy_elsewhere, _whole_succeeded, _with_solid_cause, _differs, _died,
    _left, _with_cause, _never_entered, _waits_elsewhere, _has_no_log, _missed, _just_ended, _came_late,
    _seen_first, _alone,
)  # fmt: skip
"""The facts that name the first member, strongest first."""


def finished() -> Diagnosis:
    """The diagnosis of a job whose ranks all succeeded."""
    return of_class(NONE, 0.9)


def is_solid(member: Member) -> bool:
    """Whether a member's class does not also follow from another member's death."""
    return member.diagnosis.klass not in MAY_FOLLOW


def _as_said(member: Member, said: Testimony) -> Member:
    """The rank whose failure a log of all ranks shows; without the log if its node failed."""
    if member.diagnosis.klass in OF_ALL_RANKS or said.rank is None:
        return Member.named(said, ())
    return member._replace(label=said.label, rank=said.rank)


def _first_cause(causes: Sequence[Member], case: Case) -> Choice:
    """Of several causes the earliest, if clocks were compared; else the one that the launcher saw first."""
    if len(causes) == 1:
        ended = [t for f in causes[0].findings for t in f.testimonies if t.kind == ENDED]
        if causes[0].rank is None and len(ended) == 1:
            return Choice(_as_said(causes[0], ended[0]), causes[0].diagnosis, ended[0].words)
        return Choice(causes[0], None, against_others(causes[0], case.members))
    accused = [case.named(t) for t in case.said if t.kind == ENDED and t.first]
    if not any(m in case.members for m in accused) and (above := _by_lines(causes, case.members)):
        file = above.findings[0].file.rpartition("/")[2]
        return Choice(above, None, f"its failure is the first of {len(causes)} in {file}")
    earliest = case.clocks.earliest(causes)
    candidates = list(causes)
    if earliest is not None:
        candidates = case.clocks.unordered_with(earliest, causes)
    alike = len({m.diagnosis.klass for m in causes}) == 1
    if alike and (unseen := next((m for m in accused if m not in case.members), None)) is not None:
        why = causes[0].diagnosis
        return Choice(unseen, why, "the launcher saw it fail first; its log is missing")
    if member := next((m for m in accused if m in candidates), None):
        return Choice(member, None, "the launcher saw it fail first")
    if earliest and (len(candidates) == 1 or case.clocks.is_ordered(earliest, candidates)):
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
    if len({f.file for f in findings}) > 1 or are_alike:
        return None
    if max(f.lines[0] for f in findings) >= min(f.lines[1] for f in findings):
        return None
    lines = [next((e.line for e in f.diagnosis.evidence if e.line), 0) for f in findings]
    return causes[lines.index(min(lines))] if all(lines) else None


def _by_exit(said: Testimony, member: Member, table: Table) -> Diagnosis:
    diagnosis = diagnose([], table, Circumstances(exit_code=said.exit_code))
    if diagnosis.klass == UNKNOWN and not member.is_healthy:
        diagnosis = member.diagnosis
    evidence = (Evidence("", 0, said.words),)
    return diagnosis._replace(evidence=(*evidence, *member.diagnosis.evidence[:1]))


def _hung(words: str, member: Member) -> Diagnosis:
    """The diagnosis of a rank that did something else while the others waited for it."""
    where = () if member.stack is None else (member.stack.shown,)
    return of_class(HANG, 0.8, *where, Evidence("", 0, words), *member.diagnosis.evidence[:1])


def _by_place(odd: OddRank, member: Member) -> Diagnosis:
    """The diagnosis of a rank that waits in another collective than the others."""
    shown, where = member.diagnosis, Evidence("", 0, odd.words)
    if not odd.other_call:
        return shown._replace(evidence=(*shown.evidence, where))
    hang = of_class(HANG, 0.8, *shown.evidence[:1], where)
    return hang._replace(fault="user", retry="after_fix", advice=SAME_ORDER)
