"""Finds the cause of a failure in a log: weighs what the rules match, and ranks it.

Every line that a rule matches is a hit with a weight. The lines around it lower the weight: a
warning, a retry, a traceback that caused another one, a job that continued. The heaviest hit names
the class. Of two equal hits the earlier one wins, because the cause fails before its consequences.
Exceptions that the program handled do not count.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances, clues
from pairun.diagnose.classes import CLASSES, EXIT_CODES, NONE, UNKNOWN
from pairun.diagnose.lines import HEADER, Line, Log, parse
from pairun.diagnose.table import Found, Rule, Table, make_rule

DEADLINE_S = 2.0
"""How long a diagnosis may take; what was found until then is weighed."""

CERTAIN = 40
"""Below this nothing is said."""

ADVISED = 60
"""Below this nobody is told not to run it again."""

_SAME = 24
_LONG = 80
_SPARE_S = 1.0
_NEAR_LINES = 12
_FIRM = 70
"""From here on a hit says something of other lines, too."""

_SHUTDOWN = 1 << 14
_TAIL_LINES = 5
_ECHO_LINES = 40
_TEXT = 400
_HEAD = 1 << 16
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
"""What everybody complains of when a job is torn down."""

_KEEPS_AWAY = frozenset(("network_unreachable", "remote_auth", "service_quota"))
"""What a file that is missing afterwards could not be fetched for."""

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
_NO_TEXT = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: ")
_TROUBLE = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?:: |$)|^(?:fatal|error|abort\w*)\b[: ](?! ?[\d.]+$)"
    r"|\b(?:FATAL|CRITICAL)\b|Traceback \(most recent|\bpanic: |^\*\*\* Aborted at"
    r"|^F\d{4} |^F [\w./-]{1,200}:\d+\]|[Aa]ssertion [`'].{1,160}' fail"
    r"|(?:exited|failed|finished) with (?:exit |return )?(?:code|status)[ :=]*[1-9-]",
)
_ERROR_LEVEL = re.compile(r"^E\d{4} |\[E\d{3}")
_COMPLAINT = re.compile(rf"{_ERROR_LEVEL.pattern}|^E [\w./-]{{1,200}}:\d+\]|^Failed to ")
"""An error in a logger's words; who goes on after it did not fail."""


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


class Evidence(NamedTuple):
    """What a diagnosis rests on; a line of 0 where it is no line of a log."""

    file: str
    line: int
    text: str


class Diagnosis(NamedTuple):
    """Why it died.

    Attributes:
        klass: a class of failure, ``none`` or ``unknown``.
        fault: whose fault it is.
        retry: whether to run it again, or None where nobody should be told.
        confidence: 0 to 1.
        headline: one line for people.
        advice: what to do.
        evidence: what it rests on, the most important first.
        details: what the evidence names.
        alternatives: other classes, with their confidence.
        rule: the rule that decided, or nothing.
    """

    klass: str
    fault: str
    retry: str | None
    confidence: float
    headline: str
    advice: str
    evidence: tuple[Evidence, ...]
    details: dict[str, str]
    alternatives: tuple[tuple[str, float], ...]
    rule: str = ""

    def data(self) -> dict[str, Any]:
        """Plain data, as ``pairun diagnose --json`` prints it."""
        return {
            "class": self.klass,
            "fault": self.fault,
            "retry": self.retry,
            "confidence": self.confidence,
            "headline": self.headline,
            "advice": self.advice,
            "evidence": [e._asdict() for e in self.evidence],
            "details": self.details,
            "alternatives": [{"class": k, "confidence": c} for k, c in self.alternatives],
            "rule": self.rule,
        }


def diagnose(
    logs: Sequence[Log],
    table: Table,
    facts: Circumstances | None = None,
    deadline_s: float = DEADLINE_S,
) -> Diagnosis:
    """Why a job died.

    Args:
        logs: what it printed; of several instances each its own.
        table: the rules.
        facts: what else is known.
        deadline_s: how long it may take, in seconds.
    """
    facts = facts or Circumstances()
    until = time.monotonic() + deadline_s / 2
    if facts.error_file:
        logs = [*logs, Log(facts.error_file.encode(), "error file")]
    failed = facts.exit_code not in (None, 0)
    hits = [
        hit
        for log in logs
        for hit in _in_order([*_hits(log, table, until, failed=failed), *_echoes(log)])
    ]
    hits.sort(key=lambda h: -h.score)
    return _verdict(hits, logs, table, facts)


