"""Facts about a Kubernetes Pod, also in a log: why it or its container ended, and why it does not start.

The reasons are those of the kubelet, the scheduler and the controllers
(https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/, kubelet/events/event.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import (
    DECISIVE,
    HINT,
    KUBERNETES,
    LIKELY,
    PREVIOUS_LOG,
    STRONG,
    Reader,
    Signal,
)

OTHER_NODE = "run it again, on another node; `kubectl describe node` shows the taints of this one"
"""Advice for a Pod that had to leave its node: neither its size nor its priority is the reason."""


_WHY_CHARS = 200
_NODES = re.compile(rf"\b0/\d+ nodes are available: (?P<why>.{{1,{_WHY_CHARS}}})")
_NO_ANSWER = re.compile(r"failed liveness probe")
_IMAGE = re.compile(r"[Bb]ack-off pulling image|ErrImagePull|ImagePullBackOff")


_BEFORE_START, _NEXT_EVENTS = frozenset(("unschedulable", "image_missing")), 40
_STARTED = re.compile(r"Successfully (?:assigned|pulled)\b|\bStarted container\b")
"""A later event of a Pod that had waited for its node or its image."""


def fact_of_event(reason: str, message: str) -> Signal | None:
    """The fact that an Event states; None if neither reason nor message is known.

    Args:
        reason: a word in CamelCase.
        message: its text.
    """
    if reason == "FailedScheduling" and message:
        why = _why_no_node(message)
        words = f"no node fits the Pod: {why or message[:_WHY_CHARS]}"
        return _fact("unschedulable", DECISIVE if why else STRONG + 3, words)
    return fact_of_message(message) or fact_of_reason(reason)


def _why_no_node(message: str) -> str:
    """Why nodes do not fit a Pod, by the scheduler's message; empty for any other text."""
    match = _NODES.search(message)
    return match["why"].partition(" preemption: ")[0].rstrip(" .") if match else ""


_STOPPED = "terminated_sigterm"

REASONS: Mapping[str, tuple[str, int, str]] = {
    "OOMKilled": ("host_oom", DECISIVE, "the container used more memory than its limit"),
    "Evicted": ("evicted", DECISIVE, "the kubelet evicted the Pod"),
    "DeadlineExceeded": ("time_limit", STRONG + 2, "the Pod or its Job reached its deadline"),
    "Preempting": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "PreemptionByScheduler": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "PreemptionByKubeScheduler": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "EvictionByEvictionAPI": ("evicted", STRONG + 3, "the Pod was evicted, as when its node is drained"),
    "DeletionByTaintManager": ("evicted", STRONG + 3, "the Pod was deleted because of a taint of its node"),
    "TaintManagerEviction": ("evicted", STRONG + 3, "the Pod was deleted because of a taint of its node"),
    "DeletionByPodGC": ("node_stuck", STRONG, "the Pod was deleted because its node is gone"),
    "TerminationByKubelet": ("evicted", STRONG + 3, "the kubelet ended the Pod: eviction or shutdown"),
    "NodeShutdown": (_STOPPED, STRONG + 3, "the Pod's node was shut down"),
    "NodeLost": ("node_stuck", STRONG + 3, "the Pod's node does not answer"),
    "NodeNotReady": ("node_stuck", STRONG, "the Pod's node is not ready"),
    "KubeletNotReady": ("node_stuck", STRONG + 2, "the node's kubelet is not ready"),
    "NodeStatusUnknown": ("node_stuck", STRONG + 2, "the node's kubelet does not report"),
    "Unschedulable": ("unschedulable", DECISIVE, "no node fits the Pod"),
    "FailedScheduling": ("unschedulable", STRONG + 3, "no node fits the Pod"),
    "SchedulingGated": ("unschedulable", STRONG, "the Pod waits for its scheduling gates"),
    "UnexpectedAdmissionError": ("unschedulable", DECISIVE, "the kubelet refused the Pod"),
    "NodeAffinity": ("unschedulable", STRONG, "the kubelet refused the Pod: its node does not fit"),
    "ImageInspectError": ("image_missing", LIKELY, "the image cannot be inspected"),
    "ErrImageNeverPull": ("image_missing", DECISIVE, "the node lacks the image, and may not pull it"),
    "ErrImagePull": ("image_missing", LIKELY, "the image could not be pulled"),
    "ImagePullBackOff": ("image_missing", LIKELY, "the image could not be pulled"),
    "InvalidImageName": ("image_missing", DECISIVE, "the image's name is invalid"),
    "RegistryUnavailable": ("registry_unavailable", STRONG + 3, "the registry does not answer"),
    "CreateContainerConfigError": ("container_setup_error", STRONG, "the container's settings name what is missing"),
    "CreateContainerError": ("container_setup_error", STRONG, "the container could not be made"),
    "RunContainerError": ("container_setup_error", STRONG, "the container could not be started"),
    "ContainerCannotRun": ("container_setup_error", STRONG, "the container could not be started"),
    "StartError": ("container_setup_error", STRONG, "the container could not be started"),
    "ContainerStatusUnknown": ("node_stuck", LIKELY, "the container's node lost its state"),
    "CrashLoopBackOff": ("child_failed", HINT + 2, "the container fails repeatedly"),
    "BackoffLimitExceeded": ("child_failed", HINT, "the Job's Pods failed too often"),
    "NotTriggerScaleUp": ("unschedulable", LIKELY, "no larger cluster would fit the Pod"),
    "Preempted": ("evicted", STRONG + 3, "the scheduler preempted the Pod for another one"),
    "OOMKilling": ("host_oom", STRONG + 3, "the kernel killed a process for memory"),
    "SystemOOM": ("host_oom", LIKELY, "the node had no memory left"),
    "BackOff": ("child_failed", HINT + 2, "the container fails repeatedly (BackOff)"),
}  # fmt: skip
"""Class, weight and meaning of a reason of a Pod, a container, a condition or an Event."""

