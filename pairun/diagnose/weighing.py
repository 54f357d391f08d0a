"""Diagnoses a failure: ranks hits and facts by weight, and decides on a class.

The heaviest hit or fact names the class. Of two equal ones the fact wins, then the earlier hit:
a cause comes before its consequences.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pairun.diagnose.circumstances import Circumstances, clues
from pairun.diagnose.classes import EXIT_CODES, UNKNOWN
from pairun.diagnose.diagnosis import (
    FORBIDDING,
    FORBIDS,
    Diagnosis,
    Evidence,
    Place,
    confidence_of,
    of_fact,
    of_hits,
)
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.findings import Findings, findings_in
from pairun.diagnose.hits import CERTAIN, SHELL_CLASSES, Hit
from pairun.diagnose.lines import Log
from pairun.diagnose.searchlimit import Clock, SearchLimit
from pairun.diagnose.surroundings import is_shells
from pairun.diagnose.table import Table
from pairun.diagnose.undecided import undecided

DEADLINE_S = 2.0
"""The limit of a diagnosis, in seconds; then it weighs the hits found so far."""

ADVISED = 60
"""The minimum weight of an exit code alone on which controllers act."""

BY_CODE = "exit code"
"""The source of a diagnosis that is based on an exit code alone."""

_NO_COMMAND, _STOPS = 127, frozenset((129, 130, 143))
"""Exit codes of a missing command, and of processes that SIGHUP, SIGINT and SIGTERM end."""

_FAILED_FOR_SURE = 32
"""The minimum weight that names a class if the exit code shows a failure."""


def diagnose(
    logs: Sequence[Log],
    table: Table,
    facts: Circumstances | None = None,
    deadline_s: float = DEADLINE_S,
    clock: Clock = time.monotonic,
) -> Diagnosis:
    """Diagnose why a job died.

    Args:
        logs: the job's output; one log for each instance.
        table: the rules.
        facts: known besides the logs.
        deadline_s: limit for the diagnosis, in seconds.
        clock: returns the time.
    """
    facts = facts or Circumstances()
    if facts.exit_code is None and logs and all(log.exit_code is not None for log in logs):
        # use the worst exit code in the logs: pairun wrote it, so it counts like one from the user
        facts = facts._replace(exit_code=max(log.exit_code or 0 for log in logs))
    limit = SearchLimit.after(deadline_s / 2, clock)
    if facts.error_file:
        logs = [*logs, Log(facts.error_file.encode(), "error file")]
    failed = facts.exit_code not in (None, 0)
    findings = [findings_in(log, table, limit, failed=failed) for log in logs]
    diagnosis = _verdict(findings, table, facts)
    attempts = max((len(each.attempts) for each in findings), default=1) or 1
    return diagnosis._replace(attempts=attempts)


def _verdict(findings: Sequence[Findings], table: Table, facts: Circumstances) -> Diagnosis:
    hits = [hit for each in findings for hit in each.hits]
    if facts.exit_code in _STOPS or (facts.stopped and facts.exit_code != _NO_COMMAND):
        # the shell went on until something stopped the job
        hits = [h for h in hits if h.rule.klass not in SHELL_CLASSES or not is_shells(h.line)]
    hits.sort(key=lambda h: -h.score)
    reported = [Place(fact, each.log) for each in findings for fact in each.facts]
    reported.sort(key=lambda p: -p.fact.weight)
    given = [Place(fact, None) for fact in clues(facts)]
    scores = _scores(hits, reported, given, facts.exit_code)
    # the sort is stable: of equal classes the first one stays first
    ranked = sorted(scores, key=lambda k: -scores[k])
    least = CERTAIN if facts.exit_code in (None, 0) else _FAILED_FOR_SURE
    if not ranked or scores[ranked[0]] < least:
        return undecided(hits, [(k, scores[k]) for k in ranked], findings, table, facts)
    best = ranked[0]
    decided = _decided(
        best,
        [h for h in hits if h.rule.klass == best and h.score > 0],
        [p for p in reported if p.fact.klass == best],
        [p for p in [*_of_code(facts.exit_code), *given] if p.fact.klass == best],
    )
    forbidden = decided.retry in FORBIDS and scores[best] < FORBIDDING
    others = ((k, scores[k]) for k in ranked[1:4] if scores[k] >= CERTAIN // 2)
    return decided._replace(
        retry=None if forbidden else decided.retry,
        confidence=confidence_of(scores[best]),
        alternatives=tuple((k, confidence_of(score)) for k, score in others),
    )


def _scores(
    hits: list[Hit], reported: list[Place], given: list[Place], code: int | None
) -> dict[str, int]:
    """The weight of each class."""
    scores: dict[str, int] = {}
    for place in reported:
        scores[place.fact.klass] = max(scores.get(place.fact.klass, 0), place.fact.weight)
    for hit in hits:
        if hit.score > 0:
            scores[hit.rule.klass] = max(scores.get(hit.rule.klass, 0), hit.score)
    for place in given:
        scores[place.fact.klass] = max(scores.get(place.fact.klass, 0), place.fact.weight)
    for place in _of_code(code):
        before = scores.get(place.fact.klass, 0)
        confirmed = min(98, before + 3) if before >= CERTAIN else 0
        scores[place.fact.klass] = confirmed or max(before, place.fact.weight)
    if code == 0:
        # The command succeeded: its log is no evidence, only the kernel's reports are.
        known = {place.fact.klass for place in given}
        scores = {k: v for k, v in scores.items() if k in known}
    scores.pop(UNKNOWN, None)
    return {k: v for k, v in scores.items() if v > 0}


def _of_code(code: int | None) -> list[Place]:
    """The meaning of an exit code alone."""
    if code is None or code not in EXIT_CODES:
        return []
    klass, weight = EXIT_CODES[code]
    return [Place(Fact(klass, weight, f"the exit code is {code}", BY_CODE), None)]


def _guess_of(fact: Fact, meaning: str) -> str:
    """A fact's headline; it calls an exit code that fits several classes a guess."""
    if fact.source != BY_CODE or fact.weight >= ADVISED:
        return meaning
    if fact.klass == "host_oom":
        return "killed by SIGKILL; the sender is unknown, often the memory limit"
    return f"a guess from the exit code alone: {meaning}"


def _decided(klass: str, hits: list[Hit], reported: list[Place], given: list[Place]) -> Diagnosis:
    """The diagnosis of a class: from the heaviest fact in a log, else hits, else given facts."""
    details = hits[0].details if hits else {}
    if reported and (not hits or reported[0].fact.weight >= hits[0].score):
        decided = of_fact(reported[0], details)
    elif hits:
        decided = of_hits(klass, hits)
    else:
        decided = of_fact(given[-1], details)
        guess = _guess_of(given[-1].fact, decided.headline)
        return decided._replace(headline=guess)
    lines = of_hits(klass, hits).evidence if hits and decided.source else ()
    words = tuple(Evidence("", 0, place.fact.words) for place in given[-1:])
    evidence = dict.fromkeys((*decided.evidence, *lines[:2], *words))
    return decided._replace(evidence=tuple(evidence))
