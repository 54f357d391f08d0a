"""Diagnoses a failure: ranks signals by weight, and decides on a class.

The heaviest signal names the class. Of two equal ones a system's report wins, then the earlier line:
a cause comes before its consequences.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pairun.diagnose.circumstances import Circumstances, clues
from pairun.diagnose.classes import EXIT_CODES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, confidence_of, of_signals
from pairun.diagnose.findings import Findings, findings_in, is_report_of_shell
from pairun.diagnose.lines import Log
from pairun.diagnose.signals import CERTAIN, FIRM, Signal
from pairun.diagnose.table import Clock, SearchLimit, Table
from pairun.diagnose.undecided import undecided

DEADLINE_S = 2.0
"""The limit of a diagnosis, in seconds; then it weighs the signals found so far."""

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


def exit_code_of(diagnosis: Diagnosis, table: Table) -> int | None:
    """The exit code that the cluster assigns to the class, or None if the diagnosis is too unsure."""
    return table.exit_codes.get(diagnosis.klass) if diagnosis.confidence * 100 >= FIRM else None


def _verdict(findings: Sequence[Findings], table: Table, facts: Circumstances) -> Diagnosis:
    code = facts.exit_code
    signals = [each for found in findings for each in found.signals]
    if code in _STOPS or (facts.stopped and code != _NO_COMMAND):
        # the shell went on until something stopped the job
        signals = [each for each in signals if not is_report_of_shell(each)]
    signals.sort(key=lambda each: (-each.weight, each.rule != ""))
    given = clues(facts)
    scores = _scores(signals, given, code)
    # the sort is stable: of equal classes the first one stays first
    ranked = sorted(scores, key=lambda k: -scores[k])
    least = CERTAIN if code in (None, 0) else _FAILED_FOR_SURE
    if not ranked or scores[ranked[0]] < least:
        return undecided(signals, [(k, scores[k]) for k in ranked], findings, table, facts)
    best = ranked[0]
    mine = [each for each in signals if each.klass == best and (each.weight > 0 or not each.rule)]
    extra = [each for each in [*_of_code(code), *given] if each.klass == best][-1:]
    decided = of_signals(mine or extra, extra, scores[best])
    if not mine:
        decided = decided._replace(headline=_guess_of(extra[0], decided.headline))
    others = ((k, scores[k]) for k in ranked[1:4] if scores[k] >= CERTAIN // 2)
    return decided._replace(
        alternatives=tuple((k, confidence_of(score)) for k, score in others),
    )


def _scores(signals: Sequence[Signal], given: Sequence[Signal], code: int | None) -> dict[str, int]:
    """The weight of each class.

    Args:
        signals: of the logs, heaviest first.
        given: known besides the logs.
        code: the exit code.
    """
    scores: dict[str, int] = {}
    for each in (*signals, *given):
        scores[each.klass] = max(scores.get(each.klass, 0), each.weight)
    for each in _of_code(code):
        before = scores.get(each.klass, 0)
        confirmed = min(98, before + 3) if before >= CERTAIN else 0
        scores[each.klass] = confirmed or max(before, each.weight)
    if code == 0:
        # The command succeeded: its log is no evidence, only the kernel's reports are.
        known = {each.klass for each in given}
        scores = {k: v for k, v in scores.items() if k in known}
    scores.pop(UNKNOWN, None)
    return {k: v for k, v in scores.items() if v > 0}


def _of_code(code: int | None) -> list[Signal]:
    """The meaning of an exit code alone."""
    if code is None or code not in EXIT_CODES:
        return []
    return [Signal(*EXIT_CODES[code], f"the exit code is {code}", BY_CODE)]


def _guess_of(signal: Signal, meaning: str) -> str:
    """The headline of what is known besides the logs; it calls an exit code that fits several classes a guess."""
    if signal.source != BY_CODE or signal.weight >= ADVISED:
        return meaning
    if signal.klass == "host_oom":
        return "killed by SIGKILL; the sender is unknown, often the memory limit"
    return f"a guess from the exit code alone: {meaning}"
