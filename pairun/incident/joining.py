"""Joins the findings of a job's logs to one incident: who failed first, why, and what followed.

The order of proofs, from strong to weak:

1. A rank whose log shows a cause comes before ranks that only waited for it or lost it.
2. Of several causes the earliest counts, by times whose clocks were compared. Between hosts times closer
   than `SKEW_S` have no order; then the rank that the launcher saw fail first counts.
3. Without a cause: a rank that a launcher saw die by itself; the rank that did not enter the collective
   in which the others wait; a rank whose log ends without a word while the others report a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.incident.clocks import Clocks
from pairun.incident.collectives import Stall, stall
from pairun.incident.findings import Finding
from pairun.incident.gathering import Gathered
from pairun.incident.members import Member, members_of
from pairun.incident.testimony import ENDED, MISSING, Testimony
from pairun.incident.times import seconds_between
from pairun.incident.waitingplaces import OddRank, odd_rank

SKEW_S = 2.0
"""How far the clocks of two hosts may differ if no common step shows by how much."""

SAME_ORDER = "make every rank enter the same collectives in the same order"
"""The advice for ranks that entered different collectives."""

_ABORTED = 134
_LOSSES = frozenset(("network_unreachable", "nccl_system_error", "native_abort"))
"""Classes that a rank also shows when another one dies: they count if no rank shows more."""

_BY_EXIT_ONLY = frozenset(("host_oom", "terminated_sigterm"))
"""Classes of exit codes that a system's log, if there is one, explains better."""

_OWN_ENDINGS = frozenset((0, 1, 2, _ABORTED, 143))
"""Exit codes with which a rank ends after another one failed, too."""


class Consequence(NamedTuple):
    """Members that failed because of the first one.

    Attributes:
        klass: their class.
        headline: theirs, of the first of them.
        members: their labels.
        after_s: how long after the first failure the first of them failed; None if unknown.
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
        decided_by: the fact that names it, in words.
        consequences: what followed in other members.
        members: all of them.
        stall: what the ranks waited for, if that is known.
        unread: what was not read, in words.
    """

    diagnosis: Diagnosis
    first: Member | None
    decided_by: str
    consequences: tuple[Consequence, ...]
    members: tuple[Member, ...]
    stall: Stall | None
    unread: tuple[str, ...]


def join(gathered: Gathered, table: Table, facts: Circumstances | None = None) -> Incident:
    """Join findings to one incident.

    Args:
        gathered: what the files of a job tell; one finding at least.
        table: the rules.
        facts: what is known of the whole job besides its logs.
    """
    members = members_of(gathered.findings)
    clocks = Clocks(members, SKEW_S)
    said = [t for f in gathered.findings for t in f.testimonies]
    silent = [m.rank for m in members if m.rank is not None and m.is_silent]
    states = [s for f in gathered.findings for s in f.states]
    recorded = {s.rank for s in gathered.states}
    stalled = stall([*gathered.states, *(s for s in states if s.rank not in recorded)], silent)
    first, why, decided_by = _first(members, said, stalled, clocks, table)
    whole = gathered.wholes[0].diagnosis if len(gathered.wholes) == 1 else None
    if whole is not None and whole.klass == NONE and stalled is None:
        # attempts follow each other in one file, and only the whole shows that the last one went well
        first, why, decided_by = None, whole, ""
    diagnosis = _diagnosis(first, why, members, gathered.wholes, stalled, table, facts)
    return Incident(
        diagnosis=diagnosis,
        first=first,
        decided_by=decided_by,
        consequences=_consequences(first, members, clocks) if first is not None else (),
        members=tuple(members),
        stall=stalled,
        unread=gathered.unread,
    )


