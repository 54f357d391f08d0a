"""Hits: the lines of a log that rules match, each with its weight.

The lines around a hit lower its weight: a warning, a retry, a traceback that caused another one, a
job that continued. Exceptions that the program handled do not count.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.lines import HEADER, Line, Log, parse
from pairun.diagnose.table import Found, Rule, Table, make_rule

CERTAIN = 40
"""The least weight of a hit that names a class."""

_SAME = 24
_LONG = 80
_SPARE_S = 1.0
_NEAR_LINES = 12

FIRM = 70
"""The least weight of a hit that changes the weights of others."""

_SHUTDOWN = 1 << 14
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
        "headline": "somebody pressed Ctrl-C",
        "warning": True,
    }
)
_CODE_ONLY = frozenset(
    ("AttributeError", "KeyError", "NameError", "UnboundLocalError", "ZeroDivisionError")
)
_AGAIN = frozenset(("retry", "retry_elsewhere"))
_STOPS = frozenset(("terminated_sigterm", "time_limit"))

_OF_NETWORKS = frozenset(
    (
        "network_unreachable",
        "nccl_system_error",
        "nccl_timeout",
        "peer_lost",
        "rendezvous_timeout",
    )
)
"""What every instance reports while a job is torn down."""

_KEEPS_AWAY = frozenset(("network_unreachable", "remote_auth", "service_quota"))
"""Failures that explain why a file is missing afterwards."""

_OF_COMMANDS = frozenset(
    ("command_not_found", "file_not_found", "module_not_found", "permission_denied")
)
"""What a shell goes on after."""
_WARNING = re.compile(
    r"(?<!NCCL )\bWARN(?:ING)?\b|\b[Ww]arn(?:ing)?:|^\[?W\d{4}|\[W ?\d{3,4}|\[W \w+\.cpp|\[warn"
)
_HARMLESS = re.compile(r"\w+Warning: |\bW tensorflow/")

_FAILED_OP = "OP_REQUIRES failed at"
"""TensorFlow says so of every operation that fails, always as a warning."""
_ECHO = re.compile(r"\^C(?! to )")
_INFO = re.compile(r"\b(?:INFO|DEBUG)\b|^\[?I\d{4}|\[I\d{0,4} |^I tensorflow")
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
"""What Ray lists whenever a worker is gone; nothing behind it was seen."""
_EXHAUSTED = re.compile(
    r"(?i)max(?:imum)? (?:number of )?retries|retries exceeded|giving up|gave up|retry failed after"
)
_PROGRESS = re.compile(
    rb"\d(?:it/s|s/it|ba/s| ?ex(?:amples)?/s| ?step/s|ms/step|s/step)"
    rb"|\b(?:loss|lr|acc(?:uracy)?|ppl|throughput|tokens/s)\b['\"]?\s*[=:]\s*[\[\-]?\d"
    rb"|\b[Ee]poch\b\W{0,3}\d|\b(?:[Ss]tep|[Ii]ter(?:ation)?)\b\W{0,3}\d+ ?[/\]:,|]"
)
_LOADING = re.compile(rb"(?i)load|fetch|map\b|map:|resolv|unpack|extract|tokeniz|filter")
_SUCCESS = re.compile(
    r"(?i)\b(?:training|evaluation|testing|benchmark|job|run|experiment|pipeline|inference|export)\b"
    r"(?: \w+)? (?:is |was |has )?(?:done|complete[d]?|finished|succeeded)\b"
    r"|\bfinished (?:training|evaluation|successfully)|\bcompleted successfully|\bsuccessfully (?:completed|finished)"
    r"|\ball (?:done|tests passed|\d+ tests)|\bexit(?:ed)?(?: with)?(?: code)?[ :=]+0\b"
    r"|\b(?:saved|saving) (?:the )?(?:final|best) (?:model|checkpoint)|\bTotal time: "
)
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: ")
TROUBLE = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?:: |$)|^(?:fatal|error|abort\w*)\b[: ](?! ?[\d.]+$)"
    r"|\b(?:FATAL|CRITICAL)\b|Traceback \(most recent|\bpanic: |^\*\*\* Aborted at"
    r"|^F\d{4} |^F [\w./-]{1,200}:\d+\]|[Aa]ssertion [`'].{1,160}' fail"
    r"|(?:exited|failed|finished) with (?:exit |return )?(?:code|status)[ :=]*[1-9-]",
)
ERROR_LEVEL = re.compile(r"^E\d{4} |\[E\d{3}")


class Hit(NamedTuple):
    """A line that says something.

    Attributes:
        score: what is left of the rule's weight.
        rule: the rule.
        line: the line.
        log: the log it is in.
        details: the captures.
        start: where in the line's text the rule's words begin.
    """

    score: int
    rule: Rule
    line: Line
    log: Log
    details: dict[str, str]
    start: int


def hits_in(log: Log, table: Table, until: float, *, failed: bool) -> list[Hit]:
    """The weighed hits of one log.

    Args:
        log: the log.
        table: the rules.
        until: when to stop searching, on the monotonic clock.
        failed: the job is known to have failed.
    """
    return _in_order([*_rule_hits(log, table, until, failed=failed), *_echoes(log)])


def _rule_hits(log: Log, table: Table, until: float, *, failed: bool) -> Iterator[Hit]:
    surroundings = Surroundings(log, failed=failed)
    seen: dict[tuple[str, str], int] = {}
    for start, end in table.lines(log.data, until):
        if time.monotonic() > until + _SPARE_S:
            return
        line = parse(start, log.data[start:end])
        line = line._replace(text=_GUESSES.split(line.text, maxsplit=1)[0])
        matches = table.matches(line.text)
        if any(each.rule.role == "noise" for each in matches):
            continue
        blunt = any(f.match.groupdict().get("exception") in _CODE_ONLY for f in matches)
        for each in matches:
            if not is_near(each.rule, line, log):
                continue
            # The same again and again says no more.
            key = (each.rule.id, line.source)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= _SAME:
                hit = _weighed(each, line, log, surroundings)
                # The type says more than the words of its message.
                less = 12 if blunt and each.rule.role == "cause" else 0
                yield hit._replace(score=hit.score - less)
        if HEADER in line.text:
            yield from _uncaught(line, log, table, surroundings, seen)


def _echoes(log: Log) -> Iterator[Hit]:
    """What a terminal shows of Ctrl-C near the end of a log."""
    for line in reversed(log.tail(_ECHO_LINES)):
        if _ECHO.match(line.text):
            yield Hit(_INTERRUPTED.weight, _INTERRUPTED, line, log, {}, 0)
            return
        if is_progress(line):
            return


def _in_order(hits: list[Hit]) -> list[Hit]:
    """What the job's own code, and the network, said while it was being stopped says less.

    So does what is missing after it could not be fetched, and a command that the job outlived.
    """
    ends = [hit for hit in hits if hit.rule.role == "end" and hit.score >= FIRM]
    stops = [hit.line.at for hit in ends if hit.rule.klass in _STOPS]
    last = max(stops, default=-1)
    unfetched = [h.line.at for h in hits if h.rule.klass in _KEEPS_AWAY and h.score >= FIRM]
    cancels = [hit.line.at for hit in ends if hit.rule.klass == "cancelled_by_user"]

    def less(hit: Hit) -> Hit:
        before: list[int] = []
        if hit.rule.role == "code" or hit.rule.klass == "cancelled_by_user":
            before = stops
        elif hit.rule.klass in _OF_NETWORKS:
            before = stops + cancels
        elif hit.rule.klass == "file_not_found":
            before = unfetched
        came_of_it = any(0 < hit.line.at - at < _SHUTDOWN for at in before)
        # A shell goes on after a command that failed: it was not what the job ended of.
        lived_on = (
            hit.rule.klass in _OF_COMMANDS
            and hit.line.at < last
            and not _ended_a_program(hit.log, hit.line)
        )
        return hit._replace(score=hit.score - 25) if came_of_it or lived_on else hit

    return [less(hit) for hit in hits]


def is_near(rule: Rule, line: Line, log: Log) -> bool:
    """Whether the lines around a line, or the line itself, hold what its rule asks for."""
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
    seen: dict[tuple[str, str], int],
) -> Iterator[Hit]:
    """The exception of a traceback that no rule knows."""
    key = ("", header.source)
    seen[key] = seen.get(key, 0) + 1
    if seen[key] > _SAME or (exception := tracebacks.exception_after(log, header)) is None:
        return
    line, name = exception
    if table.matches(line.text):
        return
    match = re.match("", "")
    assert match
    hit = _weighed(Found(_UNCAUGHT, match), line, log, surroundings)
    yield hit._replace(details={"exception": name, **hit.details})


def _weighed(rule_match: Found, line: Line, log: Log, surroundings: Surroundings) -> Hit:
    rule, match = rule_match
    details = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
    if line.source:
        details.setdefault("source", line.source.strip(" :"))
    score = rule.weight
    if score >= CERTAIN:
        score -= _doubts(rule, match, line, log)
        if rule.role != "end":
            score -= surroundings.went_on(line)
        if rule.klass in _OF_COMMANDS or line.text.startswith("fatal: "):
            score -= surroundings.outlived(line)
    return Hit(score, rule, line, log, details, match.start())


def _doubts(rule: Rule, match: re.Match[str], line: Line, log: Log) -> int:
    """What the line itself, and the traceback it is in, take from a rule's weight."""
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
    if _INFO.search(head):
        doubt += 40 if "NCCL INFO" in head else 10
    if tracebacks.is_source(log, line):
        return doubt + (20 if tracebacks.stands_in(log, line) else 60)
    if rule.role == "code" and match.start() > 0 and line.text[: match.start()].strip("|+- "):
        doubt += 6
    if (
        rule.role in ("cause", "code", "consequence")
        and tracebacks.follow_up(log, line) == "handled"
    ):
        # a handler that fails itself says nothing of the storage or the network
        doubt += 25 if rule.role == "code" else 2 if rule.retry in _AGAIN else 12
    if rule.role == "code" and tracebacks.is_ignored(log, line):
        doubt += 40
    if (
        rule.role == "code"
        and not line.text[match.start() :].partition(":")[2].strip()
        and tracebacks.while_handling(log, line)
    ):
        # without a word of its own it says less than what it came of
        doubt += 18
    return doubt


