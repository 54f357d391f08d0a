"""Hits: the lines of a log that rules match, each with a weight.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a
job that continued. A handled exception weighs less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.doubts import doubt_of
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.surroundings import Surroundings, is_progress
from pairun.diagnose.table import Rule, RuleMatch, Table, make_rule

CERTAIN = 40
"""The minimum weight of a hit that names a class."""

FIRM = 70
"""The minimum weight of a hit that changes other weights."""

_MAX_REPEATS = 24
_NEAR_LINES = 12
_ECHO_LINES = 40
_UNCAUGHT = make_rule(
    {"id": "uncaught-exception", "class": "user_code_error", "role": "code", "weight": 52}
)
_INTERRUPTED = make_rule(
    {
        "id": "keyboard-echo",
        "class": "cancelled_by_user",
        "role": "end",
        "weight": 70,
        "headline": "a user pressed Ctrl-C",
        "warning": True,
    }
)
_CODE_ONLY = frozenset(
    ("AttributeError", "KeyError", "NameError", "UnboundLocalError", "ZeroDivisionError")
)
SHELL_CLASSES = frozenset(
    ("command_not_found", "file_not_found", "module_not_found", "permission_denied", "shell_error")
)
"""Failures of one command, after which a shell continues."""

_ECHO = re.compile(r"\^C(?! to )")
_GUESSES = re.compile(r"(?:Some common causes include|There are some potential root causes)\b")
"""The start of Ray's list of possible causes for a lost worker; Ray has observed none of them."""


class Hit(NamedTuple):
    """A line that a rule matches.

    Attributes:
        score: the rule's weight, minus what the surroundings take from it.
        rule: the rule.
        line: the line.
        log: the log of the line.
        details: the pattern's named captures.
        start: offset of the match in the line's text, in characters.
    """

    score: int
    rule: Rule
    line: Line
    log: Log
    details: dict[str, str]
    start: int


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

    def hits_of(self, line: Line) -> Iterator[Hit]:
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
            yield hit._replace(score=hit.score - penalty)
        if HEADER in line.text and not self._is_repeated("", line):
            yield from self._uncaught(line)

    def weighed_fact(self, fact: Fact) -> Fact:
        """A fact; weighs less if the job trained on."""
        if fact.at < 0:
            return fact
        return fact._replace(weight=fact.weight - self._surroundings.outlived_doubt(fact.at))

    def _is_repeated(self, rule: str, line: Line) -> bool:
        """Whether the rule has matched so often that further lines add no information."""
        key = (rule, line.source)
        self._repeats[key] = self._repeats.get(key, 0) + 1
        return self._repeats[key] > _MAX_REPEATS

    def _uncaught(self, header: Line) -> Iterator[Hit]:
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

    def _weighed(self, rule_match: RuleMatch, line: Line) -> Hit:
        rule, match = rule_match
        details = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
        if line.source:
            details.setdefault("source", line.source.strip(" :"))
        score = rule.weight
        if score >= CERTAIN:
            score -= doubt_of(rule, match, line, self._log)
            if rule.role == "end":
                score -= self._surroundings.outlived_doubt(line.at)
            else:
                score -= self._surroundings.progress_doubt(line)
                score -= self._surroundings.served_doubt(line, is_cause=rule.role != "code")
            if rule.role == "code":
                score -= self._surroundings.stray_doubt(line)
            if rule.klass in SHELL_CLASSES or line.text.startswith("fatal: "):
                score -= self._surroundings.output_doubt(line)
        return Hit(score, rule, line, self._log, details, match.start())


def echoes(log: Log) -> Iterator[Hit]:
    """Find the ``^C`` that a terminal echoes near the end of a log."""
    for line in reversed(log.tail(_ECHO_LINES)):
        if _ECHO.match(line.text):
            yield Hit(_INTERRUPTED.weight, _INTERRUPTED, line, log, {}, 0)
            return
        if is_progress(line):
            return


def is_near(rule: Rule, line: Line, log: Log) -> bool:
    """Whether a line and its surroundings meet the rule's conditions ``near`` and ``unless``."""
    above = [line, *log.before(line.at, _NEAR_LINES)] if rule.near or rule.unless else []
    if rule.near and not any(re.search(rule.near, each.text) for each in above):
        return False
    around = [*above, *log.after(line.at, _NEAR_LINES)] if rule.unless else []
    return not any(re.search(rule.unless, each.text) for each in around)
