"""The diagnosis if no class has enough weight: ``none`` or ``unknown``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, confidence_of, headline, of_hit, of_line
from pairun.diagnose.doubts import is_handled
from pairun.diagnose.findings import Findings
from pairun.diagnose.hits import FIRM, Hit
from pairun.diagnose.lines import Log
from pairun.diagnose.surroundings import ERROR_LEVEL, TROUBLE, Surroundings, is_progress
from pairun.diagnose.table import Table

EMPTY, NO_TEXT = "the log is empty", "the log is not text"
_UNREADABLE = {
    EMPTY: "check where the job's output went",
    NO_TEXT: "if it is packed, unpack it first",
}

_TAIL_LINES = 5
_MUCH_PROGRESS = 4
_HEAD_BYTES = 1 << 16
_BINARY = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")

_COMPLAINT = re.compile(rf"{ERROR_LEVEL.pattern}|^E [\w./-]{{1,200}}:\d+\]|^Failed to ")
"""An error in a logger's line; it counts only if no progress follows."""

_LAST_LINES = 3
_LAST_WORDS = re.compile(
    r"^(?:Unable to|Could not|Cannot) (?!import)|^(?:ERROR|CRITICAL|FATAL) +(?=[A-Za-z])"
    r"|^\W{0,3}(?:\[?(?:ERROR|error|Error)\]?|(?:[\w./-]{1,80}: ){1,2}(?:error|ERROR|fatal))(?:[:|]| - |\] ?)(?! ?[\d.]+$)"
    r"|(?:^|[|\s\[])ERROR(?:[\]|:]| [|-]| +[\w./-]{1,80}:\d+)"
    r"|\b(?:unexpected|unhandled|internal|fatal|unknown) (?:error|exception)\b(?! (?:rate|handl))"
)
"""An error in any format; it counts only among a log's last lines."""


def undecided(
    hits: list[Hit],
    ranked: Sequence[tuple[str, int]],
    findings: Sequence[Findings],
    table: Table,
    facts: Circumstances,
) -> Diagnosis:
    """Decide between ``none`` and ``unknown``.

    Args:
        hits: of all logs, heaviest first.
        ranked: the classes and their weights, heaviest first.
        findings: of each log.
        table: the rules.
        facts: known besides the logs.
    """
    logs = [each.log for each in findings]
    shown = tuple(of_line(log, line) for log in logs for line in log.tail(_TAIL_LINES))
    trouble = facts.exit_code not in (None, 0)
    unreadable = what_is_no_text(logs)
    if facts.exit_code is None:
        trouble = any(_ends_in_trouble(each, table) for each in findings)
    well = facts.exit_code == 0 or all(map(_ends_well, logs))
    klass = UNKNOWN if trouble else NONE
    said, advice = CLASSES[klass].meaning, CLASSES[klass].advice
    if unreadable and facts.exit_code != 0:
        said, advice, shown = unreadable, _UNREADABLE[unreadable], ()
    if not trouble:
        shown = ()
        if hits and hits[0].score >= FIRM and facts.exit_code == 0:
            # As with `program | tee`: a shell returns the exit code of the last command only.
            meaning = CLASSES[hits[0].rule.klass].meaning
            error = headline(hits[0].rule, meaning, hits[0].details, hits[:1])
            said, advice = despite_success(error)
            shown = (of_hit(hits[0]),)
            well = False
    unsure = trouble or (bool(unreadable) and facts.exit_code is None)
    return Diagnosis(
        klass=klass,
        fault=CLASSES[klass].fault,
        retry=None,
        confidence=0.3 if unsure else 0.9 if well else 0.7,
        headline=said,
        advice=advice,
        evidence=shown,
        details={} if facts.exit_code is None else {"exit_code": str(facts.exit_code)},
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


def _ends_in_trouble(findings: Findings, table: Table) -> bool:
    """Whether the last attempt, which no rule matches, ends with an error."""
    log = findings.log
    surroundings = Surroundings(log)
    if surroundings.succeeded_at >= 0:
        return False
    start = findings.attempts[-1].start if findings.attempts else 0
    tail = [
        line
        for line in log.tail(12)
        if line.at >= start
        and not any(match.rule.role == "noise" for match in table.matches(line.text))
    ]
    progress = [-1, *(n for n, line in enumerate(tail) if is_progress(line))]
    # much progress follows the error, so the program had handled it
    handled = progress[-_MUCH_PROGRESS] if len(progress) > _MUCH_PROGRESS else -1
    return tracebacks.is_open(log) or any(
        not tracebacks.is_ignored(log, line)
        and not is_handled(line)
        and not surroundings.served_doubt(line, is_cause=False)
        for n, line in enumerate(tail)
        if (n > handled and TROUBLE.search(line.text))
        or (n > progress[-1] and _COMPLAINT.search(line.text))
        or (n > max(progress[-1], len(tail) - 1 - _LAST_LINES) and _LAST_WORDS.search(line.text))
    )


def _ends_well(log: Log) -> bool:
    """Whether a log ends with success or progress."""
    return Surroundings(log).succeeded_at >= 0 or any(map(is_progress, log.tail(_TAIL_LINES)))
