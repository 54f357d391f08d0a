"""What one log shows: the lines that rules match, the reports of systems, and the attempts; found in one pass.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a job that
continued. The end of the last attempt decides: what earlier ones show weighs less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.lines import HEADER, Line, Log, parse
from pairun.diagnose.segments import Mark, Segment, cut, mark_of, recurrences, setbacks
from pairun.diagnose.signals import CERTAIN, FIRM, Signal
from pairun.diagnose.surroundings import (
    HANDLED,
    LESS,
    OUTLIVED,
    Surroundings,
    is_answered,
    is_healed,
    is_of_shell,
    is_progress,
    is_shells,
    is_taken_back,
    is_trouble,
    level_of,
)
from pairun.diagnose.systemfacts import facts_of
from pairun.diagnose.table import Rule, RuleMatch, SearchLimit, Table, make_rule

_INFO = 30
"""How much a line at the level INFO loses; the error itself often follows at another level."""

_EXPLAINED = 2
"""How much an exception loses that another one like it explains better: an equal one then decides."""

_PREFIXED = 6
"""How much an exception loses behind other text in its line."""

_TYPED = 12
"""How much the words of a message lose if the exception's type says more."""

_EARLIER = 35
"""How much less an earlier attempt weighs if the last one shows no cause."""

_HEALED = 90
"""How much less an earlier attempt weighs if the last one shows no failure."""

_SHUTDOWN_BYTES, _LOSS = 1 << 14, 25
_OUTAGES, _OUTAGE_LINES, _NEAR_LINES, _TAIL_LINES = 2, 8, 24, 5
_MAX_REPEATS, _MATCH_CHARS, _SPARE_S = 24, 80, 1.0

_FAILED_OP = "OP_REQUIRES failed at"
"""TensorFlow logs this as a warning for every operation that fails."""

_ZERO = re.compile(r"\w{0,12}(?:[\"']?\s{0,2}(?<!Error)[:=]\s{0,2}|(?<=s) )0(?![\w.:/-]|,\d)")
"""The number of errors that a monitor counts, if it follows the match."""

_NCCL_TRACE = re.compile(r"\.cc:\d+ -> \d|(?i:fail|abort|error)")
"""NCCL logs the place of an error as information."""

_CAUGHT = re.compile(r"\b[Cc]aught \w+ in (?:DataLoader|pin memory|replica|\w+ (?:worker|process))")
"""PyTorch's wrapper of an exception of a worker process or thread, which follows it."""

_GUESSES = re.compile(r"(?:Some common causes include|There are some potential root causes)\b")
"""The start of Ray's list of possible causes for a lost worker; Ray has observed none of them."""

_UNCAUGHT = make_rule(
    {"id": "uncaught-exception", "class": "user_code_error", "role": "code", "weight": 52}
)
_CODE_ONLY = frozenset(
    ("AttributeError", "KeyError", "NameError", "UnboundLocalError", "ZeroDivisionError")
)


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
    search = _Search(log, table, failed=failed)
    signals: list[Signal] = []
    marks: list[Mark] = []
    for start, end in table.lines(log.data, limit):
        if limit.is_over(_SPARE_S):
            break
        line = parse(start, log.data[start:end])
        if mark := mark_of(line, end):
            marks.append(mark)
        if not is_answered(line):
            signals += search.signals_of(line)
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


class _Search:
    """Finds the signals of one log, line by line; failed: whether the job is known to have failed."""

    def __init__(self, log: Log, table: Table, *, failed: bool) -> None:
        self._log, self._table = log, table
        self._surroundings = Surroundings(log, failed=failed)
        self._repeats: Counter[tuple[str, str]] = Counter()

    def signals_of(self, line: Line) -> Iterator[Signal]:
        """What a system reports in a line, what rules match in it, and the traceback that it begins."""
        reported = facts_of(line, self._log)
        for fact in reported or ():
            is_over = self._surroundings.is_training_after(line.at)
            yield fact._replace(log=self._log, line=line, weight=fact.weight - HANDLED * is_over)
        line = line._replace(text=_GUESSES.split(line.text, maxsplit=1)[0])
        matches = self._table.matches(line.text)
        # a system's report of no failure is no evidence
        if reported == [] or any(each.rule.role == "noise" for each in matches):
            return
        is_typed = any(m.match.groupdict().get("exception") in _CODE_ONLY for m in matches)
        for each in matches:
            if is_near(each.rule, line, self._log) and not self._is_repeated(each.rule.id, line):
                yield self._hit(each, line, _TYPED * (is_typed and each.rule.role == "cause"))
        if HEADER in line.text and not self._is_repeated("", line):
            yield from self._uncaught(line)

    def _is_repeated(self, rule: str, line: Line) -> bool:
        """Whether the rule has matched so often that further lines add no information."""
        self._repeats[rule, line.source] += 1
        return self._repeats[rule, line.source] > _MAX_REPEATS

    def _uncaught(self, header: Line) -> Iterator[Signal]:
        """The exception of a traceback, if it matches no rule."""
        exception = tracebacks.exception_after(self._log, header)
        if exception is not None and not self._table.matches(exception[0].text):
            match = re.match("", "")
            assert match
            hit = self._hit(RuleMatch(_UNCAUGHT, match), exception[0])
            yield hit._replace(details={"exception": exception[1], **hit.details})

    def _hit(self, rule_match: RuleMatch, line: Line, penalty: int = 0) -> Signal:
        rule, match = rule_match
        details = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
        if line.source:
            details.setdefault("source", line.source.strip(" :"))
        weight = rule.weight
        if weight >= CERTAIN:
            weight -= _penalty(rule, match, line, self._log)
            if rule.role == "end":
                weight -= HANDLED * self._surroundings.is_training_after(line.at)
            else:
                weight -= self._surroundings.doubt(line)
            if is_shells(line) and self._surroundings.commands_after(line):
                weight -= HANDLED
        # of a match of many words, the last ones
        start = max(match.start(), match.end() - _MATCH_CHARS)
        return Signal(
            rule.klass, weight - penalty, rule.headline, "", rule.fault, rule.retry or "",
            rule.advice, start, rule.id, rule.role, details, self._log, line,
        )  # fmt: skip


