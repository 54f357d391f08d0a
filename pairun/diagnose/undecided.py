"""The diagnosis if no class has enough weight.

It is ``none`` only if the exit code is 0, or if the log ends well; else it is ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import (
    EMPTY,
    NO_TEXT,
    QUIET,
    Diagnosis,
    confidence_of,
    evidence_of,
    headline,
    of_class,
    of_line,
)
from pairun.diagnose.findings import Findings
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import FIRM, Signal
from pairun.diagnose.surroundings import (
    ERROR_LEVEL,
    TROUBLE,
    Surroundings,
    is_answered,
    is_handled,
    is_mild,
    is_progress,
)
from pairun.diagnose.systemfacts import facts_of
from pairun.diagnose.table import Table

_UNREADABLE = {
    EMPTY: "check where the job's output went",
    NO_TEXT: "if it is packed, unpack it first",
}

_TAIL_LINES = 5
_MUCH_PROGRESS = 4
_HEAD_BYTES = 1 << 16
_BINARY = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")

_PERHAPS, _FOR_SURE = 1, 2
_LAST_LINES = 3
_MANY_LINES = 400
_ERROR = re.compile(
    rf"{ERROR_LEVEL.pattern}|^E [\w./-]{{1,200}}:\d+\]|^Failed to |\b[Ff]atal [Ee]rror:|\[ABORT\]|\bdid not complete successfully\b"
)
"""An error in a logger's line."""

_LAST_WORDS = re.compile(
    r"^(?:Unable to|Could not|Cannot) (?!import)|^(?:ERROR|CRITICAL|FATAL) +(?=[A-Za-z])"
    r"|^\W{0,3}(?:\[?(?:ERROR|error|Error)\]?|(?:[\w./-]{1,80}: ){1,2}(?:error|ERROR|fatal))(?:[:|]| - |\] ?)(?! ?[\d.]+$)"
    r"|(?:^|[|\s\[])ERROR(?:[\]|:]| [|-]| +[\w./-]{1,80}:\d+)"
    r"|\b(?:unexpected|unhandled|internal|fatal|unknown) (?:error|exception)\b(?! (?:rate|handl))"
)
"""An error in any format; it counts only among a log's last lines."""

_NOTHING_BAD = re.compile(
    r"(?i)\b(?:no|0|zero|without|nothing) (?:\S+ ){0,2}?(?:errors?|to \w+|waiting|fail\w*|corrupt\w*|lost|dead|problems?|changes|action)\b"
    r"|\berrors?\b.*\b0$|\b0 of \d|\b\w+(?:[:=}] {0,9}(?:0|none|false|n/a)\b| 0(?= |$))"
)
"""A count of errors that is zero."""

_BAD = re.compile(
    r"(?i)(?<![\w.'\"-])(?:(?<!on )errors?!?:?(?! checks| messages| budget)|fatal|abort(?:ed|ing)?|crash(?:ed)?|fail(?:ed|ures?)"
    r"|kill(?:ed|ing)|no|not|nothing|\w+n't|cannot|unable to|never|none|denied|refus(?:ed|ing)|in(?:valid|accessible)"
    r"|un(?:known|expected|safe|defined|declared|supported|reachable)|uncorrect(?:able|ed)|corrupt(?:ed)?|missing|mismatch|exhausted"
    r"|exceed(?:ed|s)|full|must|below|older?|another|preempted|evict(?:ed|ing)|interrupted|stop(?:ped)?|stalled|stuck|hung"
    r"|terminat\w+|cancel\w*|fault|exception|trap|sig(?:nal|segv)|segv|bad(?:ly)?|broken|lost|vanished|offline|inactive|dropp\w+"
    r"|nan|out of|too \w+|used up|in use|busy|instead of|expected|timed out|non-?zero|diverged|died|remov\w+|reject\w+|needs?)"
    r"(?!\.\w|[\w=/'\"-])|[a-z](?:Error|Exception|BackOff)\b|_(?:FAILURE|ERROR)"
)
"""A word of a problem."""

_WELL = re.compile(
    r"(?i)(?<![\w'-])(?:ok(?:ay)?|done|ready|pass(?:ed|es)?|clean(?:ly)?|saved|wr(?:ote|itten)|finish(?:ed|es|ing)?|complete[ds]?|succe\w+"
    r"|healthy|fine|green|normal(?:ly)?|up|start(?:ed|s|ing)?|running|serv(?:ing|ed)|listening|installed|built|created?|configured"
    r"|mounted|open(?:ed)?|connected|(?:(?:down|up)?load|fetch)(?:ed|ing)|processed|converted|exported|converged|continu\w+|going on|resum\w+"
    r"|correct(?:ed|able)|resolved|restored|recovered|reinstated|reached|acquired|renewed|registered|allocated|enabled|allowed"
    r"|selected|verified|applied|submitted|using|worked|(?:good)?bye|already|optional|deprecated|setting up)(?!\.\w|[\w=/'\"-])"
    r"|\b100 ?%|\b(\d+)(?: ?/ ?| of )\1\b|\b\d[\d.,]* ?(?:[mu]?s|sec\w*|\w{1,6}/s(?:ec)?)\b|[$#] ?(?:exit)?$|\b\d{1,3}:\d\d(?::\d\d)?\b"
    r"|\b(?:step|epoch|episode|iter\w*|shard|batch) \d|(?:loss|acc(?:uracy)?|reward\w*|bandwidth|usage|rate|size)\b.{0,30}?\d|^\|.*\|$"
)
"""A word of success, or a measurement."""


