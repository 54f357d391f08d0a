"""Signals from the lines of a log that rules match, each with a weight.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a
job that continued. A handled exception weighs less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pairun.diagnose import tracebacks
from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.signals import CERTAIN, Signal
from pairun.diagnose.surroundings import INFO, Surroundings, is_progress
from pairun.diagnose.table import Rule, RuleMatch, Table, make_rule

FETCH_CLASSES = frozenset(("network_unreachable", "remote_auth", "service_quota"))
"""Failures to get something from a server outside of the job."""

_OUTAGES, _OUTAGE_LINES = 2, 8
_HEALING = FETCH_CLASSES | {"storage_io_error"}
"""Failures of a server that may come back while the program waits."""

_RETRIABLE = frozenset(("retry", "retry_elsewhere"))

_WARNING = re.compile(
    r"(?<!NCCL )\bWARN(?:ING)?\b|\b[Ww]arn(?:ing)?:|^\[?W\d{4}|\[W ?\d{3,4}|\[W\]|\[W \w+\.cpp|\[warn"
)
_HARMLESS = re.compile(r"\w+Warning: |\bW tensorflow/")

_FAILED_OP = "OP_REQUIRES failed at"
"""TensorFlow logs this as a warning for every operation that fails."""

_RETRY = re.compile(
    r"(?i)\bretry(?:ing)?\b(?!-after)|\bretries left|\bwill (?:be )?(?:retr|try again|continue|skip|ignore)"
    r"|\battempt \d+ ?(?:/|of) ?\d+|\bfall(?:ing)? ?back\b|(?<!Error syncing pod, )\bskipp(?:ing|ed)\b|\bignor(?:ing|ed|e)\b"
    r"|\bfrom scratch\b|\busing (?:the )?(?:default|system temp)|\bgoing to \S+ instead\b|\b(?:try|attempt)ing (?:another|the next|(?:port )?\d{2,5})\b"
    r"|\b(?:exists?|found|missing|available)(?: yet)?\W{1,3}(?:download|creat|generat|build|comput|initiali[sz])ing\b|\bcaught (?!signal|collective|\w+ in )|\bre-?connect(?:ing|ed)\b|\brecovered\b|\b(?:safely|harmless)\b|\btrying again\b|\bnon-?fatal\b"
    r"|\b(?:reading|loading|using|taking|trying) (?:[\w'-]+ ){1,6}instead\b"
    r"|[;,.] (?:using|disabling|defaulting to|will use) "
    r"|\b(?:was |were )?(?:refreshed|renewed) (?:automatically|it|successfully)|\bnew (?:session|connection|token|lease)s? (?:was )?(?:opened|created|established|obtained|fetched)"
    r"|\bresumed (?:from|at) (?:step|epoch|iteration|checkpoint)\b"
    r"|\b(?:continuing|proceeding|running|going on) without\b|\bwill not be (?:logged|recorded|collected|measured|shown|reported|tracked)\b"
)
_RETRY_FOLLOWS = re.compile(
    r"(?:.* will be retried\b|\W*(?:\w+ ?[:|-] ?)?(?:[Rr]etrying|[Ww]ill (?:re)?try|[Tt]rying again|[Ff]alling back"
    r"|[Uu]sing (?:the |a )?(?:local|cached|fallback)|[Cc]ontinuing without|'.{1,300}' has appeared)\b)"
    r"(?!.*\b(?P<attempt>\d+) ?(?:/|of) ?(?P=attempt)\b)"
)

_HEALED = re.compile(
    r"(?i)\b(?:error|problem|outage|connection)\b.{0,40}\b(?:resolved|restored|recovered|re-?established)\b"
    r"|^\W*(?:[\w-]{1,40}\W{1,3})?(?:re)?connected\b(?! host)|\b(?:server|service|endpoint|database|broker|backend) is (?:now )?(?:up|ready|reachable)\b|; re-?connected\b|\. Reconnected\b"
    r"|\bnfs: server \S+ OK\b"
)
"""A client reports that it reaches its server again."""

_EXHAUSTED = re.compile(
    r"(?i)max(?:imum)? (?:number of )?retries|retries exceeded|giving up|gave up|retry failed after"
)


_CONDITIONAL = re.compile(
    r"(?i)\b(?:(?<!\bas )if|in case|whenever|unless|to avoid|to prevent|can cause|may cause|might cause|could cause"
    r"|^(?:note: )?when|can lead to|may lead to|might lead to|may result in|can result in|typically happens)\b"
)
"""Advice on what may happen, not a report of it, if it precedes the match in the same sentence."""

_ZERO = re.compile(r"\w{0,12}(?:[\"']?\s{0,2}(?<!Error)[:=]\s{0,2}|(?<=s) )0(?![\w.:/-]|,\d)")
"""The number of errors that a monitor counts, if it follows the match."""

_NCCL_TRACE = re.compile(r"\.cc:\d+ -> \d|(?i:fail|abort|error)")
"""NCCL logs the place of an error as information."""

_OPTIONAL = re.compile(
    r"(?i)^(?!\w*(?:error|exception)\b).{0,120}\b(?:could not|cannot|can't|failed to|unable to) import\b"
)
"""A program reports that it tried to import a package; it does not raise."""

_NEGATED = re.compile(r"(?i)\b(?:no|without(?: a| any)?|zero)\s+(?:further |more )?$")
"""The words before a match that turn it into its opposite."""

_CODE = re.compile(r"\s*(?:except \w[\w., ()]{0,120}(?: as \w+)?:|raise \w[\w.]{0,80}\()")
"""The form of a line of Python's source code."""

