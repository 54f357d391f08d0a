"""Hits: the lines of a log that rules match, each with its weight.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a
job that continued. An exception that the program handled counts less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.lines import HEADER, Line, Log, parse
from pairun.diagnose.searchlimit import SearchLimit
from pairun.diagnose.surroundings import (
    INFO,
    Surroundings,
    is_programs_exception,
    is_progress,
)
from pairun.diagnose.table import Rule, RuleMatch, Table, make_rule

CERTAIN = 40
"""The least weight of a hit that names a class."""

FIRM = 70
"""The least weight of a hit that changes the weights of others."""

_MAX_REPEATS = 24
_SPARE_S = 1.0
_NEAR_LINES = 12
_SHUTDOWN_BYTES = 1 << 14
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
_RETRIABLE = frozenset(("retry", "retry_elsewhere"))
_STOPS = frozenset(("terminated_sigterm", "time_limit"))

_NETWORK_CLASSES = frozenset(
    (
        "network_unreachable",
        "nccl_system_error",
        "nccl_timeout",
        "peer_lost",
        "rendezvous_timeout",
    )
)
"""What every instance reports while a job is torn down."""

_FETCH_CLASSES = frozenset(("network_unreachable", "remote_auth", "service_quota"))
"""Failures that explain why a file is missing afterwards."""

_SHELL_CLASSES = frozenset(
    ("command_not_found", "file_not_found", "module_not_found", "permission_denied")
)
"""Failures of one command, after which a shell continues."""

_WARNING = re.compile(
    r"(?<!NCCL )\bWARN(?:ING)?\b|\b[Ww]arn(?:ing)?:|^\[?W\d{4}|\[W ?\d{3,4}|\[W \w+\.cpp|\[warn"
)
_HARMLESS = re.compile(r"\w+Warning: |\bW tensorflow/")

_FAILED_OP = "OP_REQUIRES failed at"
"""TensorFlow logs this for every operation that fails, always as a warning."""

_ECHO = re.compile(r"\^C(?! to )")
_RETRY = re.compile(
    r"(?i)\bretry(?:ing)?\b|\bretries left|\bwill (?:be )?(?:retr|try again|continue|skip|ignore)"
    r"|\battempt \d+ ?(?:/|of) ?\d+|\bfall(?:ing)? ?back\b|\bskipp(?:ing|ed)\b|\bignor(?:ing|ed|e)\b"
    r"|\bfrom scratch\b|\busing (?:the )?(?:default|system temp)|\bgoing to \S+ instead\b|\btrying (?:another|the next)\b"
    r"|\b(?:exists?|found|missing|available)\W{1,3}(?:download|creat|generat|build|comput|initiali[sz])ing\b|\bcaught (?!signal|collective|\w+ in )|\bre-?connecting\b|\brecovered\b|\b(?:safely|harmless)\b|\btrying again\b|\bnon-?fatal\b"
)
_RETRY_FOLLOWS = re.compile(
    r"\W*(?:\w+ ?[:|-] ?)?(?:[Rr]etrying|[Ww]ill retry|[Tt]rying again)\b"
    r"(?!.*\b(?P<attempt>\d+) ?(?:/|of) ?(?P=attempt)\b)"
)

_GUESSES = re.compile(r"(?:Some common causes include|There are some potential root causes)\b")
"""How Ray's list of possible causes begins when a worker is lost; Ray has observed none of them."""

_EXHAUSTED = re.compile(
    r"(?i)max(?:imum)? (?:number of )?retries|retries exceeded|giving up|gave up|retry failed after"
)


