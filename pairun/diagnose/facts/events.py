"""Facts from Kubernetes' events, as ``kubectl get events`` and ``kubectl describe`` print them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.fact import DECISIVE, HINT, LIKELY, STRONG, Fact, Reader
from pairun.diagnose.lines import Line, Log

_ROW = re.compile(
    r"^\s*(?:\S+\s+)?(?:<unknown>\s+)?(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w+)\s+(?P<rest>\S.*)$"
)
_REASONS: Mapping[str, tuple[str, int, str]] = {
    "FailedScheduling": ("unschedulable", STRONG + 3, "no node fits the Pod"),
    "NotTriggerScaleUp": ("unschedulable", LIKELY, "no larger cluster would fit the Pod"),
    "Evicted": ("evicted", DECISIVE, "the kubelet evicted the Pod"),
    "Preempted": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "TaintManagerEviction": ("evicted", STRONG, "the Pod was deleted because of a taint of its node"),
    "NodeNotReady": ("node_stuck", STRONG, "the node is not ready"),
    "OOMKilling": ("host_oom", STRONG + 3, "the kernel killed a process for memory"),
    "SystemOOM": ("host_oom", LIKELY, "the node had no memory left"),
    "DeadlineExceeded": ("time_limit", STRONG + 2, "the Job reached its deadline"),
    "BackOff": ("child_failed", HINT, "the container fails repeatedly"),
    "BackoffLimitExceeded": ("child_failed", HINT, "the Job's Pods failed too often"),
}  # fmt: skip
_ROUTINE = frozenset((
    "Created", "NodeHasDiskPressure", "NodeHasNoDiskPressure", "NodeHasSufficientMemory",
    "NodeHasSufficientPID", "NodeReady", "Pulled", "Pulling", "Scheduled", "Started", "Starting",
    "SuccessfulAttachVolume", "SuccessfulCreate", "TriggeredScaleUp", "AddedInterface",
))  # fmt: skip
"""Events of type Normal that report no failure, even if they contain words of failure."""

_NO_ANSWER = re.compile(r"failed liveness probe")
_IMAGE = re.compile(r"[Bb]ack-off pulling image|ErrImagePull|ImagePullBackOff")


def _read(line: Line, _log: Log) -> Sequence[Fact] | None:
    match = _ROW.match(line.text)
    if match is None:
        return None
    reason, rest = match["reason"], match["rest"]
    if _NO_ANSWER.search(rest):
        return [_fact(("hang", LIKELY, "the container did not answer its liveness probe"), line)]
    if _IMAGE.search(rest):
        return [_fact(("image_missing", HINT + 8, "the image could not be pulled"), line)]
    if reason in _REASONS:
        if reason == "FailedScheduling" and (why := rest.partition("nodes are available: ")[2]):
            klass, _, words = _REASONS[reason]
            return [_fact((klass, DECISIVE, f"{words}: {why[:200]}"), line)]
        return [_fact(_REASONS[reason], line)]
    if reason == "Unhealthy":
        return []  # the kubelet retries the probe; another event reports if it ends the container
    return [] if match["type"] == "Normal" and reason in _ROUTINE else None


def _fact(what: tuple[str, int, str], line: Line) -> Fact:
    klass, weight, words = what
    return Fact(klass, weight, words, "Kubernetes", line.at)


EVENTS = Reader(("normal ", "warning "), _read)
