"""What one log shows: signals and attempts; found in one pass.

The end of the last attempt decides: what earlier ones show weighs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.hits import SHELL_CLASSES, HitSearch, echoes
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.segments import (
    Mark,
    Segment,
    cut,
    mark_of,
    phases,
    recurrences,
    setbacks,
)
from pairun.diagnose.signals import CERTAIN, FIRM, Signal
from pairun.diagnose.surroundings import (
    ERROR_LEVEL,
    TROUBLE,
    Surroundings,
    is_answered,
    is_programs_exception,
    is_progress,
    is_shells,
)
from pairun.diagnose.systemfacts import facts_of
from pairun.diagnose.table import SearchLimit, Table

_EARLIER = 35
"""How much less an earlier attempt weighs if the last one shows no cause."""

_HEALED = 90
"""How much less an earlier attempt weighs if the last one shows no failure."""

_TAIL_LINES = 5
_EFFECTS = frozenset(("child_failed", "terminated_sigterm"))
"""Classes that say only that an attempt ended."""

_SPARE_S = 1.0
_SHUTDOWN_BYTES, _LOSS = 1 << 14, 25
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
    failed_at = [Mark(line.at, "raised", source=line.source) for line in failures]
    # the attempts of a log without a failure do not matter, and ranks print the same first lines
    sources = {each.line.source for each in signals if each.rule and each.line is not None}
    again = recurrences(log, [*marks, *failed_at]) if failures and len(sources - {""}) < 2 else []
    marks += [*phases(log), *again, *setbacks(log, marks), *failed_at]
    attempts = cut(len(log.data), marks)
    went_well = not failed and bool(attempts) and _ends_well(log, attempts[-1], failed_at)
    signals = _of_last_attempt([*signals, *echoes(log)], attempts, went_well=went_well)
    return Findings(log, _explained(signals), attempts)


def _explained(signals: Sequence[Signal]) -> list[Signal]:
    """Reduce the weights of errors that programs report while they are stopped, and of stops after a cause."""
    stops = [each.at for each in signals if each.klass in _STOPS and each.weight >= FIRM]
    own = [each for each in signals if each.klass != "child_failed" and not _is_shells(each)]
    errors = [each for each in own if each.weight >= CERTAIN]

    def weighed(each: Signal) -> Signal:
        follows = each.role == "code" or each.klass in _TORN_DOWN
        # a shell goes on after a command that fails: a later stop or error is what ended the job
        if (follows and any(0 < each.at - stop < _SHUTDOWN_BYTES for stop in stops)) or (
            _is_of_script(each) and any(stop > each.at for stop in stops)
        ):
            return each._replace(weight=each.weight - _LOSS)
        if not _is_shells(each):
            return each
        later = [error.weight - 1 for error in errors if error.at > each.at]
        return each._replace(weight=min(each.weight, max(later, default=98)))

    signals = [weighed(each) for each in signals]
    causes = [s for s in signals if s.role in ("cause", "code") and s.weight >= FIRM]

    def after_cause(each: Signal) -> Signal:
        if each.klass not in _STOPS:
            return each
        highest = max((cause.weight for cause in causes if cause.at < each.at), default=99) - 1
        return each._replace(weight=min(each.weight, highest))

    return [after_cause(each) for each in signals]


def _is_shells(signal: Signal) -> bool:
    """Whether a shell reports a command that it cannot run."""
    return signal.klass in SHELL_CLASSES and signal.line is not None and is_shells(signal.line)


def _is_of_script(signal: Signal) -> bool:
    """Whether a script's command failed, not a program by an exception."""
    if signal.klass not in SHELL_CLASSES or signal.log is None or signal.line is None:
        return False
    return signal.rule != "" and not is_programs_exception(signal.log, signal.line)


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
    troubles = [x for x in tail if TROUBLE.search(x.text) or ERROR_LEVEL.search(x.text)]
    if not all(tracebacks.is_ignored(log, line) for line in troubles):
        return False
    return last.anew or any(map(is_progress, tail))


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
        if each.at >= start and each.role != "consequence" and each.klass not in _EFFECTS
    ]
    cause = max(last, default=0)
    highest = cause - 1 if cause >= CERTAIN else 98
    loss = _HEALED if went_well else _EARLIER
    return [
        each._replace(weight=min(each.weight - loss, highest)) if each.at < start else each
        for each in signals
    ]