_ADVICE: Mapping[str, str] = {
    "BackOff": PREVIOUS_LOG,
    "CrashLoopBackOff": PREVIOUS_LOG,
    **dict.fromkeys(("DeletionByTaintManager", "TaintManagerEviction", "EvictionByEvictionAPI"), OTHER_NODE),
}  # fmt: skip
"""The advice for a reason, where that of its class does not fit."""

_OUT_OF = re.compile(r"OutOf[\w./-]{2,80}$")
_LOW = re.compile(
    r"(?:The )?[Nn]ode was low on resource: \[?(?P<resource>[\w.-]+)|The node had condition: \[(?P<condition>\w+)"
)
_OVER = re.compile(
    r"[Pp]od ephemeral local storage usage exceeds the total limit"
    r"|[Cc]ontainer \S+ exceeded its local ephemeral storage limit"
    r"|[Uu]sage of EmptyDir volume \"?(?P<volume>[\w.-]+)\"? exceeds the limit"
)
_HARMLESS = re.compile(r'OOMKilled"?: false|(?:Readiness|Startup) probe failed')
_REASON = re.compile(
    r"""\b(?:OOM\w+|(?!OutOf)[A-Z]\w*[a-z][A-Z]\w+)|(?:[Rr]eason\W{1,40}|Warning\s+)(?P<word>[A-Z][\w./-]*\w)"""
)
"""A reason in a text: a word in CamelCase, or one that is called so."""

_CODES: Mapping[int, tuple[str, int]] = {
    125: ("container_setup_error", HINT),
    126: ("permission_denied", LIKELY),
    127: ("command_not_found", LIKELY),
    132: ("illegal_instruction", LIKELY + 3),
    134: ("native_abort", LIKELY - 5),
    135: ("shm_too_small", HINT + 3),
    137: ("host_oom", HINT + 4),
    139: ("segfault", LIKELY + 3),
    143: (_STOPPED, LIKELY),
}
"""The meaning of a container's exit code alone."""


def fact_of_reason(reason: str) -> Signal | None:
    """The fact that a reason of a Pod, a container or a condition states; None for any other.

    Args:
        reason: a word in CamelCase.
    """
    if reason in REASONS:
        klass, weight, words = REASONS[reason]
        fact = _fact(klass, weight, f"{words} ({reason})")
        return fact._replace(advice=_ADVICE.get(reason, ""))
    if _OUT_OF.match(reason):
        resource = reason.removeprefix("OutOf")
        return _fact("unschedulable", DECISIVE, f"the node has no {resource} left")
    return None


def fact_of_message(message: str) -> Signal | None:
    """The fact that the scheduler or the kubelet states in a sentence; None for any other text."""
    if _NO_ANSWER.search(message):
        return _fact("hang", LIKELY, "the container did not answer its liveness probe")
    if _IMAGE.search(message):
        return _fact("image_missing", HINT + 8, "the image could not be pulled")
    if match := _OVER.search(message):
        return _over(match["volume"])
    if match := _LOW.search(message):
        resource = match["resource"] or match["condition"]
        return _fact("evicted", DECISIVE, f"the node was low on {resource}: Pods were evicted")
    if why := _why_no_node(message):
        return _fact("unschedulable", DECISIVE, f"no node fits the Pod: {why}")
    return None


def fact_of_code(code: int) -> Signal | None:
    """The fact that a container's exit code alone states; None for 0."""
    if code == 0:
        return None
    klass, weight = _CODES.get(code, ("child_failed", HINT))
    return _fact(klass, weight, f"the container's exit code is {code}")


def _read(line: Line, log: Log) -> Sequence[Signal] | None:
    if _HARMLESS.search(line.text):
        return []
    reasons = (each["word"] or each[0] for each in _REASON.finditer(line.text))
    known = (fact_of_message(line.text), *map(fact_of_reason, reasons))
    stated = next(filter(None, known), None)
    if stated is None:
        return None
    is_over = stated.klass in _BEFORE_START and any(
        _STARTED.search(after.text) for after in log.after(line.at, _NEXT_EVENTS)
    )
    return [] if is_over else [stated]


def _over(volume: str | None) -> Signal:
    """The Pod exceeded its own limit: the job's fault, not the node's."""
    if volume and "shm" in volume:
        return _fact("shm_too_small", DECISIVE, f"the volume {volume} is full")
    words = f"the volume {volume}" if volume else "the Pod's ephemeral storage"
    fact = _fact("evicted", DECISIVE, f"the kubelet evicted the Pod: {words} exceeds its limit")
    advice = "write less to the container's disk, or ask for more ephemeral storage"
    return fact._replace(fault="user", retry="after_fix", advice=advice)


def _fact(klass: str, weight: int, words: str) -> Signal:
    return Signal(klass, weight, words, KUBERNETES)


PODS = Reader(
    (
        "outof", "probe failed", "failed liveness probe", "low on resource", "node had condition", "nodes are available", "ephemeral local storage",
        "ephemeral storage limit", "emptydir volume", *(name.lower() for name in REASONS),
    ),
    _read,
)  # fmt: skip