def undecided(
    signals: Sequence[Signal],
    ranked: Sequence[tuple[str, int]],
    findings: Sequence[Findings],
    table: Table,
    facts: Circumstances,
) -> Diagnosis:
    """Decide between ``none`` and ``unknown``.

    Args:
        signals: of all logs, heaviest first.
        ranked: the classes and their weights, heaviest first.
        findings: of each log.
        table: the rules.
        facts: known besides the logs.
    """
    logs, code = [each.log for each in findings], facts.exit_code
    shown = tuple(of_line(log, line) for log in logs for line in log.tail(_TAIL_LINES))
    unreadable = what_is_no_text(logs)
    lines = _TAIL_LINES * 2 if code is None else _MANY_LINES
    complaints = [(each.log, _complaint_of(each, table, lines)) for each in findings]
    found = tuple(of_line(log, line) for log, line in complaints if line is not None)
    shown = tuple(dict.fromkeys((*found, *shown)))
    ends = [] if unreadable else [_end_of(log, table) for log in logs]
    failed = code is None and (bool(found) or any(tracebacks.is_open(log) for log in logs))
    klass = NONE if code == 0 or (code is None and not failed and any(ends)) else UNKNOWN
    said, advice = CLASSES[klass].meaning, CLASSES[klass].advice
    confidence = 0.3 if klass == UNKNOWN else 0.9
    if unreadable and code != 0:
        said, advice, shown = unreadable, _UNREADABLE[unreadable], ()
    elif klass == UNKNOWN and code is None and not failed:
        shown = tuple(dict.fromkeys((*shown[-1:], *shown)))
        said, advice = QUIET, "add the job's exit code with `--exit-code N`"
    elif klass == NONE:
        shown = ()
        if code is None and not all(each == _FOR_SURE for each in ends):
            confidence = 0.7
        if code == 0 and signals and signals[0].weight >= FIRM:
            # As with `program | tee`: a shell returns the exit code of the last command only.
            said, advice = despite_success(headline(signals[0], signals[0].details))
            shown, confidence = (evidence_of(signals[0]),), 0.7
    return of_class(klass, confidence, *shown)._replace(
        headline=said,
        advice=advice,
        details={} if code is None else {"exit_code": str(code)},
        alternatives=tuple((k, confidence_of(score)) for k, score in ranked[:3]),
    )


def despite_success(error: str) -> tuple[str, str]:
    """Headline and advice for an error in the log of a job with exit code 0."""
    said = f"exit code 0, but the log shows an error: {error}"
    return said, "check that the exit code is the program's own (set -o pipefail)"


def what_is_no_text(logs: Sequence[Log]) -> str:
    """`EMPTY` or `NO_TEXT` if that is true of all logs, else an empty text."""
    heads = [log.data[:_HEAD_BYTES] for log in logs]
    if not any(head.strip() for head in heads) and not any(log.tail(1) for log in logs):
        return EMPTY
    if all(len(_BINARY.findall(head)) * 20 > len(head) for head in heads):
        return NO_TEXT
    return ""


def _complaint_of(findings: Findings, table: Table, count: int) -> Line | None:
    """The last line that reports an error, without success or progress after it.

    Args:
        findings: of a log whose last attempt shows no class of failure.
        table: the rules.
        count: number of lines to search, from the end.
    """
    log = findings.log
    surroundings = Surroundings(log)
    if surroundings.succeeded_at >= 0:
        return None
    start = findings.attempts[-1].start if findings.attempts else 0
    progress, found = 0, None
    for n, line in enumerate(reversed([x for x in log.tail(count) if x.at >= start])):
        text = line.text
        progress += is_progress(line)
        reported = facts_of(line, log)
        if (
            (reported is not None and not reported)
            or any(match.rule.role == "noise" for match in table.matches(text))
            or is_handled(line)
            or tracebacks.is_ignored(log, line)
        ):
            continue
        # a program had handled an error that much progress follows
        if TROUBLE.search(text) and progress < _MUCH_PROGRESS:
            return line
        is_last = n < _LAST_LINES and _LAST_WORDS.search(text)
        if found is None and not progress and (_ERROR.search(text) or is_last):
            found = line
    return found


def _end_of(log: Log, table: Table) -> int:
    """How surely a log without an error ends well: `_FOR_SURE`, `_PERHAPS` by its last lines, or 0."""
    if Surroundings(log).succeeded_at >= 0:
        return _FOR_SURE
    tail = log.tail(_TAIL_LINES)
    signs = [_sign_of(line, log, table) for line in tail]
    if not signs or signs[-1] < 0:
        return 0
    if any(map(is_progress, tail)):
        return _FOR_SURE
    last = signs[-_LAST_LINES:]
    return _PERHAPS if signs[-1] or (max(last) and min(last) >= 0) else 0


def _sign_of(line: Line, log: Log, table: Table) -> int:
    """Whether a line reports success or is known as harmless: 1; a problem: -1; neither: 0."""
    if (
        is_mild(line)
        or is_handled(line)
        or is_answered(line)
        or tracebacks.is_ignored(log, line)
        or facts_of(line, log) == []
        or any(match.rule.role == "noise" for match in table.matches(line.text))
    ):
        return 1
    text = _NOTHING_BAD.sub("ok", line.text)
    return -1 if _BAD.search(text) else int(bool(_WELL.search(text)))
