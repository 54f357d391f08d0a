"""A second opinion by similar messages, where rules know nothing specific.

It is asked if rules find no failure in a log of unknown end, no cause, or only an exception of
unknown kind; never against a report of a system. It abstains below a probability, and never
advises against a retry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose import tracebacks
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.classifier import Classifier, read_classifier
from pairun.diagnose.diagnosis import FORBIDS, Diagnosis, Evidence, of_line
from pairun.diagnose.doubts import is_handled
from pairun.diagnose.facts.reading import facts_of
from pairun.diagnose.findings import Findings
from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.surroundings import INFO, Surroundings, is_answered, is_progress
from pairun.diagnose.table import Table
from pairun.diagnose.wording import features_of, telling_words

MOST_SURE = 0.74
"""The maximum confidence of a guess."""

BY_SIMILARITY = "similar-messages"
"""In place of a rule's name."""

_EXCEPTION = "user_code_error"
_SAYS_NOTHING = frozenset((NONE, UNKNOWN, _EXCEPTION, "hang"))
"""Classes that nobody can act on. A failed child is none: its own log has the cause."""

_LAST_LINES, _VERY_LAST = 10, 2
_SHARE = 0.3
_FEW_WORDS = 2
_MAX_CHARS = 600

_COMPLAINT = re.compile(
    r"(?i)\berr(?:or)?s?\b(?! ?(?:rate|=|: ?-?[\d.]+\b))|[a-z]error\b|\b(?:fail(?:ed|s|ure|ing)?|fatal|abort(?:ed|ing)?"
    r"|panic|can ?not|can'?t|could ?n[o']t|could not|unable|denied|refused?|reject(?:ed|s)?|time[ds]?[ -]?out|invalid"
    r"|exceed(?:s|ed|ing)?|exhausted|insufficient|unavailable|unreachable|unauthorized|forbidden|expired|corrupt(?:ed)?"
    r"|mismatch|crash(?:ed)?|died|dead|lost|missing|not found|no such|not (?:available|supported|permitted|allowed|exist"
    r"|enough|respond\w*|reach\w*|ready|accept\w*)|does ?n[o']t|do ?n[o']t have|requires?|must|giv(?:ing|es?) up|gave up"
    r"|out of|too (?:many|large|long|small|old|few)|no (?:space|room|more|longer|response|answer|route|usable|free|credits?)"
    r"|already in use|over (?:the )?(?:limit|quota)|quota|evict(?:ed|ing)|preempt(?:ed|ing)|kill(?:ed|ing)|terminated|stuck"
    r"|hang(?:s|ing)?|hung|stale|conflicts?|incompatible|undefined|unknown|unexpected|violat\w+|overflow|broken"
    r"|disconnected|reset by|bad)\b"
)
"""A line that says that something is wrong."""

_MILD = re.compile(
    r"\bWARN|[Ww]arning\b|(?i:[\[<](?:warn|info?|notice|debug)[\]>])|\b(?:INFO|DEBUG|NOTICE)\b|^[Nn]ote: |\blevel=(?:info|debug)\b|^\[?[WI]\d{4}|\[W ?\d{3,4}|\[W \w+\.cpp|^[IW] (?:[A-Z]:\\|[\w./]+/)"
    r"|^DEPRECATION|^debconf: |^Normal "
)
"""A logger's mild level."""

_FRAME = re.compile(
    r"^(?:frame )?#\d+:? |^PC: @|^\s+at [\w.$<>]+\(|^[*=-]{3,}|^@ +0x|^ *\d+: 0x[0-9a-f]+ |^\s*\d+ +\S+ +0x"
)
"""A line of a native stack, or a ruler."""


class Asked(NamedTuple):
    """In which situation the opinion is asked.

    Attributes:
        least: the probability below which it abstains.
        priors: classes that are likelier than others beforehand; see `Classifier.probabilities`.
    """

    least: float
    priors: dict[str, float]


OF_NONE = Asked(0.6, {NONE: 2.0})
"""Rules find no failure, and the log's end does not show success."""

OF_UNKNOWN = Asked(0.35, {})
"""Rules find a failure without a cause."""

OF_EXCEPTION = Asked(0.75, {_EXCEPTION: 4.5})
"""Rules find an exception of unknown kind."""


class Message(NamedTuple):
    """A message that may show the cause.

    Attributes:
        text: with the lines around it.
        evidence: where it is.
    """

    text: str
    evidence: Evidence


def situation(diagnosis: Diagnosis, facts: Circumstances) -> Asked | None:
    """In which situation an unsure diagnosis is; None if no opinion is asked.

    Args:
        diagnosis: by rules.
        facts: known besides the logs.
    """
    if diagnosis.source or facts.exit_code == 0:
        return None
    return {NONE: OF_NONE, UNKNOWN: OF_UNKNOWN, _EXCEPTION: OF_EXCEPTION}.get(diagnosis.klass)


