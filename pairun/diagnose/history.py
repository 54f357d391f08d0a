"""Advises on a retry from earlier attempts: whether they failed alike, and how far they got.

The same failure twice at the same place: a retry does not help. The same failure further on:
retries help, up to a bound. A failure of the node: use another node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any, NamedTuple

from pairun.base.fields import between, field_of
from pairun.diagnose.classes import CLASSES, FAULTS, NONE, RETRIES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.progress import Progress

BOUND = 3
"""How many more retries are advised with progress, and how many equal failures end them without known progress."""

_RETRIABLE = ("retry", "retry_elsewhere")
_STOPS = ("terminated_sigterm", "cancelled_by_user", "evicted")
"""Classes of attempts that something else ended; however frequent, the job is not the cause."""

_VARIES = re.compile(r"0x[0-9a-f]+|\d+")


class Attempt(NamedTuple):
    """One attempt of a job.

    Attributes:
        diagnosis: why it failed.
        progress: how far it got.
        node: of its first failure; empty if unknown.
    """

    diagnosis: Diagnosis
    progress: Progress
    node: str = ""

    @property
    def signature(self) -> tuple[str | None, ...]:
        """What equal failures share: class, rule, place in the code, and message without numbers."""
        klass, rule, details = self.diagnosis.klass, self.diagnosis.rule, self.diagnosis.details
        message = _VARIES.sub("#", self.diagnosis.headline)
        return klass, rule, details.get("code_file"), details.get("code_line"), message


class RetryAdvice(NamedTuple):
    """What to do with a job after several attempts.

    Attributes:
        retry: one of `RETRIES`, or None for no advice.
        words: the deciding fact for people; empty if earlier attempts decide nothing.
        attempts: number of known attempts.
        equal: how many of the last ones failed alike.
        made_progress: whether the last one got further than the one before; None if unknown.
    """

    retry: str | None
    words: str
    attempts: int
    equal: int
    made_progress: bool | None


def recorded(values: Mapping[str, Any], *evidence: Evidence) -> Diagnosis:
    """The diagnosis that a record of PID 1 describes, whatever its fields hold."""
    fault, retry, details = (values.get(name) for name in ("fault", "retry", "details"))
    klass = str(values.get("class"))
    klass = klass if klass in CLASSES else UNKNOWN
    kind = CLASSES[klass]
    confidence = field_of(values, "confidence", Annotated[float, between(0, 1)], 0.3)
    return of_class(klass, confidence, *evidence)._replace(
        fault=fault if fault in FAULTS else kind.fault,
        retry=retry if retry in RETRIES else None,
        headline=str(values.get("headline") or kind.meaning),
        advice=str(values.get("advice") or kind.advice),
        details=details if isinstance(details, dict) else {},
        rule=str(values.get("rule") or ""),
        source="pairun",
    )


def retry_advice(attempts: Sequence[Attempt]) -> RetryAdvice:
    """Advice after these attempts.

    Args:
        attempts: earliest first; at least one.
    """
    before, last = attempts[-2:][0], attempts[-1]
    alike = list(takewhile(lambda each: each.signature == last.signature, reversed(attempts)))
    equal = len(alike)
    progress = last.progress.is_beyond(before.progress) if len(attempts) > 1 else None
    retry = last.diagnosis.retry
    advice = RetryAdvice(retry, "", len(attempts), equal, progress)
    if equal < 2 or last.diagnosis.klass in (NONE, UNKNOWN, *_STOPS):
        return advice
    same = f"the same failure {equal} times"
    nodes = {each.node for each in alike}
    if retry == "retry_elsewhere":
        if len(nodes) == 1 and last.node:
            return advice._replace(words=f"{same} on {last.node}; choose another node")
        if len(nodes - {""}) < equal:
            return advice._replace(words=f"{same}; nothing shows that they were on different nodes")
        if not progress:
            words = f"{same}, on {equal} different nodes: the job is the cause, and no node"
            return advice._replace(retry="after_fix", words=words)
    steps = f"{last.progress.words() or 'a checkpoint'} after {before.progress.words() or 'none'}"
    if progress:
        words = f"{same}, with progress: {steps}; retry {BOUND} times at most"
        return advice._replace(retry="retry", words=words)
    if progress is False:
        return advice._replace(retry="after_fix", words=f"{same}, without progress: {steps}")
    if retry in _RETRIABLE and equal < BOUND:
        return advice._replace(words=f"{same}; no progress is known, so retry once more")
    return advice._replace(retry="after_fix", words=f"{same}, and no progress is known")


def with_retries(advice: RetryAdvice, retries: int) -> RetryAdvice:
    """An advice that counts the retries of FrameworkController, which keeps only their number.

    Args:
        advice: from the attempts whose logs are known.
        retries: how often the controller has retried the job or the task.
    """
    if retries < advice.attempts:
        return advice
    lost = "FrameworkController does not keep the results of earlier attempts"
    words = advice.words or f"attempt {retries + 1}; {lost}"
    return advice._replace(attempts=retries + 1, words=words)


def advised(diagnosis: Diagnosis, advice: RetryAdvice) -> Diagnosis:
    """A diagnosis with the advice from all attempts; its deciding fact follows the advice."""
    text = diagnosis.advice
    if advice.words:
        if advice.retry == "after_fix" and diagnosis.retry in _RETRIABLE:
            # the class itself advises a retry
            text = "look for what these attempts have in common"
        text = f"{text} ({advice.words})" if text else advice.words
    return diagnosis._replace(retry=advice.retry, advice=text)
