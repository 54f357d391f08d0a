"""What one log shows: rule hits, facts and attempts; found in one pass."""

from __future__ import annotations

from typing import NamedTuple

from pairun.diagnose.consequences import discounted, explained
from pairun.diagnose.earlier import ends_well, failures, has_ranks, of_last_attempt
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.facts.reading import facts_of
from pairun.diagnose.hits import Hit, HitSearch, echoes
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.recurrences import recurrences
from pairun.diagnose.searchlimit import SearchLimit
from pairun.diagnose.segments import Mark, Segment, cut, mark_of, phases, relaunches, setbacks
from pairun.diagnose.surroundings import is_answered
from pairun.diagnose.table import Table

_SPARE_S = 1.0


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
    hits = discounted([*hits, *echoes(log)], facts)
    went_well = not failed and bool(attempts) and ends_well(log, attempts[-1], failed_at)
    judged = of_last_attempt(hits, facts, attempts, went_well=went_well)
    return Findings(log, *explained(*judged), attempts)
