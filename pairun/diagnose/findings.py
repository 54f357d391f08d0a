"""What one log shows: signals and attempts; found in one pass.

The end of the last attempt decides: what earlier ones show weighs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.hits import HitSearch
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.segments import Mark, Segment, cut, mark_of, recurrences, setbacks
from pairun.diagnose.signals import CERTAIN, FIRM, Signal
from pairun.diagnose.surroundings import (
    Surroundings,
    is_answered,
    is_of_shell,
    is_progress,
    is_trouble,
)
from pairun.diagnose.systemfacts import facts_of
from pairun.diagnose.table import SearchLimit, Table

_EARLIER = 35
"""How much less an earlier attempt weighs if the last one shows no cause."""

_HEALED = 90
"""How much less an earlier attempt weighs if the last one shows no failure."""

_TAIL_LINES = 5
_SPARE_S = 1.0
_SHUTDOWN_BYTES, _LOSS = 1 << 14, 25


class Findings(NamedTuple):
    """What one log shows.

    Attributes:
        log: the log.
        signals: lines that rules match, and reports of systems.
        attempts: its attempts, in order.
    """

    log: Log
    signals: list[Signal]
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
    signals: list[Signal] = []
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
        signals += [search.weighed(each._replace(log=log, line=line)) for each in reported or ()]
        # a system's report of no failure is no evidence
        if reported is None or reported:
            signals += search.hits_of(line)
    failures = [each.line for each in signals if each.weight >= CERTAIN and each.line is not None]
    failed_at = [Mark(line.at, "raised", line.source) for line in failures]
    # the attempts of a log without a failure do not matter, and ranks print the same first lines
    sources = {each.line.source for each in signals if each.rule and each.line is not None}
    again = recurrences(log, [*marks, *failed_at]) if failures and len(sources - {""}) < 2 else []
    # pairun started the command again, as after a restart in place
    phases = [Mark(at, "restart", str(at)) for at in log.command_starts[1:]]
    marks += [*phases, *again, *setbacks(log, marks), *failed_at]
    attempts = cut(len(log.data), marks)
    went_well = not failed and bool(attempts) and _ends_well(log, attempts[-1], failed_at)
    signals = _of_last_attempt(signals, attempts, went_well=went_well)
    return Findings(log, _explained(signals), attempts)


def _explained(signals: Sequence[Signal]) -> list[Signal]:
    """Reduce the weights of what a stop explains, of a shell's reports before an error, and of stops after a cause."""
    stops = [each.at for each in signals if CLASSES[each.klass].is_stop and each.weight >= FIRM]
    errors = [
        each
        for each in signals
        if each.weight >= CERTAIN and each.klass != "child_failed" and not _is_of_shell(each)
    ]
    causes = [s for s in errors if s.role in ("cause", "code") and s.weight >= FIRM]

    def highest(each: Signal) -> int:
        if CLASSES[each.klass].is_stop:
            return max((s.weight for s in causes if s.at < each.at), default=99) - 1
        if _is_of_shell(each):
            # a shell goes on after a command that fails: a later stop or error is what ended the job
            later = [s.weight - 1 for s in errors if s.at > each.at]
            return max(later, default=98) - _LOSS * any(stop > each.at for stop in stops)
        follows = each.role == "code" or CLASSES[each.klass].at_stop
        is_after = any(0 < each.at - stop < _SHUTDOWN_BYTES for stop in stops)
        return each.weight - _LOSS * (follows and is_after)

    return [each._replace(weight=min(each.weight, highest(each))) for each in signals]


def _is_of_shell(signal: Signal) -> bool:
    """Whether a script's command failed, not a program by an exception."""
    return CLASSES[signal.klass].of_shell and signal.line is not None and is_of_shell(signal.line)


def _ends_well(log: Log, last: Segment, failed_at: Sequence[Mark]) -> bool:
    """Whether the last attempt shows no failure.

    A job that starts anew needs no proof of success: its program may still run. After a restart in
    place the log may be cut off, so progress or a report of success is needed.
    """
    if any(mark.at >= last.start for mark in failed_at) or tracebacks.is_open(log):
        return False
    if Surroundings(log).succeeded_at >= last.start:
        return True
    tail = [line for line in log.tail(_TAIL_LINES) if line.at >= last.start]
    return not any(map(is_trouble, tail)) and (last.anew or any(map(is_progress, tail)))


def _of_last_attempt(
    signals: Sequence[Signal], attempts: Sequence[Segment], *, went_well: bool
) -> list[Signal]:
    """Reduce the weights of signals from earlier attempts.

    Args:
        signals: of the log.
        attempts: of the log.
        went_well: whether the last attempt ends without a failure.
    """
    if len(attempts) < 2:
        return list(signals)
    start = attempts[-1].start
    last = [
        each.weight
        for each in signals
        if each.at >= start and each.role != "consequence" and not CLASSES[each.klass].follows
    ]
    cause = max(last, default=0)
    highest = cause - 1 if cause >= CERTAIN else 98
    loss = _HEALED if went_well else _EARLIER
    return [
        each._replace(weight=min(each.weight - loss, highest)) if each.at < start else each
        for each in signals
    ]