def _first(
    members: Sequence[Member],
    said: Sequence[Testimony],
    stalled: Stall | None,
    clocks: Clocks,
    table: Table,
) -> tuple[Member | None, Diagnosis | None, str]:
    """The member that failed first, its diagnosis if its own log has none, and what decided."""
    causes = [m for m in members if m.is_cause and not m.launcher]
    solid = [m for m in causes if _is_solid(m)]
    by_rank = {m.rank: m for m in members if m.rank is not None}
    if solid and (gone := _gone_before(solid, said, by_rank)) is not None:
        return gone[0], _lost(gone[1]), gone[1].words
    if solid:
        return _first_cause(solid, members, said, clocks)
    for each in said:
        died = each.kind == ENDED and each.exit_code not in (None, *_OWN_ENDINGS)
        if died:
            member = by_rank.get(each.rank) or Member.unseen(each.rank)
            why = member.diagnosis if member.is_cause else _by_exit(each, member, table)
            return member, why, each.words
    if causes:
        return _first_cause(causes, members, said, clocks)
    if stalled is not None and len(stalled.missing) == 1:
        member = by_rank.get(stalled.missing[0]) or Member.unseen(stalled.missing[0])
        return member, None, stalled.words
    places = {
        m.label: m.findings[0].place
        for m in members
        if m.is_waiting and not m.launcher and m.findings[0].place is not None
    }
    if odd := odd_rank(places):
        member = next(m for m in members if m.label == odd.label)
        return member, _by_place(odd, member), odd.words
    if (absent := _absent(members)) is not None:
        return Member.unseen(absent), None, f"rank {absent} never joined the others, and has no log"
    missing = {t.rank: t for t in said if t.kind == MISSING}
    if len(missing) == 1:
        each = next(iter(missing.values()))
        return by_rank.get(each.rank) or Member.unseen(each.rank), None, each.words
    ranks = [m for m in members if not m.launcher]
    silent = [m for m in ranks if m.is_silent]
    waiting = [m for m in ranks if m.is_waiting]
    if len(silent) == 1 and waiting and (stalled is None or not stalled.all_entered):
        return (
            silent[0],
            None,
            f"the log of {silent[0].label} ends without an error while others report a loss",
        )
    if late := _late(waiting, clocks):
        return late, None, f"{late.label} came when the others had stopped waiting"
    for each in said:
        if each.kind == "waiting" or (each.kind == ENDED and each.first):
            member = by_rank.get(each.rank) or Member.unseen(each.rank)
            is_plain = each.exit_code is not None and not any(m.is_waiting for m in members)
            return member, _by_exit(each, member, table) if is_plain else None, each.words
    timed = clocks.earliest(waiting) if len(waiting) > 1 and stalled is None else None
    if timed is not None:
        return timed, None, f"{timed.label} reports the loss first"
    if len(waiting) == 1 and len(ranks) == 1:
        return waiting[0], None, "it is the only log with a failure"
    return None, None, ""


def _gone_before(
    causes: Sequence[Member], said: Sequence[Testimony], by_rank: Mapping[int, Member]
) -> tuple[Member, Testimony] | None:
    """A rank whose log ended without a word before the causes, and which the coordinator lost."""
    for each in said:
        member = by_rank.get(each.rank)
        if (
            each.kind == MISSING
            and member is not None
            and member.is_silent
            and member.last is not None
        ):
            last = member.last
            if all(m.at is not None and seconds_between(last, m.at) > -1 for m in causes):
                return member, each
    return None


def _lost(said: Testimony) -> Diagnosis:
    """The diagnosis of a rank that the others lost, and whose log says nothing."""
    kind = CLASSES["peer_lost"]
    return Diagnosis(
        "peer_lost", kind.fault, kind.retry, 0.7, said.words, kind.advice,
        (Evidence("", 0, said.words),), {}, (), "",
    )  # fmt: skip


def _absent(members: Sequence[Member]) -> int | None:
    """The one rank that never joined: by the number of ranks that the others expect, or rank 0.

    Rank 0 is where the others connect to.
    """
    expected = {f.expected_ranks for m in members for f in m.findings} - {None}
    ranks = [m for m in members if m.rank is not None and not m.launcher]
    known = {m.rank for m in ranks}
    if len(expected) == 1:
        absent = [rank for rank in range(expected.pop() or 0) if rank not in known]
        return absent[0] if len(absent) == 1 and known else None
    others = set(range(1, len(ranks) + 1))
    return 0 if len(ranks) > 1 and known == others and all(m.is_waiting for m in ranks) else None


def _late(waiting: Sequence[Member], clocks: Clocks) -> Member | None:
    """The one rank that finds connections closed while all others timed out before."""
    lost = [m for m in waiting if m.diagnosis.klass == "peer_lost"]
    if len(waiting) < 3 or len(lost) != 1:
        return None
    delays = [clocks.delay(m, lost[0]) for m in waiting if m is not lost[0]]
    return lost[0] if all(d is None or d >= 0 for d in delays) else None


def _is_solid(member: Member) -> bool:
    return member.diagnosis.klass not in _LOSSES


def _first_cause(
    causes: Sequence[Member],
    members: Sequence[Member],
    said: Sequence[Testimony],
    clocks: Clocks,
) -> tuple[Member, Diagnosis | None, str]:
    if len(causes) == 1:
        others = any(m.is_waiting for m in members if m is not causes[0])
        why = "the others only report a loss" if others else "no other log shows a failure"
        return causes[0], None, why
    accused = [t.rank for t in said if t.kind == ENDED and t.first]
    earliest = clocks.earliest(causes)
    candidates = clocks.unordered_with(earliest, causes) if earliest is not None else list(causes)
    alike = len({m.diagnosis.klass for m in causes}) == 1
    known = {m.rank for m in members}
    if alike and (unseen := next((r for r in accused if r not in known), None)) is not None:
        return (
            Member.unseen(unseen),
            causes[0].diagnosis,
            "the launcher saw it fail first; its log is missing",
        )
    for rank in accused:
        if member := next((m for m in candidates if m.rank == rank), None):
            return member, None, "the launcher saw it fail first"
    if earliest is not None and (len(candidates) == 1 or clocks.is_ordered(earliest, candidates)):
        return earliest, None, f"its failure is the earliest of {len(causes)}"
    best = max(candidates, key=lambda m: (m.diagnosis.confidence, -(m.rank or 0)))
    same = len({m.diagnosis.klass for m in candidates}) == 1
    if same:
        best = min(candidates, key=lambda m: m.rank if m.rank is not None else 1 << 30)
        return best, None, f"{len(candidates)} fail alike, in no known order"
    return best, None, "its log has the clearest cause; the times do not decide"


