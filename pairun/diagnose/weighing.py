"""The diagnosis of a failure: ranks the hits of its logs and decides on a class.

The heaviest hit names the class. Of two equal hits the earlier one wins, because a cause precedes
its consequences. What is known besides the log (exit code, killed processes) counts too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances, clues
from pairun.diagnose.classes import CLASSES, EXIT_CODES, NAMED_LINE, NONE, UNKNOWN
from pairun.diagnose.hits import CERTAIN, FIRM, Hit, hits_in
from pairun.diagnose.lines import Log
from pairun.diagnose.searchlimit import Clock, SearchLimit
from pairun.diagnose.surroundings import ERROR_LEVEL, TROUBLE, Surroundings, is_progress
from pairun.diagnose.table import Rule, Table
from pairun.diagnose.tracebacks import Frame

DEADLINE_S = 2.0
"""How long a diagnosis may take; it weighs the hits that it has by then."""

ADVISED = 60
"""The least weight at which pairun advises against running the job again."""

_TAIL_LINES = 5
_EVIDENCE_CHARS = 400
_PATH_CHARS = 100
_HEAD_BYTES = 1 << 16
_BINARY = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")

_COMPLAINT = re.compile(rf"{ERROR_LEVEL.pattern}|^E [\w./-]{{1,200}}:\d+\]|^Failed to ")
"""An error in a logger's line; it counts only if the program made no progress after it."""


class Evidence(NamedTuple):
    """One piece of evidence; line 0 if it is not a line of a log."""

    file: str
    line: int
    text: str


class Diagnosis(NamedTuple):
    """Why it died.

    Attributes:
        klass: a class of failure, ``none`` or ``unknown``.
        fault: one of `FAULTS`.
        retry: one of `RETRIES`, or None for no advice on retries.
        confidence: 0 to 1.
        headline: one line for people.
        advice: what to do.
        evidence: the most important first.
        details: the named captures of the evidence.
        alternatives: other classes, with their confidence.
        rule: the name of the rule that decided; may be empty.
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
    clock: Clock = time.monotonic,
) -> Diagnosis:
    """Diagnose why a job died.

    Args:
        logs: the job's output; one log for each instance.
        table: the rules.
        facts: what is known besides the logs.
        deadline_s: how long this may take, in seconds.
        clock: what measures it.
    """
    facts = facts or Circumstances()
    limit = SearchLimit.after(deadline_s / 2, clock)
    if facts.error_file:
        logs = [*logs, Log(facts.error_file.encode(), "error file")]
    failed = facts.exit_code not in (None, 0)
    hits = [hit for log in logs for hit in hits_in(log, table, limit, failed=failed)]
    hits.sort(key=lambda h: -h.score)
    return _verdict(hits, logs, table, facts)


def _verdict(hits: list[Hit], logs: Sequence[Log], table: Table, facts: Circumstances) -> Diagnosis:
    scores: dict[str, int] = {}
    for hit in hits:
        if hit.score > 0:
            scores.setdefault(hit.rule.klass, hit.score)
    words: dict[str, str] = {}
    for klass, weight, in_words in clues(facts):
        words[klass] = in_words
        scores[klass] = max(scores.get(klass, 0), weight)
    code = facts.exit_code
    by_code = EXIT_CODES.get(code) if code is not None else None
    if by_code:
        klass, weight = by_code
        before = scores.get(klass, 0)
        scores[klass] = min(98, before + 3) if before >= CERTAIN else max(before, weight)
        words.setdefault(klass, f"the exit code is {code}")
    if code == 0:
        # The command succeeded: its log is no evidence, only what the kernel reports is.
        scores = {k: v for k, v in scores.items() if k in words}
    scores.pop(UNKNOWN, None)
    # the sort is stable: of equal classes the first hit's comes first
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
    frame = None
    if hits and hits[0].rule.role in ("cause", "code"):
        frame = tracebacks.place(hits[0].log, hits[0].line)
    if frame is not None:
        details.update(code_file=frame.file, code_line=str(frame.line))
    if klass in words:
        evidence.append(Evidence("", 0, words[klass]))
    retry = rule.retry if rule else kind.retry
    if score < ADVISED and retry in ("after_fix", "never"):
        retry = None
    return Diagnosis(
        klass=klass,
        fault=rule.fault if rule else kind.fault,
        retry=retry,
        confidence=_confidence(score),
        headline=_headline(rule, kind.meaning, details, hits, frame),
        advice=_advice(rule.advice if rule else kind.advice, frame),
        evidence=tuple(evidence),
        details=details,
        alternatives=others,
        rule=rule.id if rule else "",
    )


def _advice(advice: str, frame: Frame | None) -> str:
    """The advice with the line of the job's code in place of `NAMED_LINE`."""
    if frame is None or frame.is_library:
        return advice
    return advice.replace(NAMED_LINE, f"{_shown_file(frame)}, line {frame.line}")


