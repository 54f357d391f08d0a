"""Finds the member of a job that failed first.

A member's logs show one of these: a cause of its own (`Member.is_cause`); a loss, of a member that it
waited for or was connected to (`is_loss`); where it hangs (`Member.stack`); or no reason at all
(`is_quiet`). Besides, logs show when they end and how far the member got, and name other members
(`Testimony`, `Stall`). The proofs, strongest first:

1. A rank with a cause comes before ranks with losses. What a rank shows that is no more than a
   hang or a failed connection is a cause only if no other rank is busy elsewhere, or quiet. Ranks
   that report different collectives name no first one.
2. Of several causes the earliest counts, if their clocks were compared. Close times on different
   hosts have no order; then the rank that the launcher saw fail first counts.
3. Without a cause: the rank whose stack differs while the others wait for it; a rank that a launcher
   saw die by itself; the rank that did not enter the collective in which the others wait; the one
   that waits at another line, if no rank is quiet; the rank without a log; the quiet rank among
   ranks with losses; the rank that came late.
"""

from __future__ import annotations

from collections.abc import Sequence

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.incident.absence import (
    came_late,
    ended_quietly,
    fell_silent,
    is_loss,
    is_quiet,
    left_early,
    without_log,
)
from pairun.incident.clocks import Clocks
from pairun.incident.collectives import Stall
from pairun.incident.findings import CHILD_FAILED
from pairun.incident.members import Member
from pairun.incident.otherlogs import against_others
from pairun.incident.spans import SKEW_S
from pairun.incident.stacks import odd_stack
from pairun.incident.testimony import ENDED, MISSING, Testimony
from pairun.incident.times import seconds_between
from pairun.incident.waitingplaces import OddRank, odd_rank

SAME_ORDER = "make every rank enter the same collectives in the same order"
"""The advice for ranks that entered different collectives."""

HANG = "hang"
"""The class of a rank that stops without an error."""

OF_ALL_RANKS = frozenset(("node_stuck", "terminated_sigterm"))
"""Classes of what stops all ranks at once: none of them fails first."""

_DIFFERENT = "collectives-differ"
"""The rule for what each rank reports when one enters another collective: it does not show which."""

_ABORTED = 134
MAY_FOLLOW = frozenset(("network_unreachable", "nccl_system_error", "native_abort"))
"""Classes that ranks also show when another rank dies: used if no rank shows a better one."""

_OWN_ENDINGS = frozenset((0, 1, 2, _ABORTED, 143))
"""Exit codes that a rank may also have after another one failed."""


def first_member(
    members: Sequence[Member],
    said: Sequence[Testimony],
    stalled: Stall | None,
    clocks: Clocks,
    table: Table,
) -> tuple[Member | None, Diagnosis | None, str]:
    """The member that failed first.

    Args:
        members: of the job.
        said: what their logs report about ranks.
        stalled: what the ranks waited for, if known.
        clocks: compares the members' times.
        table: the rules.

    Returns:
        The member, None if no fact names one; its diagnosis if its own log has none; the deciding
        fact for people.
    """
    causes = [m for m in members if m.is_cause and not m.launcher]
    differing = [m for m in causes if m.diagnosis.rule == _DIFFERENT]
    causes = [m for m in causes if m not in differing]
    if all(m.diagnosis.klass == HANG for m in causes):
        stacks = {m.label: m.stack for m in members if not m.launcher and m.stack is not None}
        if odd := odd_stack(stacks):
            member = next(m for m in members if m.label == odd.label)
            return member, _hung(odd.words, member), odd.words
        if len(stacks) > 1:  # each only shows where it waits
            causes = [m for m in causes if m.stack is None]
    solid = [m for m in causes if is_solid(m)]
    by_rank = {m.rank: m for m in members if m.rank is not None}
    if solid and (gone := _gone_before(solid, said, members)) is not None:
        return gone[0], _lost(gone[1]), gone[1].words
    if solid and (before := _ended_before(solid, said, members)) is not None:
        return before[0], before[0].diagnosis, before[1].words
    if solid:
        return _first_cause(solid, members, said, clocks)
    if differing:
        return None, differing[0].diagnosis, ""
    for each in said:
        died = each.kind == ENDED and each.exit_code not in (None, *_OWN_ENDINGS)
        if died:
            member = Member.named(each, members)
            why = member.diagnosis if member.is_cause else _by_exit(each, member, table)
            return member, why, each.words
    if not causes and (silent := fell_silent(members)) is not None:
        return silent.member, None, silent.words
    if not causes and (left := left_early(members)) is not None:
        return left.member, None, left.words
    quiet = ended_quietly(members)
    if causes and (quiet is None or not all(map(is_loss, causes))):
        return _first_cause(causes, members, said, clocks)
    if stalled is not None and len(stalled.missing) == 1:
        member = by_rank.get(stalled.missing[0]) or Member.unseen(stalled.missing[0])
        return member, None, stalled.words
    places = {
        m.label: m.findings[0].place
        for m in members
        if m.is_waiting and not m.launcher and m.findings[0].place is not None
    }
    if quiet is None and (other := odd_rank(places)):
        member = next(m for m in members if m.label == other.label)
        return member, _by_place(other, member), other.words
    if (absent := without_log(members)) is not None:
        return absent.member, None, absent.words
    missing = {t.label: t for t in said if t.kind == MISSING}
    if len(missing) == 1:
        each = next(iter(missing.values()))
        return Member.named(each, members), None, each.words
    ranks = [m for m in members if not m.launcher]
    waiting = [m for m in ranks if m.is_waiting]
    unexplained = [
        t for t in said if t.exit_code is not None and _is_unexplained(Member.named(t, members))
    ]
    if waiting and len({t.label for t in unexplained}) == 1:
        each = unexplained[0]
        return Member.named(each, members), None, each.words
    if quiet is not None and (stalled is None or not stalled.all_entered):
        is_failed = quiet.member.diagnosis.klass == CHILD_FAILED
        return quiet.member, quiet.member.diagnosis if is_failed else None, quiet.words
    if late := came_late(waiting, clocks):
        return late, None, f"{late.label} came when the others had stopped waiting"
    for each in said:
        if each.kind == "waiting" or (each.kind == ENDED and each.first):
            member = Member.named(each, members)
            by_exit = _by_exit(each, member, table) if each.exit_code is not None else None
            is_plain = not any(m.is_waiting for m in ranks)
            is_plain = is_plain and by_exit is not None and by_exit.klass != UNKNOWN
            return member, by_exit if is_plain else None, each.words
    if len(waiting) == 1 and len(ranks) == 1:
        return waiting[0], None, "it is the only log with a failure"
    return None, None, ""