# --- hits ----------------------------------------------------------------------------------------


def _hits(log: Log, table: Table, until: float, *, failed: bool) -> Iterator[Hit]:
    surroundings = _Surroundings(log, failed=failed)
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
        if _is_progress(line):
            return


def _in_order(hits: list[Hit]) -> list[Hit]:
    """What the job's own code, and the network, said while it was being stopped says less.

    So does what is missing after it could not be fetched, and a command that the job outlived.
    """
    ends = [hit for hit in hits if hit.rule.role == "end" and hit.score >= _FIRM]
    stops = [hit.line.at for hit in ends if hit.rule.klass in _STOPS]
    last = max(stops, default=-1)
    unfetched = [h.line.at for h in hits if h.rule.klass in _KEEPS_AWAY and h.score >= _FIRM]
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
    surroundings: _Surroundings,
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


def _weighed(rule_match: Found, line: Line, log: Log, surroundings: _Surroundings) -> Hit:
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


class _Surroundings:
    """Whether a job went on after a line.

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
        if any(_TROUBLE.search(each.text) or _ERROR_LEVEL.search(each.text) for each in behind):
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


# --- verdict -------------------------------------------------------------------------------------


def _verdict(hits: list[Hit], logs: Sequence[Log], table: Table, facts: Circumstances) -> Diagnosis:
    scores: dict[str, int] = {}
    for hit in hits:
        if hit.score > 0:
            scores.setdefault(hit.rule.klass, hit.score)
    words: dict[str, str] = {}
    for klass, weight, told in clues(facts):
        words[klass] = told
        scores[klass] = max(scores.get(klass, 0), weight)
    code = facts.exit_code
    by_code = EXIT_CODES.get(code) if code is not None else None
    if by_code:
        klass, weight = by_code
        before = scores.get(klass, 0)
        scores[klass] = min(98, before + 3) if before >= CERTAIN else max(before, weight)
        words.setdefault(klass, f"the exit code is {code}")
    if code == 0:
        # Whatever was said on the way, it ended well; only what the kernel saw counts beside it.
        scores = {k: v for k, v in scores.items() if k in words}
    scores.pop(UNKNOWN, None)
    # of equal ones the first hit's
    ranked = sorted(scores, key=lambda k: -scores[k])
    if not ranked or scores[ranked[0]] < CERTAIN:
        return _undecided(hits, ranked, scores, logs, table, facts)
    best = ranked[0]
    chosen = [h for h in hits if h.rule.klass == best and h.score > 0]
    others = tuple((k, _confidence(scores[k])) for k in ranked[1:4] if scores[k] >= CERTAIN // 2)
    return _decided(best, scores[best], chosen, words, others)


def _decided(
    klass: str,
    score: int,
    hits: list[Hit],
    words: dict[str, str],
    others: tuple[tuple[str, float], ...],
) -> Diagnosis:
    kind = CLASSES[klass]
    rule = hits[0].rule if hits else None
    evidence = [_evidence(h) for h in _distinct(hits)]
    details = dict(hits[0].details) if hits else {}
    for hit in hits[1:4]:
        details = {**hit.details, **details}
    if hits and hits[0].rule.role in ("cause", "code"):
        frame = tracebacks.place(hits[0].log, hits[0].line)
        if frame is not None:
            details.update(code_file=frame.file, code_line=str(frame.line))
    if klass in words:
        told = Evidence("", 0, words[klass])
        evidence = [*evidence, told] if evidence else [told]
    retry = rule.retry if rule else kind.retry
    if score < ADVISED and retry in ("after_fix", "never"):
        retry = None
    return Diagnosis(
        klass=klass,
        fault=rule.fault if rule else kind.fault,
        retry=retry,
        confidence=_confidence(score),
        headline=_headline(rule, kind.meaning, details, hits),
        advice=rule.tell if rule else kind.advice,
        evidence=tuple(evidence),
        details=details,
        alternatives=others,
        rule=rule.id if rule else "",
    )


def _headline(rule: Rule | None, meaning: str, details: dict[str, str], hits: list[Hit]) -> str:
    if rule is not None and rule.headline:
        try:
            return rule.headline.format_map(details)
        except (KeyError, ValueError, IndexError):
            pass  # an alternative of the pattern without that capture
    if rule is not None and rule.role == "code":
        return f"{meaning}: {hits[0].line.text.strip()[:200]}"
    return meaning


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    out: list[Hit] = []
    for hit in hits:
        if all(hit.line.text != h.line.text for h in out):
            out.append(hit)
        if len(out) == 3:
            break
    return out


def _evidence(hit: Hit) -> Evidence:
    shown = hit.line.shown
    # of a long line the part that tells
    begin = len(shown) - len(hit.line.text) + hit.start - _TEXT // 4 if len(shown) > _TEXT else 0
    text = shown[max(begin, 0) :].strip()[:_TEXT]
    return Evidence(hit.log.name, hit.log.number(hit.line.at), text)


def _undecided(
    hits: list[Hit],
    ranked: list[str],
    scores: dict[str, int],
    logs: Sequence[Log],
    table: Table,
    facts: Circumstances,
) -> Diagnosis:
    """Nothing is certain: nothing is wrong, or nobody knows."""
    tails = [(log, line) for log in logs for line in log.tail(_TAIL_LINES)]
    shown = tuple(
        Evidence(log.name, log.number(line.at), line.shown.strip()[:_TEXT]) for log, line in tails
    )
    trouble = facts.exit_code not in (None, 0)
    unread = _unread(logs)
    if facts.exit_code is None:
        trouble = any(_ends_in_trouble(log, table) for log in logs)
    well = facts.exit_code == 0 or all(map(_ends_well, logs))
    klass = UNKNOWN if trouble else NONE
    kind = CLASSES[klass]
    headline, advice = kind.meaning, kind.advice
    if unread and facts.exit_code != 0:
        (headline, advice), shown = unread, ()
    if not trouble:
        shown = ()
        if hits and hits[0].score >= _FIRM and facts.exit_code == 0:
            # As of `program | tee`: a shell tells of the last command only.
            headline = f"it ended with 0, but says: {_named(hits[0])}"
            advice = "see whether the exit code is that of the program itself (set -o pipefail)"
            shown = (_evidence(hits[0]),)
            well = False
    return Diagnosis(
        klass=klass,
        fault=kind.fault,
        retry=None,
        confidence=0.3 if trouble or (unread and facts.exit_code is None) else 0.9 if well else 0.7,
        headline=headline,
        advice=advice,
        evidence=shown,
        details={} if facts.exit_code is None else {"exit_code": str(facts.exit_code)},
        alternatives=tuple((k, _confidence(scores[k])) for k in ranked[:3] if scores[k] > 0),
    )


def _named(hit: Hit) -> str:
    return _headline(hit.rule, CLASSES[hit.rule.klass].meaning, hit.details, [hit])


def _unread(logs: Sequence[Log]) -> tuple[str, str] | None:
    """Headline and advice where there is nothing to read."""
    heads = [log.data[:_HEAD] for log in logs]
    if not any(head.strip() for head in heads) and not any(log.tail(1) for log in logs):
        return "the log is empty", "see where the job's output went"
    if all(len(_NO_TEXT.findall(head)) * 20 > len(head) for head in heads):
        return "the log is no text", "unpack it first, as with zcat"
    return None


def _ends_in_trouble(log: Log, table: Table) -> bool:
    """Whether something is wrong at the end of a log that no rule knows."""
    if _Surroundings(log).succeeded_at >= 0:
        return False
    tail = [
        line
        for line in log.tail(12)
        if not any(match.rule.role == "noise" for match in table.matches(line.text))
    ]
    went_on = max((n for n, line in enumerate(tail) if _is_progress(line)), default=-1)
    return tracebacks.is_open(log) or any(
        not tracebacks.is_ignored(log, line)
        for n, line in enumerate(tail)
        if _TROUBLE.search(line.text) or (n > went_on and _COMPLAINT.search(line.text))
    )


def _ends_well(log: Log) -> bool:
    """Whether success or progress is what a log shows last."""
    return _Surroundings(log).succeeded_at >= 0 or any(map(_is_progress, log.tail(_TAIL_LINES)))


def _is_progress(line: Line) -> bool:
    return bool(_PROGRESS.search(line.shown.encode()))


def _confidence(score: int) -> float:
    return round(min(max(score, 1), 98) / 100, 2)