_CAUGHT = re.compile(r"\b[Cc]aught \w+ in (?:DataLoader|pin memory|replica|\w+ (?:worker|process))")
_ORIGINAL = "Original Traceback"
"""PyTorch's wrapper of an exception of a worker process or thread, which follows it."""

_SENTENCE_END = re.compile(r"[.!?;] ")

_QUOTED = re.compile(r"\s*\d+ \| ")
"""The form in which compilers and linters quote source code."""


def is_handled(line: Line) -> bool:
    """Whether a line says that the program retries, or continues without what failed."""
    return bool(_RETRY.search(line.text)) and not _EXHAUSTED.search(line.text)


def is_mild(line: Line) -> bool:
    """Whether a line is a warning or less, a condition, or source code."""
    forms = (_WARNING, _HARMLESS, INFO, _CODE, _CONDITIONAL)
    return any(each.search(line.shown) for each in forms)


def _is_conditional(match: re.Match[str]) -> bool:
    """Whether the text describes the match as merely possible."""
    upto = (match.string[: match.start()], match.string[: match.end()])
    return any(_CONDITIONAL.search(_SENTENCE_END.split(text)[-1]) for text in upto)


def _is_healed(rule: Rule, match: re.Match[str], line: Line, log: Log) -> bool:
    """Whether a later line says that the server is back.

    A file server that was away several times is a failure all the same.
    """
    if rule.klass not in _HEALING:
        return False
    if rule.klass == "storage_io_error":
        before = sum(match[0] in above.text for above in log.before(line.at, _OUTAGE_LINES))
        if before >= _OUTAGES:
            return False
    return any(_HEALED.search(after.text) for after in log.after(line.at, 24))


def penalty_of(rule: Rule, match: re.Match[str], line: Line, log: Log) -> int:
    """How much the line and its traceback reduce a rule's weight."""
    doubt = 0
    head = line.shown[: len(line.shown) - len(line.text) + match.start() + 40]
    if _FAILED_OP in line.text:
        doubt += 18
    elif not rule.is_warning:
        warned = 45 if rule.role == "end" else 52
        doubt += 60 if _HARMLESS.search(head) else warned if _WARNING.search(head) else 0
    if is_handled(line):
        doubt += 55 if not _RETRY.search(match[0]) else 0
    elif any(_RETRY_FOLLOWS.match(after.text) for after in log.after(line.at, 1)):
        doubt += 55
    if (
        line.text.startswith("+ ")
        or _QUOTED.match(line.text)
        or _NEGATED.search(match.string[: match.start()])
    ):
        doubt += 55
    if _is_healed(rule, match, line, log):
        doubt += 55
    if rule.klass == "module_not_found" and _OPTIONAL.match(line.text):
        doubt += 20
    if _CAUGHT.search(line.text) and any(_ORIGINAL in a.text for a in log.after(line.at, 3)):
        doubt += 55
    if _is_conditional(match):
        doubt += 60
    if rule.role != "code" and _ZERO.match(line.text, match.end()):
        doubt += 60
    if INFO.search(head):
        is_trace = rule.klass.startswith("nccl_") and _NCCL_TRACE.search(line.text)
        doubt += 60 if "NCCL INFO" in head and not is_trace else 30
    if tracebacks.is_source(log, line):
        return doubt + (20 if tracebacks.replaces_exception(log, line) else 60)
    if _CODE.match(line.text) and not any('File "' in b.text for b in log.before(line.at, 1)):
        return doubt + 60
    if rule.role == "code" and match.start() > 0 and line.text[: match.start()].strip("|+- "):
        doubt += 6
    if (
        rule.role in ("cause", "code", "consequence")
        and tracebacks.follow_up(log, line) == "handled"
    ):
        # a failed handler is no evidence against the storage or the network
        doubt += 25 if rule.role == "code" else 2 if rule.retry in _RETRIABLE else 12
    if rule.role in ("code", "consequence") and tracebacks.is_ignored(log, line):
        doubt += 40
    return doubt


_MAX_REPEATS = 24
_MATCH_CHARS = 80
_NEAR_LINES = 24
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
        doubt = self._surroundings.outlived_doubt(reported.at)
        return reported._replace(weight=reported.weight - doubt)

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
                score -= self._surroundings.outlived_doubt(line.at)
            else:
                score -= self._surroundings.progress_doubt(line)
                score -= self._surroundings.served_doubt(line, is_cause=rule.role != "code")
            if rule.role == "code":
                score -= self._surroundings.stray_doubt(line)
            if rule.klass in SHELL_CLASSES or line.text.startswith("fatal: "):
                score -= self._surroundings.output_doubt(line)
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


def echoes(log: Log) -> Iterator[Signal]:
    """Find the ``^C`` that a terminal echoes near the end of a log."""
    for line in reversed(log.tail(_ECHO_LINES)):
        if _ECHO.match(line.text):
            yield _hit(_INTERRUPTED, _INTERRUPTED.weight, line, log)
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