def _headline(
    rule: Rule | None,
    meaning: str,
    details: dict[str, str],
    hits: list[Hit],
    frame: Frame | None = None,
) -> str:
    if rule is not None and rule.headline:
        try:
            return rule.headline.format_map(details)
        except (KeyError, ValueError, IndexError):
            pass  # this alternative of the pattern lacks the capture
    if rule is not None and rule.role == "code":
        at = "" if frame is None else f" at {_shown_file(frame)}:{frame.line}"
        return f"{meaning}{at}: {hits[0].line.text.strip()[:200]}"
    return meaning


def _shown_file(frame: Frame) -> str:
    """The file of a frame; of a long path only the end."""
    return frame.file if len(frame.file) <= _PATH_CHARS else f"…{frame.file[1 - _PATH_CHARS :]}"


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
    start = 0
    if len(shown) > _EVIDENCE_CHARS:
        # of a long line, show what is around the match
        start = max(len(shown) - len(hit.line.text) + hit.start - _EVIDENCE_CHARS // 4, 0)
    text = shown[start:].strip()[:_EVIDENCE_CHARS]
    return Evidence(hit.log.name, hit.log.number(hit.line.at), text)


def _undecided(
    hits: list[Hit],
    ranked: list[str],
    scores: dict[str, int],
    logs: Sequence[Log],
    table: Table,
    facts: Circumstances,
) -> Diagnosis:
    """The diagnosis when no class has enough weight: nothing is wrong, or the cause is unknown."""
    tails = [(log, line) for log in logs for line in log.tail(_TAIL_LINES)]
    shown = tuple(
        Evidence(log.name, log.number(line.at), line.shown.strip()[:_EVIDENCE_CHARS])
        for log, line in tails
    )
    trouble = facts.exit_code not in (None, 0)
    unreadable = _unreadable(logs)
    if facts.exit_code is None:
        trouble = any(_ends_in_trouble(log, table) for log in logs)
    well = facts.exit_code == 0 or all(map(_ends_well, logs))
    klass = UNKNOWN if trouble else NONE
    kind = CLASSES[klass]
    headline, advice = kind.meaning, kind.advice
    if unreadable and facts.exit_code != 0:
        (headline, advice), shown = unreadable, ()
    if not trouble:
        shown = ()
        if hits and hits[0].score >= FIRM and facts.exit_code == 0:
            # As with `program | tee`: a shell returns the exit code of the last command only.
            kind = CLASSES[hits[0].rule.klass]
            error = _headline(hits[0].rule, kind.meaning, hits[0].details, hits[:1])
            headline = f"exit code 0, but the log shows an error: {error}"
            advice = "check that the exit code is the program's own (set -o pipefail)"
            shown = (_evidence(hits[0]),)
            well = False
    return Diagnosis(
        klass=klass,
        fault=CLASSES[klass].fault,
        retry=None,
        confidence=0.3
        if trouble or (unreadable and facts.exit_code is None)
        else 0.9
        if well
        else 0.7,
        headline=headline,
        advice=advice,
        evidence=shown,
        details={} if facts.exit_code is None else {"exit_code": str(facts.exit_code)},
        alternatives=tuple((k, _confidence(scores[k])) for k in ranked[:3] if scores[k] > 0),
    )


def _unreadable(logs: Sequence[Log]) -> tuple[str, str] | None:
    """Headline and advice if the logs are empty or not text, else None."""
    heads = [log.data[:_HEAD_BYTES] for log in logs]
    if not any(head.strip() for head in heads) and not any(log.tail(1) for log in logs):
        return "the log is empty", "check where the job's output went"
    if all(len(_BINARY.findall(head)) * 20 > len(head) for head in heads):
        return "the log is not text", "unpack it first, for example with zcat"
    return None


def _ends_in_trouble(log: Log, table: Table) -> bool:
    """Whether a log ends with an error, no rule being matched."""
    if Surroundings(log).succeeded_at >= 0:
        return False
    tail = [
        line
        for line in log.tail(12)
        if not any(match.rule.role == "noise" for match in table.matches(line.text))
    ]
    last_progress = max((n for n, line in enumerate(tail) if is_progress(line)), default=-1)
    return tracebacks.is_open(log) or any(
        not tracebacks.is_ignored(log, line)
        for n, line in enumerate(tail)
        if TROUBLE.search(line.text) or (n > last_progress and _COMPLAINT.search(line.text))
    )


def _ends_well(log: Log) -> bool:
    """Whether a log ends with success or progress."""
    return Surroundings(log).succeeded_at >= 0 or any(map(is_progress, log.tail(_TAIL_LINES)))


def _confidence(score: int) -> float:
    return round(min(max(score, 1), 98) / 100, 2)