def _ended_a_program(log: Log, line: Line) -> bool:
    """Whether a line is the exception of a program, not what a command of a script said.

    ``python -c`` is such a command, and so is conda, whose words only look like an exception.
    """
    frame = tracebacks.place(log, line)
    if frame is not None:
        return frame.file != "<string>"
    of_conda = line.text.startswith(("CommandNotFoundError: ", "CondaError: "))
    return bool(_RAISED.match(line.text)) and not of_conda


class Surroundings:
    """Whether a job continued after a line.

    Args:
        log: its log.
        failed: it is known that the job failed.
    """

    def __init__(self, log: Log, *, failed: bool = False) -> None:
        self._log = log
        self._failed = failed
        self._known: dict[int, int] = {}
        tail = log.tail(25)
        ends = [n for n, line in enumerate(tail) if _SUCCESS.search(line.text)]
        self.succeeded_at = tail[ends[-1]].at if ends else -1
        behind = tail[ends[-1] + 1 :] if ends else []
        if any(TROUBLE.search(each.text) or ERROR_LEVEL.search(each.text) for each in behind):
            self.succeeded_at = -1

    def went_on(self, line: Line) -> int:
        """What to take from a hit for what came after it."""
        if line.at not in self._known:
            self._known[line.at] = self._weigh(line)
        return self._known[line.at]

    def outlived(self, line: Line) -> int:
        """What to take from a line that ends no traceback for what was printed after it."""
        if _ended_a_program(self._log, line):
            return 0
        after = [a for a in self._log.after(line.at, 12) if a.text.strip()]
        if len(after) < 2:
            return 0
        informed = sum(bool(_INFO.search(a.shown) or _INFO.search(a.text)) for a in after)
        return 16 if informed < 2 else 35

    def _weigh(self, line: Line) -> int:
        at = line.at
        data = self._log.data
        count = 0
        start = data.find(b"\n", at) + 1
        if not start:
            return 0
        for progress in _PROGRESS.finditer(data, start, start + (1 << 15)):
            begin = (
                max(data.rfind(b"\n", 0, progress.start()), data.rfind(b"\r", 0, progress.start()))
                + 1
            )
            if not _LOADING.search(data, begin, min(progress.start(), begin + 200)):
                count += 1
        if self.succeeded_at > at:
            return 60 if count >= 2 else 35
        if 4 <= count < 40:
            # what a program printed before may be flushed after its traceback
            return 35 if tracebacks.place(self._log, line) else 55
        if count >= 40:
            return 60
        doubt = 18 if count >= 2 else 12 * count
        if data.count(b"\n", at, at + (1 << 16)) > _LONG and not tracebacks.place(self._log, line):
            # whoever printed it, it did not end the program
            doubt += 10 if self._failed else 45
        return doubt


def is_progress(line: Line) -> bool:
    """Whether a line shows the progress of training."""
    return bool(_PROGRESS.search(line.shown.encode()))
