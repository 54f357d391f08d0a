"""A diagnosis: the failure class with its evidence, and its text for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.classes import CLASSES, CONSEQUENCES, NAMED_LINE, NONE, UNKNOWN
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import FIRM, Signal
from pairun.diagnose.tracebacks import Frame

FORBIDS = frozenset(("after_fix", "never"))
"""Advice against running the job again unchanged."""

_MOST_SHOWN = 3
_EVIDENCE_CHARS, _SHOWN_CHARS, _LEAD_CHARS = 400, 200, 120
_RETRY_ADVICE = {"after_fix": "do not run it again before that"}
_WHOSE = {
    "user": "the job's own",
    "platform": "the platform's",
    "hardware": "the hardware's",
    "framework": "the framework's",
    "unknown": "fault unknown",
}
_SENTENCE = re.compile(r"(?<=[.!?;\])]) (?=\S)")
_PATH_CHARS = 100


EMPTY, NO_TEXT = "the log is empty", "the log is not text"
QUIET = "the log shows neither a failure nor a success"
"""Headlines of an unknown class without any sign of a failure."""


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

    @property
    def is_clean(self) -> bool:
        """Whether nothing shows a failure; ``none`` also needs a sign of success."""
        return self.klass == NONE or self.headline in (QUIET, EMPTY, NO_TEXT)

    @property
    def is_consequence(self) -> bool:
        """Whether the instance failed because another one failed, or for an unknown cause."""
        return self.klass in CONSEQUENCES

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


def of_class(klass: str, confidence: float, *evidence: Evidence) -> Diagnosis:
    """A diagnosis with what its class says."""
    kind = CLASSES[klass]
    return Diagnosis(
        klass, kind.fault, kind.retry, confidence, kind.meaning, kind.advice, evidence, {}, ()
    )


def of_signals(
    signals: Sequence[Signal], extra: Sequence[Signal] = (), weight: int | None = None
) -> Diagnosis:
    """The diagnosis from the signals of one class.

    Args:
        signals: heaviest first.
        extra: what is known besides the logs; its words are evidence, too.
        weight: of all of them together; that of the heaviest by default.
    """
    best = signals[0]
    weight = best.weight if weight is None else weight
    texts = [each for each in signals if each.rule]
    details: dict[str, str] = {}
    for each in reversed(texts[:4]):
        details.update(each.details)
    frame = None
    if best.log is not None and best.line is not None and best.role in ("cause", "code"):
        frame = tracebacks.place(best.log, best.line)
    if frame is not None:
        details.update(code_file=frame.file, code_line=str(frame.line))
    kind = CLASSES[best.klass]
    retry = best.retry or kind.retry
    if retry in FORBIDS and (weight < FIRM or (best.role == "code" and _is_outside(frame))):
        retry = None
    shown = map(evidence_of, (best, *(each for each in texts if each is not best)))
    return Diagnosis(
        klass=best.klass,
        fault=best.fault or kind.fault,
        retry=retry,
        confidence=confidence_of(weight),
        headline=headline(best, details, frame),
        advice=_advice(best.advice or kind.advice, frame),
        evidence=tuple(dict.fromkeys((*_distinct(shown), *map(evidence_of, extra)))),
        details=details,
        alternatives=(),
        rule=best.rule,
        source=best.source,
    )


def _is_outside(frame: Frame | None) -> bool:
    """Whether a package raised the exception: it may do so because of the node, as without a device."""
    return frame is None or frame.is_library


def evidence_of(signal: Signal) -> Evidence:
    """A signal as evidence: its line, or its words."""
    if signal.log is None or signal.line is None:
        return Evidence(*(signal.where or ("", 0)), signal.words)
    return of_line(signal.log, signal.line, signal.start)


def of_line(log: Log, line: Line, at: int = 0) -> Evidence:
    """A line as evidence; of a long line only the part around its decisive words.

    Args:
        log: the log.
        line: the line.
        at: offset of the decisive words in the line's text, in characters.
    """
    shown, start = line.text if log.is_rewritten else line.shown, 0
    at += len(shown) - len(line.text)
    if len(shown) > _SHOWN_CHARS and at > _LEAD_CHARS:
        start = at - _LEAD_CHARS
        sentence = _SENTENCE.search(shown, start, at)
        # from the next sentence or word on, unless one long word precedes the decisive ones
        start = sentence.end() if sentence else max(shown.find(" ", start - 1, at) + 1, start)
    return Evidence(log.name, log.number(line.at), shown[start:].strip()[:_EVIDENCE_CHARS])


def headline(signal: Signal, details: Mapping[str, str], frame: Frame | None = None) -> str:
    """One line for people: the signal's words, or the class's meaning with the exception of the job's code."""
    meaning = CLASSES[signal.klass].meaning
    if not signal.rule:
        return signal.words if signal.log is not None or signal.where is not None else meaning
    if signal.words:
        try:
            return signal.words.format_map(details)
        except (KeyError, ValueError, IndexError):
            pass  # this alternative of the pattern lacks the capture
    if signal.role == "code" and signal.line is not None:
        at = "" if frame is None else f" at {_shown_file(frame)}:{frame.line}"
        return f"{meaning}{at}: {signal.line.text.strip()[:200]}"
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


def _distinct(shown: Iterable[Evidence]) -> list[Evidence]:
    """The first pieces of evidence with different texts."""
    by_text: dict[str, Evidence] = {}
    for each in shown:
        by_text.setdefault(each.text, each)
    return list(by_text.values())[:_MOST_SHOWN]


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """The lines for people: what happened, the evidence, what to do."""
    lines = [_visible(diagnosis.headline) + _about(diagnosis)]
    shown = diagnosis.evidence if diagnosis.klass == UNKNOWN else diagnosis.evidence[:1]
    lines += [f"  {_place(e)}{_visible(_cut(e.text))}" for e in shown]
    if diagnosis.advice:
        advice = filter(None, (diagnosis.advice, _RETRY_ADVICE.get(diagnosis.retry or "")))
        lines.append(f"  do: {'; '.join(advice)}")
    return lines


def _about(diagnosis: Diagnosis) -> str:
    """The class, its confidence below 100 %, and its fault; empty for an unknown class."""
    if diagnosis.klass == UNKNOWN:
        return ""
    about = [diagnosis.klass]
    if diagnosis.confidence < 1:
        about.append(f"{diagnosis.confidence:.0%}")
    if diagnosis.klass != NONE:
        about.append(_WHOSE[diagnosis.fault])
    return f" ({', '.join(about)})"


def _cut(text: str) -> str:
    """A text's beginning; an ellipsis marks what is left out."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1].rstrip()}…"


def _place(evidence: Evidence) -> str:
    return f"{_visible(evidence.file)}:{evidence.line}: " if evidence.line else ""


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
