"""What one log shows: rule hits, facts and attempts; found in one pass."""

from __future__ import annotations

from typing import NamedTuple

from pairun.diagnose.earlier import ends_well, failures, has_ranks, of_last_attempt
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.facts.reading import facts_of
from pairun.diagnose.hits import CERTAIN, FIRM, SHELL_CLASSES, Hit, HitSearch, echoes
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.searchlimit import SearchLimit
from pairun.diagnose.segments import (
    Mark,
    Segment,
    cut,
    mark_of,
    phases,
    recurrences,
    relaunches,
    setbacks,
)
from pairun.diagnose.surroundings import is_answered, is_programs_exception, is_shells
from pairun.diagnose.table import Table

_SPARE_S = 1.0
_SHUTDOWN_BYTES, _LOSS = 1 << 14, 25
_OF_LAUNCHER = "child_failed"
_STOPS = frozenset(("terminated_sigterm", "time_limit"))
_TORN_DOWN = frozenset(
    (
        "cancelled_by_user",
        "storage_io_error",
        "network_unreachable",
        "nccl_system_error",
        "peer_lost",
    )
)
"""Classes that programs also report while they are stopped."""


class Findings(NamedTuple):
    """What one log shows.

    Attributes:
        log: the log.
        hits: lines that rules match.
        facts: reports of systems in it.
        attempts: its attempts, in order.
    """

    log: Log
    hits: list[Hit]
    facts: list[Fact]
    attempts: list[Segment]


def findings_in(log: Log, table: Table, limit: SearchLimit, *, failed: bool) -> Findings:
    """Search one log.

    Args:
        log: the log.
        table: the rules.
        limit: when to stop searching.
        failed: whether the job is known to have failed.
    """
    search = HitSearch(log, table, failed=failed)
    hits: list[Hit] = []
    facts: list[Fact] = []
    marks: list[Mark] = []
    for start, end in table.lines(log.data, limit):
        if limit.is_over(_SPARE_S):
            break
        line = parse(start, log.data[start:end])
        if mark := mark_of(line, end):
            marks.append(mark)
        if is_answered(line):
            continue
        reported = facts_of(line, log)
        facts += map(search.weighed_fact, reported or ())
        # a system's report of no failure, or of a past one, is no evidence but for its facts
        if reported is None or any(not fact.is_past for fact in reported):
            hits += search.hits_of(line)
    failed_at = failures(log, hits, facts)
    # the attempts of a log without a failure do not matter, and ranks print the same first lines
    again = recurrences(log, [*marks, *failed_at]) if failed_at and not has_ranks(hits) else []
    marks += [*phases(log), *again, *setbacks(log, marks), *relaunches(log, marks)]
    marks += failed_at
    attempts = cut(len(log.data), marks)
    went_well = not failed and bool(attempts) and ends_well(log, attempts[-1], failed_at)
    judged = of_last_attempt([*hits, *echoes(log)], facts, attempts, went_well=went_well)
    return Findings(log, *_explained(*judged), attempts)


def _explained(hits: list[Hit], facts: list[Fact]) -> tuple[list[Hit], list[Fact]]:
    """Reduce the weights of effects: errors after a stop, a stop after an error, commands that a shell lacks.

    A shell goes on after such a command, so a later stop or error is what ended the job.
    """
    stops = [h.line.at for h in hits if h.rule.klass in _STOPS and h.score >= FIRM]
    stops += [f.at for f in facts if f.klass in _STOPS and f.weight >= FIRM]
    own = [h for h in hits if h.rule.klass != _OF_LAUNCHER and not is_shells(h.line)]
    errors = [(h.line.at, h.score) for h in own if h.score >= CERTAIN]
    errors += [(f.at, f.weight) for f in facts if f.weight >= CERTAIN and f.klass != _OF_LAUNCHER]

    def weighed(hit: Hit) -> Hit:
        klass, at = hit.rule.klass, hit.line.at
        follows = hit.rule.role == "code" or klass in _TORN_DOWN
        is_shells_own = klass in SHELL_CLASSES and not is_programs_exception(hit.log, hit.line)
        if (follows and any(0 < at - stop < _SHUTDOWN_BYTES for stop in stops)) or (
            is_shells_own and any(stop > at for stop in stops)
        ):
            return hit._replace(score=hit.score - _LOSS)
        if klass in SHELL_CLASSES and is_shells(hit.line):
            later = max((score for of_error, score in errors if of_error > at), default=99)
            return hit._replace(score=min(hit.score, later - 1))
        return hit

    hits = [weighed(hit) for hit in hits]
    causes = [h for h in hits if h.rule.role in ("cause", "code") and h.score >= FIRM]

    def after_cause(klass: str, at: int, weight: int) -> int:
        if klass not in _STOPS:
            return weight
        return min(weight, max((h.score for h in causes if h.line.at < at), default=99) - 1)

    return (
        [h._replace(score=after_cause(h.rule.klass, h.line.at, h.score)) for h in hits],
        [f._replace(weight=after_cause(f.klass, f.at, f.weight)) for f in facts],
    )
