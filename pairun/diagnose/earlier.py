"""Reduces the weight of what earlier attempts show: the end of the last attempt decides."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.diagnose import tracebacks
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.hits import CERTAIN, FIRM, Hit
from pairun.diagnose.lines import Log
from pairun.diagnose.segments import Mark, Segment
from pairun.diagnose.surroundings import ERROR_LEVEL, TROUBLE, Surroundings, is_progress

_EARLIER = 35
"""How much less an earlier attempt weighs if the last one shows no cause."""

_HEALED = 90
"""How much less an earlier attempt weighs if the last one shows no failure."""

_TAIL_LINES = 5
_EFFECTS = frozenset(("child_failed", "terminated_sigterm"))
"""Classes that say only that an attempt ended."""

_DAMAGED = frozenset(("gpu_ecc_error", "gpu_lost"))
"""Classes of GPUs that stay unusable until someone resets them."""

_UNUSABLE = frozenset(("device_busy", "gpu_not_available"))
"""Classes that the next attempt shows on such a GPU."""


def failures(log: Log, hits: Sequence[Hit], facts: Sequence[Fact]) -> list[Mark]:
    """Marks where an attempt may have failed."""
    lines = [hit.line for hit in hits if hit.score >= CERTAIN]
    reported = [fact.at for fact in facts if fact.weight >= CERTAIN]
    lines += [line for at in reported for line in log.after(at - 1, 1)]
    ends = [Mark(line.at, "raised", source=line.source) for line in lines]
    known = {line.at for line in lines}
    return [*ends, *(Mark(at, "raised") for at in reported if at not in known)]


def has_ranks(hits: Sequence[Hit]) -> bool:
    """Whether several ranks or workers write to the log."""
    return len({hit.line.source for hit in hits if hit.line.source}) > 1


def ends_well(log: Log, last: Segment, failed_at: Sequence[Mark]) -> bool:
    """Whether the last attempt shows no failure.

    A job that starts anew needs no proof of success: its program may still run. After a restart in
    place the log may be cut off, so progress or a report of success is needed.
    """
    if any(mark.at >= last.start for mark in failed_at) or tracebacks.is_open(log):
        return False
    if Surroundings(log).succeeded_at >= last.start:
        return True
    tail = [line for line in log.tail(_TAIL_LINES) if line.at >= last.start]
    troubles = [x for x in tail if TROUBLE.search(x.text) or ERROR_LEVEL.search(x.text)]
    if not all(tracebacks.is_ignored(log, line) for line in troubles):
        return False
    return last.anew or any(map(is_progress, tail))


def of_last_attempt(
    hits: Sequence[Hit], facts: Sequence[Fact], attempts: Sequence[Segment], *, went_well: bool
) -> tuple[list[Hit], list[Fact]]:
    """Reduce the weights of hits and facts from earlier attempts.

    Args:
        hits: of the log.
        facts: of the log.
        attempts: of the log.
        went_well: whether the last attempt ends without a failure.
    """
    if len(attempts) < 2:
        return list(hits), list(facts)
    start = attempts[-1].start
    last = [
        h
        for h in hits
        if h.line.at >= start and h.rule.role != "consequence" and h.rule.klass not in _EFFECTS
    ]
    reported = [f for f in facts if f.at >= start and f.klass not in _EFFECTS]
    cause = max([*(h.score for h in last), *(f.weight for f in reported)], default=0)
    highest = cause - 1 if cause >= CERTAIN else 98
    loss = _HEALED if went_well else _EARLIER
    damaged = [] if reported else _damage(hits, last, start)

    def weighed(at: int, weight: int) -> int:
        return weight if not 0 <= at < start else min(weight - loss, highest)

    return (
        [
            hit._replace(score=cause + 1 if hit in damaged else weighed(hit.line.at, hit.score))
            for hit in hits
        ],
        [fact._replace(weight=weighed(fact.at, fact.weight)) for fact in facts],
    )


def _damage(hits: Sequence[Hit], last: Sequence[Hit], start: int) -> list[Hit]:
    """The damage of a GPU that ended the attempt before, and explains why the last one could not use it.

    Args:
        hits: of the log.
        last: those of the last attempt that may be its cause.
        start: offset of the last attempt.
    """
    decisive = max(last, key=lambda hit: hit.score, default=None)
    if decisive is None or decisive.score < CERTAIN or decisive.rule.klass not in _UNUSABLE:
        return []
    before = [h for h in hits if h.line.at < start and h.score >= FIRM]
    end = max((h.line.at for h in before), default=-1)
    return [
        hit
        for hit in before
        if hit.line.at == end
        and hit.rule.klass in _DAMAGED
        and hit.line.source == decisive.line.source
    ]