def _gone_before(
    causes: Sequence[Member], said: Sequence[Testimony], members: Sequence[Member]
) -> tuple[Member, Testimony] | None:
    """A rank that the coordinator lost, and whose log ended without an error before the causes."""
    for each in said:
        member = Member.named(each, members)
        if each.kind == MISSING and member.is_silent and member.last is not None:
            last = member.last
            if all(m.at is not None and seconds_between(last, m.at) > -1 for m in causes):
                return member, each
    return None


def _ended_before(
    causes: Sequence[Member], said: Sequence[Testimony], members: Sequence[Member]
) -> tuple[Member, Testimony] | None:
    """A rank that ended by itself, as Kubernetes recorded, clearly before the causes."""
    for each in said:
        member = Member.named(each, members)
        if not (each.first and each.by_system and member.diagnosis.klass == CHILD_FAILED):
            continue
        end = member.last
        if end is not None and all(
            m.last is not None and seconds_between(end, m.at or m.last) > SKEW_S for m in causes
        ):
            return member, each
    return None


def _lost(said: Testimony) -> Diagnosis:
    """The diagnosis of a rank that the others lost and whose log shows nothing."""
    kind = CLASSES["peer_lost"]
    return Diagnosis(
        "peer_lost", kind.fault, kind.retry, 0.7, said.words, kind.advice,
        (Evidence("", 0, said.words),), {}, (), "",
    )  # fmt: skip


def is_solid(member: Member) -> bool:
    """Whether a member's class does not also follow from another member's death."""
    return member.diagnosis.klass not in MAY_FOLLOW


def _as_said(member: Member, said: Testimony) -> Member:
    """The rank whose failure a log of all ranks shows; without the log if its node failed."""
    if member.diagnosis.klass in OF_ALL_RANKS or said.rank is None:
        return Member.named(said, ())
    return member._replace(label=said.label, rank=said.rank)


def _first_cause(
    causes: Sequence[Member],
    members: Sequence[Member],
    said: Sequence[Testimony],
    clocks: Clocks,
) -> tuple[Member, Diagnosis | None, str]:
    if len(causes) == 1:
        ended = [t for f in causes[0].findings for t in f.testimonies if t.kind == ENDED]
        if causes[0].rank is None and len(ended) == 1:
            return _as_said(causes[0], ended[0]), causes[0].diagnosis, ended[0].words
        return causes[0], None, against_others(causes[0], members)
    accused = [Member.named(t, members) for t in said if t.kind == ENDED and t.first]
    if not any(m in members for m in accused) and (above := _by_lines(causes, members)) is not None:
        file = above.findings[0].file.rpartition("/")[2]
        return above, None, f"its failure is the first of {len(causes)} in {file}"
    earliest = clocks.earliest(causes)
    candidates = clocks.unordered_with(earliest, causes) if earliest is not None else list(causes)
    alike = len({m.diagnosis.klass for m in causes}) == 1
    if alike and (unseen := next((m for m in accused if m not in members), None)) is not None:
        return unseen, causes[0].diagnosis, "the launcher saw it fail first; its log is missing"
    for member in accused:
        if member in candidates:
            return member, None, "the launcher saw it fail first"
    if earliest is not None and (len(candidates) == 1 or clocks.is_ordered(earliest, candidates)):
        return earliest, None, f"its failure is the earliest of {len(causes)}"
    best = max(candidates, key=lambda m: (m.diagnosis.confidence, -(m.rank or 0)))
    same = len({m.diagnosis.klass for m in candidates}) == 1
    if same:
        best = min(candidates, key=lambda m: m.rank if m.rank is not None else 1 << 30)
        return best, None, f"{len(candidates)} fail alike, in no known order"
    return best, None, "its log has the clearest cause; the times do not decide"


def _is_unexplained(member: Member) -> bool:
    """Whether the logs show no reason for the end of a rank."""
    return not member.findings or is_quiet(member)


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
    kind = CLASSES[HANG]
    where = () if member.stack is None else (member.stack.shown,)
    evidence = (*where, Evidence("", 0, words), *member.diagnosis.evidence[:1])
    return Diagnosis(
        HANG, kind.fault, kind.retry, 0.8, kind.meaning, kind.advice, evidence, {}, (), ""
    )


def _by_place(odd: OddRank, member: Member) -> Diagnosis:
    """The diagnosis of a rank that waits in another collective than the others."""
    kind = CLASSES[HANG]
    if not odd.other_call:
        return member.diagnosis._replace(
            evidence=(*member.diagnosis.evidence, Evidence("", 0, odd.words))
        )
    return Diagnosis(
        HANG, "user", "after_fix", 0.8, kind.meaning,
        SAME_ORDER,
        (*member.diagnosis.evidence[:1], Evidence("", 0, odd.words)), {}, (), "",
    )  # fmt: skip
