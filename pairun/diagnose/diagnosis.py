"""A diagnosis: the failure class with its evidence, and its text for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.classes import CLASSES, NAMED_LINE
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.hits import Hit
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.table import Rule
from pairun.diagnose.tracebacks import Frame

FORBIDS = frozenset(("after_fix", "never"))
"""Advice against running the job again unchanged."""

FORBIDDING = 70
"""The minimum weight at which pairun advises against running the job again."""

_EVIDENCE_CHARS = 400
_PATH_CHARS = 100


class Evidence(NamedTuple):
    """One piece of evidence; line 0 if it is not a line of a log."""

    file: str
    line: int
    text: str


class Diagnosis(NamedTuple):
    """Why a job died.

    Attributes:
        klass: a class of failure, ``none`` or ``unknown``.
        fault: one of `FAULTS`.
        retry: one of `RETRIES`, or None for no advice on retries.
        confidence: 0 to 1.
        headline: one line for people.
        advice: what to do.
        evidence: most important first.
        details: the named captures of the evidence.
        alternatives: other classes, with their confidence.
        rule: the name of the rule that decided; may be empty.
        source: who reported the deciding fact, such as ``Kubernetes``; empty if text decided.
        attempts: number of attempts in the log.
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
    source: str = ""
    attempts: int = 1

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
            "source": self.source,
            "attempts": self.attempts,
        }


class Place(NamedTuple):
    """A fact and the log that reports it; None if it is from no log."""

    fact: Fact
    log: Log | None


def of_hits(klass: str, hits: list[Hit]) -> Diagnosis:
    """The diagnosis from the hits of one class, heaviest first."""
    kind, best = CLASSES[klass], hits[0]
    details = dict(best.details)
    for hit in hits[1:4]:
        details = {**hit.details, **details}
    frame = None
    if best.rule.role in ("cause", "code"):
        frame = tracebacks.place(best.log, best.line)
    if frame is not None:
        details.update(code_file=frame.file, code_line=str(frame.line))
    return Diagnosis(
        klass=klass,
        fault=best.rule.fault,
        retry=_retry(best.rule, frame),
        confidence=0.0,
        headline=headline(best.rule, kind.meaning, details, hits, frame),
        advice=_advice(best.rule.advice, frame),
        evidence=tuple(of_hit(hit) for hit in _distinct(hits)),
        details=details,
        alternatives=(),
        rule=best.rule.id,
    )


def _retry(rule: Rule, frame: Frame | None) -> str | None:
    """The rule's advice; an exception forbids a retry only if the job's code raised it.

    A package may raise one because of the node, such as a missing device.
    """
    if rule.role == "code" and rule.retry in FORBIDS and (frame is None or frame.is_library):
        return None
    return rule.retry


def of_fact(place: Place, details: dict[str, str]) -> Diagnosis:
    """The diagnosis from a fact."""
    fact = place.fact
    kind = CLASSES[fact.klass]
    return Diagnosis(
        klass=fact.klass,
        fault=fact.fault or kind.fault,
        retry=fact.retry or kind.retry,
        confidence=0.0,
        headline=kind.meaning if place.log is None else fact.words,
        advice=fact.advice or kind.advice,
        evidence=of_place(place),
        details=details,
        alternatives=(),
        source=fact.source,
    )


def of_reported(fact: Fact, where: Evidence) -> Diagnosis:
    """The diagnosis from a fact that a system reports as data.

    Args:
        fact: the fact.
        where: the data that reports it.
    """
    kind = CLASSES[fact.klass]
    retry = fact.retry or kind.retry
    return Diagnosis(
        klass=fact.klass,
        fault=fact.fault or kind.fault,
        retry=None if retry in FORBIDS and fact.weight < FORBIDDING else retry,
        confidence=confidence_of(fact.weight),
        headline=fact.words,
        advice=fact.advice or kind.advice,
        evidence=(where,),
        details={},
        alternatives=(),
        source=fact.source,
    )


def of_place(place: Place) -> tuple[Evidence, ...]:
    """A fact as evidence: its line, or its words."""
    fact, log = place
    if log is None or fact.at < 0:
        return (Evidence("", 0, fact.words),)
    line = next(iter(log.after(fact.at - 1, 1)), None) if fact.at else None
    return (of_line(log, line if line is not None else log.first()),)


def of_line(log: Log, line: Line) -> Evidence:
    """A line as evidence."""
    text = log.written(line.at, line.shown.strip()[:_EVIDENCE_CHARS])
    return Evidence(log.name, log.number(line.at), text)


def of_hit(hit: Hit) -> Evidence:
    """A hit's line as evidence; of a long line only the part around the match."""
    shown = hit.line.shown
    start = 0
    if len(shown) > _EVIDENCE_CHARS:
        match_at = len(shown) - len(hit.line.text) + hit.start
        start = max(match_at - _EVIDENCE_CHARS // 4, 0)
        if start:  # from the next word on, unless one long word precedes the match
            start = max(shown.find(" ", start - 1, match_at) + 1, start)
    text = hit.log.written(hit.line.at, shown[start:].strip()[:_EVIDENCE_CHARS])
    return Evidence(hit.log.name, hit.log.number(hit.line.at), text)


def headline(
    rule: Rule, meaning: str, details: dict[str, str], hits: list[Hit], frame: Frame | None = None
) -> str:
    """One line for people: the rule's, or the class's with the exception of the job's code."""
    if rule.headline:
        try:
            return rule.headline.format_map(details)
        except (KeyError, ValueError, IndexError):
            pass  # this alternative of the pattern lacks the capture
    if rule.role == "code":
        at = "" if frame is None else f" at {_shown_file(frame)}:{frame.line}"
        return f"{meaning}{at}: {hits[0].line.text.strip()[:200]}"
    return meaning


def confidence_of(score: int) -> float:
    """The confidence for a weight, 0 to 1."""
    return round(min(max(score, 1), 98) / 100, 2)


def _advice(advice: str, frame: Frame | None) -> str:
    """The advice, with the job's line of code in place of `NAMED_LINE`.

    If all frames are in libraries, the advice names the call, not the library's line.
    """
    if frame is None:
        return advice
    if frame.is_library:
        return advice.replace(NAMED_LINE, f"your call that leads to {_in_package(frame)}")
    return advice.replace(NAMED_LINE, f"{_shown_file(frame)}, line {frame.line}")


def _in_package(frame: Frame) -> str:
    """A library frame's file, without the folder of installed packages."""
    return re.split(r"(?:site|dist)-packages/", _shown_file(frame))[-1]


def _shown_file(frame: Frame) -> str:
    """A frame's file; of a long path only the end."""
    return frame.file if len(frame.file) <= _PATH_CHARS else f"…{frame.file[1 - _PATH_CHARS :]}"


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    out: list[Hit] = []
    for hit in hits:
        if all(hit.line.text != h.line.text for h in out):
            out.append(hit)
        if len(out) == 3:
            break
    return out
