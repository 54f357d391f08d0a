"""Facts from Kubernetes' events, as ``kubectl get events`` and ``kubectl describe`` print them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.fact import (
    DECISIVE,
    HINT,
    KUBERNETES,
    LIKELY,
    PREVIOUS_LOG,
    STRONG,
    Fact,
    Reader,
    with_pod,
)
from pairun.diagnose.lines import Line, Log

_ROW = re.compile(
    r"^\s*(?:\S+\s+)?(?:<unknown>\s+)?(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$"
)
_REASONS: Mapping[str, tuple[str, int, str]] = {
    "FailedScheduling": ("unschedulable", STRONG + 3, "no node fits the Pod"),
    "NotTriggerScaleUp": ("unschedulable", LIKELY, "no larger cluster would fit the Pod"),
    "Evicted": ("evicted", DECISIVE, "the kubelet evicted the Pod"),
    "Preempted": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "TaintManagerEviction": ("evicted", STRONG + 3, "the Pod was deleted because of a taint of its node"),
    "NodeNotReady": ("node_stuck", STRONG, "the node is not ready"),
    "OOMKilling": ("host_oom", STRONG + 3, "the kernel killed a process for memory"),
    "SystemOOM": ("host_oom", LIKELY, "the node had no memory left"),
    "DeadlineExceeded": ("time_limit", STRONG + 2, "the Job reached its deadline"),
    "BackOff": ("child_failed", HINT + 2, "the container fails repeatedly (BackOff)"),
    "BackoffLimitExceeded": ("child_failed", HINT, "the Job's Pods failed too often"),
}  # fmt: skip
_ROUTINE = frozenset((
    "Created", "NodeHasDiskPressure", "NodeHasNoDiskPressure", "NodeHasSufficientMemory",
    "NodeHasSufficientPID", "NodeReady", "Pulled", "Pulling", "Scheduled", "Started", "Starting",
    "SuccessfulAttachVolume", "SuccessfulCreate", "TriggeredScaleUp", "AddedInterface",
))  # fmt: skip
"""Events of type Normal that report no failure, even if they contain words of failure."""

OTHER_NODE = "run it again, on another node; `kubectl describe node` shows the taints of this one"
"""Advice for a Pod that had to leave its node: neither its size nor its priority is the reason."""

_ADVICE: Mapping[str, str] = {"BackOff": PREVIOUS_LOG, "TaintManagerEviction": OTHER_NODE}

_WHY_CHARS = 200
_NODES = re.compile(rf"\b0/\d+ nodes are available: (?P<why>.{{1,{_WHY_CHARS}}})")
_NO_ANSWER = re.compile(r"failed liveness probe")
_IMAGE = re.compile(r"[Bb]ack-off pulling image|ErrImagePull|ImagePullBackOff")


_STARTED: Mapping[str, re.Pattern[str]] = {
    "unschedulable": re.compile(r"Successfully assigned (?:\S+/)?(?P<pod>\S+) to\b"),
    "image_missing": re.compile(r"Successfully pulled image|\bStarted container\b"),
}
"""What the next events report once a Pod that waited has its node, or its image."""

_POD = re.compile(r"\bpods?/(?P<pod>[a-z0-9][a-z0-9.-]*)")
_IN_POD = re.compile(r"\bpod (?P<pod>[a-z0-9][a-z0-9.-]*)_[a-z0-9-]+\(")
"""A Pod in the kubelet's form: name, namespace, uid."""

_COLUMNS = re.compile(r"[a-z]+/\S+\s+|\d\w*(?: \(x\d+ over \w+\))?\s+[a-z][\w.-]*(?:, \S+)?\s{2,}")
"""What precedes the message: the object, or the age and who reports it."""

_NEXT_EVENTS = 40


def is_over(klass: str, line: Line, log: Log) -> bool:
    """Whether later events report that the Pod no longer waits for its node or its image.

    Args:
        klass: the class of what an event reports.
        line: the event.
        log: the log of the line.
    """
    if klass not in _STARTED:
        return False
    mine = _POD.search(line.text)
    for after in log.after(line.at, _NEXT_EVENTS):
        match = _STARTED[klass].search(after.text)
        other = _POD.search(after.text) or (match if klass == "unschedulable" else None)
        if match and (mine is None or other is None or mine["pod"] == other["pod"]):
            return True
    return False


def why_no_node(message: str) -> str:
    """Why nodes do not fit a Pod, by the scheduler's message; empty for any other text."""
    match = _NODES.search(message)
    return match["why"].partition(" preemption: ")[0].rstrip(" .") if match else ""


def facts_of_event(kind: str, reason: str, message: str, at: int = -1) -> list[Fact] | None:
    """The facts of an Event.

    Args:
        kind: its type, ``Normal`` or ``Warning``.
        reason: a word in CamelCase.
        message: its text.
        at: offset of its line in the log, in bytes; -1 if it is not from a log.

    Returns:
        None if neither reason nor text is known.
    """
    if _NO_ANSWER.search(message):
        return [_fact("hang", LIKELY, "the container did not answer its liveness probe", at)]
    if _IMAGE.search(message):
        return [_fact("image_missing", HINT + 8, "the image could not be pulled", at)]
    if reason in _REASONS:
        klass, weight, words = _REASONS[reason]
        if reason == "FailedScheduling" and (why := why_no_node(message)):
            return [_fact(klass, DECISIVE, f"{words}: {why}", at)]
        if reason == "FailedScheduling" and message:
            words = f"{words}: {message[:_WHY_CHARS]}"
        return [_fact(klass, weight, words, at)._replace(advice=_ADVICE.get(reason, ""))]
    if reason == "Unhealthy":
        return []  # the kubelet retries the probe; another event reports if it ends the container
    return [] if kind == "Normal" and reason in _ROUTINE else None


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    match = _ROW.match(line.text)
    if match is None:
        return None
    message = (
        _COLUMNS.sub("", match["rest"], count=1) if _COLUMNS.match(match["rest"]) else match["rest"]
    )
    stated = facts_of_event(match["type"], match["reason"], message, line.at)
    if not stated:
        return stated
    pod = _POD.search(line.text) or _IN_POD.search(message)
    named = [with_pod(fact, pod["pod"]) for fact in stated] if pod else stated
    return [fact for fact in named if not is_over(fact.klass, line, log)]


def _fact(klass: str, weight: int, words: str, at: int) -> Fact:
    return Fact(klass, weight, words, KUBERNETES, at)


EVENTS = Reader(("normal ", "warning "), _read)
