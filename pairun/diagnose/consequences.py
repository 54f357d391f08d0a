"""Reduces the weight of hits that an earlier hit or a later attempt explains."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pairun.diagnose.doubts import FETCH_CLASSES
from pairun.diagnose.facts.fact import HINT, Fact
from pairun.diagnose.hits import CERTAIN, FIRM, SHELL_CLASSES, Hit
from pairun.diagnose.surroundings import is_outlived, is_programs_exception, is_shells

_SHUTDOWN_BYTES = 1 << 14
_STOPS = frozenset(("terminated_sigterm", "time_limit"))

_KILLED = "host_oom"
"""The class of a SIGKILL; with a low weight its sender is unknown."""

_NETWORK_CLASSES = frozenset(
    (
        "network_unreachable",
        "nccl_system_error",
        "nccl_timeout",
        "peer_lost",
        "rendezvous_timeout",
    )
)
"""Reports that every instance prints while a job is torn down."""

_TORN_DOWN = frozenset(("cancelled_by_user", "storage_io_error"))
"""Reports of a program that loses its terminal or its files while it is being stopped."""

_OF_LAUNCHER = "child_failed"
"""The class of a launcher that only reports a failed process."""


def discounted(hits: list[Hit], facts: Sequence[Fact]) -> list[Hit]:
    """Lower the scores of hits that an earlier hit explains.

    Errors of the job's code, of the network and of the storage count less while the job is being
    stopped. So does a missing file after a failed download, and a failed command after which the job
    continued.
    """
    ends = [hit for hit in hits if hit.rule.role == "end" and hit.score >= FIRM]
    stops = [hit.line.at for hit in ends if hit.rule.klass in _STOPS]
    stops += [fact.at for fact in facts if fact.klass in _STOPS and fact.weight >= FIRM]
    last_stop = max(stops, default=-1)
    failed_fetches = [h.line.at for h in hits if h.rule.klass in FETCH_CLASSES and h.score >= FIRM]
    cancels = [hit.line.at for hit in ends if hit.rule.klass == "cancelled_by_user"]

    def weighed(hit: Hit) -> Hit:
        causes: list[int] = []
        if hit.rule.role == "code" or hit.rule.klass in _TORN_DOWN:
            causes = stops
        elif hit.rule.klass in _NETWORK_CLASSES:
            causes = stops + cancels
        elif hit.rule.klass == "file_not_found":
            causes = failed_fetches
        is_explained = any(0 < hit.line.at - at < _SHUTDOWN_BYTES for at in causes)
        if hit.rule.klass == "build_failed":
            # pip prints a build's output after the line that reports its failure
            is_explained = any(abs(hit.line.at - at) < _SHUTDOWN_BYTES for at in failed_fetches)
        # A shell continues after a failed command, so that command did not end the job.
        was_outlived = (
            hit.rule.klass in SHELL_CLASSES
            and hit.line.at < last_stop
            and not is_programs_exception(hit.log, hit.line)
        )
        return hit._replace(score=hit.score - 25) if is_explained or was_outlived else hit

    return [weighed(hit) for hit in hits]


def explained(hits: Sequence[Hit], facts: Sequence[Fact]) -> tuple[list[Hit], list[Fact]]:
    """Weigh what stopped the job less than an error before it.

    The ranks that outlive a failed one wait until a person or a limit stops them. What stopped a
    script weighs more than an earlier command that its shell had not found.
    """
    hits = [_logged(_outlived(hit, hits, facts), hits, facts) for hit in hits]
    causes = [h for h in hits if h.rule.role in ("cause", "code") and h.score >= FIRM]

    first_stop = min((h.line.at for h in hits if h.rule.klass in _STOPS), default=sys.maxsize)
    failed_tasks = [f.at for f in facts if f.klass == _OF_LAUNCHER and f.weight >= HINT]
    first_failed = min(failed_tasks, default=sys.maxsize)

    def weighed(klass: str, at: int, weight: int) -> int:
        after_failure = first_failed < at
        after_stop = bool(failed_tasks) and first_stop < at
        is_effect = after_failure if klass in _STOPS else after_failure or after_stop
        if klass in (*_STOPS, _KILLED) and weight < FIRM and is_effect:
            # a launcher stops or kills the other tasks after one has failed
            weight = min(weight, CERTAIN - 1)
        scores = [hit.score for hit in causes if hit.line.at < at]
        return min(weight, max(scores) - 1) if klass in _STOPS and scores else weight

    return (
        [hit._replace(score=weighed(hit.rule.klass, hit.line.at, hit.score)) for hit in hits],
        [fact._replace(weight=weighed(fact.klass, fact.at, fact.weight)) for fact in facts],
    )


def _logged(hit: Hit, hits: Sequence[Hit], facts: Sequence[Fact]) -> Hit:
    """A hit; weighs less than a later failure if its exception was only logged."""
    if hit.score < CERTAIN or not is_outlived(hit.log, hit.line):
        return hit
    later = [
        h.score
        for h in hits
        if h.line.at > hit.line.at
        and h.score >= FIRM
        and h.rule.role != "consequence"
        and h.rule.klass != hit.rule.klass
    ]
    later += [f.weight for f in facts if f.at > hit.line.at and f.weight >= FIRM]
    return hit._replace(score=min(hit.score, FIRM - 1, max(later) - 1)) if later else hit


def _outlived(hit: Hit, hits: Sequence[Hit], facts: Sequence[Fact]) -> Hit:
    """A hit; weighs less than a later error if the shell could not run that command."""
    if hit.rule.klass not in SHELL_CLASSES or not is_shells(hit.line):
        return hit
    later = [
        h.score
        for h in hits
        if h.line.at > hit.line.at
        and h.score >= CERTAIN
        and h.rule.klass != _OF_LAUNCHER
        and not is_shells(h.line)
    ]
    later += [
        f.weight
        for f in facts
        if f.at > hit.line.at and f.weight >= CERTAIN and f.klass != _OF_LAUNCHER
    ]
    return hit._replace(score=min(hit.score, max(later) - 1)) if later else hit