class Hit(NamedTuple):
    """A line that a rule matches.

    Attributes:
        score: the rule's weight, less what the surroundings take from it.
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


def hits_in(log: Log, table: Table, limit: SearchLimit, *, failed: bool) -> list[Hit]:
    """Find the hits of one log and weigh them.

    Args:
        log: the log.
        table: the rules.
        limit: when to stop searching.
        failed: the job is known to have failed.
    """
    return _discounted([*_rule_hits(log, table, limit, failed=failed), *_echoes(log)])


def _rule_hits(log: Log, table: Table, limit: SearchLimit, *, failed: bool) -> Iterator[Hit]:
    surroundings = Surroundings(log, failed=failed)
    repeats: dict[tuple[str, str], int] = {}
    for start, end in table.lines(log.data, limit):
        if limit.is_over(_SPARE_S):
            return
        line = parse(start, log.data[start:end])
        line = line._replace(text=_GUESSES.split(line.text, maxsplit=1)[0])
        matches = table.matches(line.text)
        if any(each.rule.role == "noise" for each in matches):
            continue
        code_only = any(m.match.groupdict().get("exception") in _CODE_ONLY for m in matches)
        for each in matches:
            if not is_near(each.rule, line, log):
                continue
            # Further repetitions of a line carry no information.
            key = (each.rule.id, line.source)
            repeats[key] = repeats.get(key, 0) + 1
            if repeats[key] <= _MAX_REPEATS:
                hit = _weighed(each, line, log, surroundings)
                # The exception's type is better evidence than the words of its message.
                penalty = 12 if code_only and each.rule.role == "cause" else 0
                yield hit._replace(score=hit.score - penalty)
        if HEADER in line.text:
            yield from _uncaught(line, log, table, surroundings, repeats)


def _echoes(log: Log) -> Iterator[Hit]:
    """Find the ``^C`` that a terminal echoes near the end of a log."""
    for line in reversed(log.tail(_ECHO_LINES)):
        if _ECHO.match(line.text):
            yield Hit(_INTERRUPTED.weight, _INTERRUPTED, line, log, {}, 0)
            return
        if is_progress(line):
            return


def _discounted(hits: list[Hit]) -> list[Hit]:
    """Lower the scores of hits that an earlier hit explains.

    Errors of the job's own code and of the network count less while the job is being stopped, a
    missing file counts less after a failed download, and so does a command that the job outlived.
    """
    ends = [hit for hit in hits if hit.rule.role == "end" and hit.score >= FIRM]
    stops = [hit.line.at for hit in ends if hit.rule.klass in _STOPS]
    last_stop = max(stops, default=-1)
    failed_fetches = [h.line.at for h in hits if h.rule.klass in _FETCH_CLASSES and h.score >= FIRM]
    cancels = [hit.line.at for hit in ends if hit.rule.klass == "cancelled_by_user"]

    def discounted(hit: Hit) -> Hit:
        causes: list[int] = []
        if hit.rule.role == "code" or hit.rule.klass == "cancelled_by_user":
            causes = stops
        elif hit.rule.klass in _NETWORK_CLASSES:
            causes = stops + cancels
        elif hit.rule.klass == "file_not_found":
            causes = failed_fetches
        is_explained = any(0 < hit.line.at - at < _SHUTDOWN_BYTES for at in causes)
        # A shell continues after a failed command, so the job did not end because of it.
        was_outlived = (
            hit.rule.klass in _SHELL_CLASSES
            and hit.line.at < last_stop
            and not is_programs_exception(hit.log, hit.line)
        )
        return hit._replace(score=hit.score - 25) if is_explained or was_outlived else hit

    return [discounted(hit) for hit in hits]


def is_near(rule: Rule, line: Line, log: Log) -> bool:
    """Whether a line and those around it meet the rule's conditions ``near`` and ``unless``."""
    above = [line, *log.before(line.at, _NEAR_LINES)] if rule.near or rule.unless else []
    if rule.near and not any(re.search(rule.near, each.text) for each in above):
        return False
    around = [*above, *log.after(line.at, _NEAR_LINES)] if rule.unless else []
    return not any(re.search(rule.unless, each.text) for each in around)


def _uncaught(
    header: Line,
    log: Log,
    table: Table,
    surroundings: Surroundings,
    repeats: dict[tuple[str, str], int],
) -> Iterator[Hit]:
    """Make a hit of a traceback whose exception matches no rule."""
    key = ("", header.source)
    repeats[key] = repeats.get(key, 0) + 1
    if repeats[key] > _MAX_REPEATS:
        return
    exception = tracebacks.exception_after(log, header)
    if exception is None:
        return
    line, name = exception
    if table.matches(line.text):
        return
    match = re.match("", "")
    assert match
    hit = _weighed(RuleMatch(_UNCAUGHT, match), line, log, surroundings)
    yield hit._replace(details={"exception": name, **hit.details})


def _weighed(rule_match: RuleMatch, line: Line, log: Log, surroundings: Surroundings) -> Hit:
    rule, match = rule_match
    details = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
    if line.source:
        details.setdefault("source", line.source.strip(" :"))
    score = rule.weight
    if score >= CERTAIN:
        score -= _doubt(rule, match, line, log)
        if rule.role != "end":
            score -= surroundings.progress_doubt(line)
        if rule.klass in _SHELL_CLASSES or line.text.startswith("fatal: "):
            score -= surroundings.output_doubt(line)
    return Hit(score, rule, line, log, details, match.start())


def _doubt(rule: Rule, match: re.Match[str], line: Line, log: Log) -> int:
    """How much the line itself and its traceback take from a rule's weight."""
    doubt = 0
    head = line.shown[: len(line.shown) - len(line.text) + match.start() + 40]
    if _FAILED_OP in line.text:
        doubt += 18
    elif not rule.is_warning:
        doubt += 60 if _HARMLESS.search(head) else 45 if _WARNING.search(head) else 0
    if _RETRY.search(line.text) and not _EXHAUSTED.search(line.text):
        doubt += 50 if not _RETRY.search(match[0]) else 0
    elif any(_RETRY_FOLLOWS.match(after.text) for after in log.after(line.at, 1)):
        doubt += 50
    if line.text.startswith("+ "):
        doubt += 50
    if INFO.search(head):
        doubt += 40 if "NCCL INFO" in head else 10
    if tracebacks.is_source(log, line):
        return doubt + (20 if tracebacks.replaces_exception(log, line) else 60)
    if rule.role == "code" and match.start() > 0 and line.text[: match.start()].strip("|+- "):
        doubt += 6
    if (
        rule.role in ("cause", "code", "consequence")
        and tracebacks.follow_up(log, line) == "handled"
    ):
        # a handler that fails is no evidence against the storage or the network
        doubt += 25 if rule.role == "code" else 2 if rule.retry in _RETRIABLE else 12
    if rule.role == "code" and tracebacks.is_ignored(log, line):
        doubt += 40
    if (
        rule.role == "code"
        and not line.text[match.start() :].partition(":")[2].strip()
        and tracebacks.while_handling(log, line)
    ):
        # an exception without a message is weaker evidence than the one it follows
        doubt += 18
    return doubt