def _by_exit(said: Testimony, member: Member, table: Table) -> Diagnosis:
    diagnosis = diagnose([], table, Circumstances(exit_code=said.exit_code))
    evidence = (Evidence("", 0, said.words),)
    return diagnosis._replace(evidence=(*evidence, *member.diagnosis.evidence[:1]))


def _diagnosis(
    first: Member | None,
    why: Diagnosis | None,
    members: Sequence[Member],
    wholes: Sequence[Finding],
    stalled: Stall | None,
    table: Table,
    facts: Circumstances | None,
) -> Diagnosis:
    """Why the job failed."""
    if why is not None and why.klass not in _BY_EXIT_ONLY:
        return why
    if first is not None and first.is_cause:
        # a file in which all ranks write is judged as a whole: a cause may lack its rank's prefix
        whole = next((w.diagnosis for w in wholes if w.is_cause), None)
        return whole if whole is not None and len(wholes) == 1 else first.diagnosis
    reported = [m.diagnosis for m in members if m.launcher and m.is_cause and _is_solid(m)]
    if first is not None and reported:
        # such as the kernel's log beside the log of a rank that the kernel killed
        return max(reported, key=lambda d: d.confidence)
    if why is not None:
        return why
    if stalled is not None and stalled.mismatch:
        return _by_stall(stalled)
    causes = [w.diagnosis for w in wholes if w.is_cause]
    causes += [m.diagnosis for m in members if m.is_cause and not m.launcher]
    waiting = _by_majority([m.diagnosis for m in members if m.is_waiting and not m.launcher])
    launchers = [m.diagnosis for m in members if m.diagnosis.klass not in (NONE, UNKNOWN)]
    unknown = [m.diagnosis for m in members if m.diagnosis.klass == UNKNOWN]
    for group in (causes, waiting, launchers, unknown):
        if group:
            best = max(group, key=lambda d: d.confidence)
            break
    else:
        if stalled is not None:
            return _by_stall(stalled)
        healthy = [m.diagnosis for m in members if not m.launcher] or [m.diagnosis for m in members]
        best = min(healthy, key=lambda d: d.confidence)
    if best.klass in (NONE, UNKNOWN) and facts is not None and facts.exit_code is not None:
        return diagnose([], table, facts)
    if stalled is not None and best.klass not in (NONE, UNKNOWN):
        return best._replace(evidence=(Evidence("", 0, stalled.words), *best.evidence))
    return best


def _by_place(odd: OddRank, member: Member) -> Diagnosis:
    """The diagnosis of a rank that waits in another collective than the others."""
    kind = CLASSES["hang"]
    if not odd.other_call:
        return member.diagnosis._replace(
            evidence=(Evidence("", 0, odd.words), *member.diagnosis.evidence)
        )
    return Diagnosis(
        "hang", "user", "after_fix", 0.8, kind.meaning,
        SAME_ORDER,
        (Evidence("", 0, odd.words), *member.diagnosis.evidence[:1]), {}, (), "",
    )  # fmt: skip


def _by_majority(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Those of the most frequent class: when a rank dies, most others see its connections close."""
    counts = Counter(d.klass for d in diagnoses)
    return [d for d in diagnoses if counts[d.klass] == max(counts.values())]


def _by_stall(stalled: Stall) -> Diagnosis:
    """The diagnosis of ranks that wait and report nothing but what flight recorders hold."""
    kind = CLASSES["nccl_timeout"]
    fault, retry, advice = kind.fault, kind.retry, kind.advice
    if stalled.mismatch:
        fault, retry, advice = "user", "after_fix", SAME_ORDER
    return Diagnosis(
        "nccl_timeout", fault, retry, 0.8, stalled.words, advice,
        (Evidence("", 0, stalled.words),), {}, (), "",
    )  # fmt: skip


def _consequences(
    first: Member, members: Sequence[Member], clocks: Clocks
) -> tuple[Consequence, ...]:
    groups: dict[str, list[Member]] = {}
    for member in members:
        if (
            member is not first
            and not member.launcher
            and member.diagnosis.klass not in (NONE, UNKNOWN)
        ):
            groups.setdefault(member.diagnosis.klass, []).append(member)
    consequences = []
    for klass, group in groups.items():
        delays = [d for m in group if (d := clocks.delay(first, m)) is not None]
        labels = tuple(
            m.label for m in sorted(group, key=lambda m: (m.rank is None, m.rank, m.label))
        )
        after_s = round(max(0.0, min(delays)), 3) if delays else None
        consequences.append(Consequence(klass, group[0].diagnosis.headline, labels, after_s))
    return tuple(sorted(consequences, key=lambda c: -len(c.members)))
