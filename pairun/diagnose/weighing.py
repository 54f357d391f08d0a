"""The diagnosis of a failure: ranks the hits of its logs, and decides on a class.

The heaviest hit names the class. Of two equal hits the earlier one wins, because the cause fails
before its consequences. What is known besides the log (an exit code, a full memory) counts too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances, clues
from pairun.diagnose.classes import CLASSES, EXIT_CODES, NONE, UNKNOWN
from pairun.diagnose.hits import (
    CERTAIN,
    ERROR_LEVEL,
    FIRM,
    TROUBLE,
    Hit,
    Surroundings,
    hits_in,
    is_progress,
)
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Rule, Table

DEADLINE_S = 2.0
"""How long a diagnosis may take; the hits until then are weighed."""

ADVISED = 60
"""The least weight at which the advice is not to run the job again."""
_TAIL_LINES = 5
_TEXT = 400
_HEAD = 1 << 16
_NO_TEXT = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")

_COMPLAINT = re.compile(rf"{ERROR_LEVEL.pattern}|^E [\w./-]{{1,200}}:\d+\]|^Failed to ")
"""An error that a logger reports; a program that continues after it did not fail."""


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
    hits = [hit for log in logs for hit in hits_in(log, table, until, failed=failed)]
    hits.sort(key=lambda h: -h.score)
    return _verdict(hits, logs, table, facts)


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
        if hits and hits[0].score >= FIRM and facts.exit_code == 0:
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
    if Surroundings(log).succeeded_at >= 0:
        return False
    tail = [
        line
        for line in log.tail(12)
        if not any(match.rule.role == "noise" for match in table.matches(line.text))
    ]
    went_on = max((n for n, line in enumerate(tail) if is_progress(line)), default=-1)
    return tracebacks.is_open(log) or any(
        not tracebacks.is_ignored(log, line)
        for n, line in enumerate(tail)
        if TROUBLE.search(line.text) or (n > went_on and _COMPLAINT.search(line.text))
    )


def _ends_well(log: Log) -> bool:
    """Whether success or progress is what a log shows last."""
    return Surroundings(log).succeeded_at >= 0 or any(map(is_progress, log.tail(_TAIL_LINES)))


def _confidence(score: int) -> float:
    return round(min(max(score, 1), 98) / 100, 2)
