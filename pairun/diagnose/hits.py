"""Signals from the lines of a log that rules match, each with a weight.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a
job that continued. A handled exception weighs less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pairun.diagnose import tracebacks
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.signals import CERTAIN, Signal
from pairun.diagnose.surroundings import (
    HANDLED,
    LESS,
    OUTLIVED,
    Surroundings,
    is_healed,
    is_shells,
    is_taken_back,
    level_of,
)
from pairun.diagnose.table import Rule, RuleMatch, Table, make_rule

_OUTAGES, _OUTAGE_LINES = 2, 8

_INFO = 30
"""How much a line at the level INFO loses; the error itself often follows at another level."""

_EXPLAINED = 2
"""How much an exception loses that another one like it explains better: an equal one then decides."""

_FAILED_OP = "OP_REQUIRES failed at"
"""TensorFlow logs this as a warning for every operation that fails."""

_ZERO = re.compile(r"\w{0,12}(?:[\"']?\s{0,2}(?<!Error)[:=]\s{0,2}|(?<=s) )0(?![\w.:/-]|,\d)")
"""The number of errors that a monitor counts, if it follows the match."""

_NCCL_TRACE = re.compile(r"\.cc:\d+ -> \d|(?i:fail|abort|error)")
"""NCCL logs the place of an error as information."""

_CAUGHT = re.compile(r"\b[Cc]aught \w+ in (?:DataLoader|pin memory|replica|\w+ (?:worker|process))")
"""PyTorch's wrapper of an exception of a worker process or thread, which follows it."""


def penalty_of(rule: Rule, match: re.Match[str], line: Line, log: Log) -> int:
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
        doubt += 6
    if _CAUGHT.search(line.text) or tracebacks.is_handled(log, line):
        doubt += _EXPLAINED
    return doubt


def _is_healed(rule: Rule, match: re.Match[str], line: Line, log: Log) -> bool:
    """Whether the server is back; one that was away several times is a failure all the same."""
    outages = sum(match[0] in above.text for above in log.before(line.at, _OUTAGE_LINES))
    is_lasting = rule.klass == "storage_io_error" and outages >= _OUTAGES
    return not is_lasting and is_healed(line, log)


_MAX_REPEATS = 24
_MATCH_CHARS = 80
_NEAR_LINES = 24
_UNCAUGHT = make_rule(
    {"id": "uncaught-exception", "class": "user_code_error", "role": "code", "weight": 52}
)
_CODE_ONLY = frozenset(
    ("AttributeError", "KeyError", "NameError", "UnboundLocalError", "ZeroDivisionError")
)
_GUESSES = re.compile(r"(?:Some common causes include|There are some potential root causes)\b")
"""The start of Ray's list of possible causes for a lost worker; Ray has observed none of them."""


class HitSearch:
    """Finds the hits of one log, line by line.

    Args:
        log: the log.
        table: the rules.
        failed: whether the job is known to have failed.
    """

    def __init__(self, log: Log, table: Table, *, failed: bool) -> None:
        self._log = log
        self._table = table
        self._surroundings = Surroundings(log, failed=failed)
        self._repeats: dict[tuple[str, str], int] = {}

    def hits_of(self, line: Line) -> Iterator[Signal]:
        """The hits of a line, and of the traceback that it begins."""
        line = line._replace(text=_GUESSES.split(line.text, maxsplit=1)[0])
        matches = self._table.matches(line.text)
        if any(each.rule.role == "noise" for each in matches):
            return
        code_only = any(m.match.groupdict().get("exception") in _CODE_ONLY for m in matches)
        for each in matches:
            if not is_near(each.rule, line, self._log) or self._is_repeated(each.rule.id, line):
                continue
            hit = self._weighed(each, line)
            # The exception's type is better evidence than the words of its message.
            penalty = 12 if code_only and each.rule.role == "cause" else 0
            yield hit._replace(weight=hit.weight - penalty)
        if HEADER in line.text and not self._is_repeated("", line):
            yield from self._uncaught(line)

    def weighed(self, reported: Signal) -> Signal:
        """A system's report; weighs less if the job trained on."""
        if not self._surroundings.is_training_after(reported.at):
            return reported
        return reported._replace(weight=reported.weight - HANDLED)

    def _is_repeated(self, rule: str, line: Line) -> bool:
        """Whether the rule has matched so often that further lines add no information."""
        key = (rule, line.source)
        self._repeats[key] = self._repeats.get(key, 0) + 1
        return self._repeats[key] > _MAX_REPEATS

    def _uncaught(self, header: Line) -> Iterator[Signal]:
        """Make a hit from a traceback whose exception matches no rule."""
        exception = tracebacks.exception_after(self._log, header)
        if exception is None:
            return
        line, name = exception
        if self._table.matches(line.text):
            return
        match = re.match("", "")
        assert match
        hit = self._weighed(RuleMatch(_UNCAUGHT, match), line)
        yield hit._replace(details={"exception": name, **hit.details})

    def _weighed(self, rule_match: RuleMatch, line: Line) -> Signal:
        rule, match = rule_match
        details = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
        if line.source:
            details.setdefault("source", line.source.strip(" :"))
        score = rule.weight
        if score >= CERTAIN:
            score -= penalty_of(rule, match, line, self._log)
            if rule.role == "end":
                score -= HANDLED * self._surroundings.is_training_after(line.at)
            else:
                score -= self._surroundings.doubt(line)
            if is_shells(line) and self._surroundings.commands_after(line):
                score -= HANDLED
        # of a match of many words, the last ones
        start = max(match.start(), match.end() - _MATCH_CHARS)
        return _hit(rule, score, line, self._log, details, start)


def _hit(
    rule: Rule, weight: int, line: Line, log: Log, details: Mapping[str, str] = {}, start: int = 0
) -> Signal:
    return Signal(
        rule.klass, weight, rule.headline, "", rule.fault, rule.retry or "", rule.advice,
        start, rule.id, rule.role, details, log, line,
    )  # fmt: skip


def is_near(rule: Rule, line: Line, log: Log) -> bool:
    """Whether a line and its surroundings meet the rule's conditions ``near`` and ``unless``."""
    above = [line, *log.before(line.at, _NEAR_LINES)] if rule.near or rule.unless else []
    if rule.near and not any(re.search(rule.near, each.text) for each in above):
        return False
    around = [*above, *log.after(line.at, _NEAR_LINES)] if rule.unless else []
    return not any(re.search(rule.unless, each.text) for each in around)