def second_opinion(
    diagnosis: Diagnosis,
    findings: Sequence[Findings],
    table: Table,
    facts: Circumstances,
    classifier: Classifier | None = None,
) -> Diagnosis:
    """A diagnosis by similar messages, or the one by rules if none is similar enough.

    Args:
        diagnosis: by rules, and unsure.
        findings: of each log.
        table: the rules.
        facts: known besides the logs.
        classifier: knows messages; the package's own if None.
    """
    asked = situation(diagnosis, facts)
    messages = _messages(diagnosis, findings, table, asked) if asked else []
    if asked is None or not messages:
        return diagnosis
    classifier = classifier or read_classifier()
    if classifier is None:
        return diagnosis
    each = [classifier.probabilities(features_of(m.text), asked.priors) for m in messages]
    # a message is likelier to show the cause if the others agree with it
    likely = [
        {k: p[k] / 2 + sum(q[k] for q in each) / len(each) / 2 for k in p if k not in _SAYS_NOTHING}
        for p in each
    ]
    best = max(range(len(each)), key=lambda n: max(likely[n].values()))
    ranked = sorted(likely[best], key=lambda k: -likely[best][k])
    probability = likely[best][ranked[0]]
    if probability < asked.least:
        return diagnosis
    return _guess(diagnosis, ranked[0], probability, messages[best].evidence)


def _guess(by_rules: Diagnosis, klass: str, probability: float, evidence: Evidence) -> Diagnosis:
    kind = CLASSES[klass]
    others = [(by_rules.klass, by_rules.confidence), *by_rules.alternatives]
    return by_rules._replace(
        klass=klass,
        fault=kind.fault,
        retry=None if kind.retry in FORBIDS else kind.retry,
        confidence=round(min(probability, MOST_SURE), 2),
        headline=f"a guess from similar messages: {kind.meaning}",
        advice=kind.advice,
        evidence=(evidence, *(e for e in by_rules.evidence if e != evidence)),
        alternatives=tuple(o for o in others if o[0] not in (klass, NONE, UNKNOWN)),
        rule=BY_SIMILARITY,
    )


def _messages(
    diagnosis: Diagnosis, findings: Sequence[Findings], table: Table, asked: Asked
) -> list[Message]:
    """The messages that may show the cause."""
    if asked is OF_EXCEPTION:
        shown = [Message(each.text, each) for each in diagnosis.evidence[:1]]
        return [each for each in shown if len(telling_words(each.text)) >= _FEW_WORDS]
    messages = []
    for each in findings:
        tail = each.log.tail(_LAST_LINES)
        start = each.attempts[-1].start if each.attempts else 0
        possible = [_may_explain(line, each.log, table) and line.at >= start for line in tail]
        if asked is OF_NONE:
            surroundings = Surroundings(each.log)
            possible = [
                p and not _is_mild(line) and not surroundings.served_doubt(line, is_cause=False)
                for p, line in zip(possible, tail, strict=True)
            ]
        if asked is OF_UNKNOWN or _ends_in_complaints(tail):
            messages += [_message(each.log, tail, n) for n, p in enumerate(possible) if p]
    return messages


def _ends_in_complaints(tail: Sequence[Line]) -> bool:
    """Whether the very last lines complain, or many of the last ones."""
    complaints = [bool(_COMPLAINT.search(x.text)) and not _is_mild(x) for x in tail]
    return any(complaints[-_VERY_LAST:]) or sum(complaints) >= _SHARE * len(tail)


def _may_explain(line: Line, log: Log, table: Table) -> bool:
    """Whether a line may be a complaint of which rules know nothing."""
    return (
        _COMPLAINT.search(line.text) is not None
        and len(telling_words(line.text)) >= _FEW_WORDS
        and HEADER not in line.text
        and not _FRAME.search(line.text)
        and not is_answered(line)
        and not is_progress(line)
        and not tracebacks.is_source(log, line)
        and not table.matches(line.text)
        and facts_of(line, log) is None
    )


def _is_mild(line: Line) -> bool:
    """Whether a line is a warning or information, or the program went on."""
    return bool(
        _MILD.search(line.text) or _MILD.search(line.shown) or INFO.search(line.shown)
    ) or is_handled(line)


def _message(log: Log, tail: Sequence[Line], at: int) -> Message:
    """A line with its neighbours, without source code and progress."""
    around = [
        each.text[:_MAX_CHARS]
        for each in tail[max(0, at - 1) : at + 2]
        if not tracebacks.is_source(log, each) and not is_progress(each)
    ]
    return Message("\n".join(around), of_line(log, tail[at]))