def is_near(rule: Rule, line: Line, log: Log) -> bool:
    """Whether a line and its surroundings meet the rule's conditions ``near`` and ``unless``."""
    above = [line, *log.before(line.at, _NEAR_LINES)] if rule.near or rule.unless else []
    if rule.near and not any(re.search(rule.near, each.text) for each in above):
        return False
    around = [*above, *log.after(line.at, _NEAR_LINES)] if rule.unless else []
    return not any(re.search(rule.unless, each.text) for each in around)


def _penalty(rule: Rule, match: re.Match[str], line: Line, log: Log) -> int:
    """How much the line and its traceback reduce a rule's weight."""
    level = level_of(line, match.start() + 40)
    is_trace = level == "info" and rule.klass.startswith("nccl_") and _NCCL_TRACE.search(line.text)
    if (
        is_taken_back(match, line, log)
        or (CLASSES[rule.klass].heals and _is_healed(rule, match, line, log))
        or (rule.role != "code" and _ZERO.match(line.text, match.end()))
        or (level == "warning" and not rule.is_warning and _FAILED_OP not in line.text)
        or (level == "info" and "NCCL INFO" in line.text + line.shown and not is_trace)
    ):
        return HANDLED
    if tracebacks.is_source(log, line):
        return LESS if tracebacks.replaces_exception(log, line) else HANDLED
    if rule.role in ("code", "consequence") and tracebacks.is_ignored(log, line):
        return OUTLIVED
    doubt = _INFO if level == "info" else LESS if _FAILED_OP in line.text else 0
    if rule.role == "code" and line.text[: match.start()].strip("|+- "):
        doubt += _PREFIXED
    if _CAUGHT.search(line.text) or tracebacks.is_handled(log, line):
        doubt += _EXPLAINED
    return doubt


def _is_healed(rule: Rule, match: re.Match[str], line: Line, log: Log) -> bool:
    """Whether the server is back; one that was away several times is a failure all the same."""
    outages = sum(match[0] in above.text for above in log.before(line.at, _OUTAGE_LINES))
    is_lasting = rule.klass == "storage_io_error" and outages >= _OUTAGES
    return not is_lasting and is_healed(line, log)


def _explained(signals: Sequence[Signal]) -> list[Signal]:
    """Reduce the weights of what a stop explains, of a shell's reports before an error, and of stops after a cause."""
    stops = [s.at for s in signals if CLASSES[s.klass].is_stop and s.weight >= FIRM]
    errors = [
        each
        for each in signals
        if each.weight >= CERTAIN and each.klass != "child_failed" and not is_report_of_shell(each)
    ]
    causes = [s for s in errors if s.role in ("cause", "code") and s.weight >= FIRM]

    def highest(each: Signal) -> int:
        if CLASSES[each.klass].is_stop:
            return max((s.weight for s in causes if s.at < each.at), default=99) - 1
        if is_report_of_shell(each):
            # a shell goes on after a command that fails: a later stop or error is what ended the job
            later = [s.weight - 1 for s in errors if s.at > each.at]
            return max(later, default=98) - _LOSS * any(stop > each.at for stop in stops)
        follows = each.role == "code" or CLASSES[each.klass].at_stop
        is_after = any(0 < each.at - stop < _SHUTDOWN_BYTES for stop in stops)
        return each.weight - _LOSS * (follows and is_after)

    return [each._replace(weight=min(each.weight, highest(each))) for each in signals]


def is_report_of_shell(signal: Signal) -> bool:
    """Whether a script's command failed, not a program by an exception."""
    is_shell_class = CLASSES[signal.klass].of_shell
    return is_shell_class and signal.line is not None and is_of_shell(signal.line)


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
    signals: list[Signal], attempts: Sequence[Segment], *, went_well: bool
) -> list[Signal]:
    """Reduce the weights of signals from earlier attempts; went_well: the last one shows no failure."""
    if len(attempts) < 2:
        return signals
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
