"""Advises on a retry from earlier attempts: whether they failed alike, and how far they got.

The same failure twice at the same place: a retry does not help. The same failure further on:
retries help, up to a bound. A failure of the node: use another node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.progress import Progress

BOUND = 3
"""How many more retries are advised while the job makes progress."""

_UNSEEN_BOUND = 3
"""The number of equal failures after which retries end if no progress is known."""

_RETRIABLE = frozenset(("retry", "retry_elsewhere"))
_STOPS = frozenset(("terminated_sigterm", "cancelled_by_user", "evicted"))
"""Classes of attempts that something else ended; however frequent, the job is not the cause."""

_VARIES = re.compile(r"0x[0-9a-f]+|\d+")


class Attempt(NamedTuple):
    """One attempt of a job.

    Attributes:
        klass: its failure class.
        signature: equal for attempts that failed alike.
        progress: how far it got.
        node: of its first failure; empty if unknown.
        retry: the advice for its failure alone.
    """

    klass: str
    signature: str
    progress: Progress = Progress()
    node: str = ""
    retry: str | None = None


class RetryAdvice(NamedTuple):
    """What to do with a job after several attempts.

    Attributes:
        retry: one of `pairun.diagnose.classes.RETRIES`, or None for no advice.
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


def signature_of(diagnosis: Diagnosis) -> str:
    """What equal failures share: class, rule, place in the code, message without numbers."""
    details = diagnosis.details
    place = f"{details.get('code_file', '')}:{details.get('code_line', '')}"
    message = _VARIES.sub("#", diagnosis.headline)
    return f"{diagnosis.klass}|{diagnosis.rule}|{place}|{message}"


def attempt_of(diagnosis: Diagnosis, progress: Progress, node: str = "") -> Attempt:
    """An attempt, from its diagnosis."""
    return Attempt(diagnosis.klass, signature_of(diagnosis), progress, node, diagnosis.retry)


def retry_advice(attempts: Sequence[Attempt]) -> RetryAdvice:
    """Advice after these attempts.

    Args:
        attempts: earliest first; at least one.
    """
    last, before = attempts[-1], attempts[-2] if len(attempts) > 1 else None
    equal = _equal_at_end(attempts)
    progress = last.progress.is_beyond(before.progress) if before is not None else None
    advice = RetryAdvice(last.retry, "", len(attempts), equal, progress)
    if before is None or equal < 2 or last.klass in (NONE, UNKNOWN, *_STOPS):
        return advice
    same = f"the same failure {equal} times"
    if last.retry == "retry_elsewhere":
        nodes = {a.node for a in attempts[-equal:]} - {""}
        if len(nodes) == 1 and all(a.node for a in attempts[-equal:]):
            return advice._replace(words=f"{same} on {nodes.pop()}; choose another node")
        if len(nodes) < equal:
            return advice._replace(words=f"{same}; nothing shows that they were on different nodes")
        if progress is not True:
            words = f"{same}, on {len(nodes)} different nodes: the job is the cause, and no node"
            return advice._replace(retry="after_fix", words=words)
    if progress is True:
        words = f"{same}, with progress: {_between(before, last)}; retry {BOUND} times at most"
        return advice._replace(retry="retry", words=words)
    if progress is False:
        words = f"{same}, without progress: {_between(before, last)}"
        return advice._replace(retry="after_fix", words=words)
    if last.retry in _RETRIABLE and equal < _UNSEEN_BOUND:
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
    words = (
        f"attempt {retries + 1}; FrameworkController does not keep the results of earlier attempts"
    )
    return advice._replace(attempts=retries + 1, words=advice.words or words)


def advised(diagnosis: Diagnosis, advice: RetryAdvice) -> Diagnosis:
    """A diagnosis with the advice from all attempts; its deciding fact follows the advice."""
    if not advice.words:
        return diagnosis._replace(retry=advice.retry)
    text = diagnosis.advice
    if advice.retry == "after_fix" and diagnosis.retry in _RETRIABLE:
        # the class itself advises a retry
        text = "look for what these attempts have in common"
    shown = f"{text} ({advice.words})" if text else advice.words
    return diagnosis._replace(retry=advice.retry, advice=shown)


def _equal_at_end(attempts: Sequence[Attempt]) -> int:
    count = 0
    for attempt in reversed(attempts):
        if attempt.signature != attempts[-1].signature:
            break
        count += 1
    return count


def _between(before: Attempt, last: Attempt) -> str:
    return f"{last.progress.words() or 'a checkpoint'} after {before.progress.words() or 'none'}"
