"""Facts about a Kubernetes Pod: why it or its container ended, and why it does not start.

Formats: ``kubectl get pod`` (YAML and JSON; the table: `podrows`) and ``kubectl describe pod``. The reasons are
those of the kubelet, the scheduler and the controllers
(https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/, kubelet/events/event.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.events import OTHER_NODE, is_over, why_no_node
from pairun.diagnose.facts.fact import (
    DECISIVE,
    HINT,
    KUBERNETES,
    LIKELY,
    PREVIOUS_LOG,
    STRONG,
    Fact,
    Reader,
)
from pairun.diagnose.lines import Line, Log

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
}  # fmt: skip
"""Class, weight and meaning of a reason."""

_ADVICE: Mapping[str, str] = {
    "CrashLoopBackOff": PREVIOUS_LOG,
    **dict.fromkeys(("DeletionByTaintManager", "TaintManagerEviction", "EvictionByEvictionAPI"), OTHER_NODE),
}  # fmt: skip
"""The advice for a reason, where that of its class does not fit."""

_OUT_OF = re.compile(r"OutOf[\w./-]{2,80}$")
_NAMED = re.compile(
    r"""(?:^|[\s{,"';(])[Rr]eason(?:"|\\")?\s?[:=]\s{0,40}(?:"|\\"|'|\[)?(?P<reason>[A-Z][\w./-]{2,80})"""
)
_LOW = re.compile(
    r"(?:The )?[Nn]ode was low on resource: \[?(?P<resource>[\w.-]+)|The node had condition: \[(?P<condition>\w+)"
)
_OVER = re.compile(
    r"[Pp]od ephemeral local storage usage exceeds the total limit"
    r"|[Cc]ontainer \S+ exceeded its local ephemeral storage limit"
    r"|[Uu]sage of EmptyDir volume \"?(?P<volume>[\w.-]+)\"? exceeds the limit"
)
_WAITS = re.compile(r"^Status:\s+Pending\s*$")
_NOWHERE = re.compile(r"^Node:\s+<none>\s*$")
_SCHEDULED = re.compile(r"^\s*PodScheduled\s+(?P<state>False|True)\b")
_STATE = re.compile(r"^\s*(?:Last )?State:\s+(?:Terminated|Running|Waiting)\s*$")
_OF_LAST_STATE = re.compile(r"\s+(?:Reason|Exit Code):")
_RUNS_AGAIN = re.compile(
    r"\bState:\s+Running\s*\n\s+Started:[^\n]*?(?P<since>\d\d:\d\d:\d\d)[^\n]*\n\s+Last State:\s+Terminated\s*\n"
    r"(?:\s+(?:Reason|Message|Signal|Exit Code|Started|Finished):[^\n]*\n)+"
    r"\s+Ready:\s+True\s*\n\s+Restart Count:\s+(?P<count>\d{1,9})"
)
_STATE_LINES = 8
"""The maximum number of lines between a line of a container's last state and its other states."""

_DOCKER = re.compile(r"""^\s*"?OOMKilled"?: (?P<state>true|false),?\s*$""")
"""The state in ``docker inspect`` and ``podman inspect``."""

_HEAD_LINES = 40
"""The maximum number of lines between ``Node:`` and ``Status:`` in ``kubectl describe pod``."""

_EXIT = re.compile(
    r"""^\s*(?:-\s+)?"?(?:exitCode|ExitCode|Exit Code)"?:\s*(?P<code>\d{1,3}),?\s*$"""
)
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


def fact_of_reason(reason: str, at: int = -1) -> Fact | None:
    """The fact that a reason of a Pod, a container or a condition states; None for any other.

    Args:
        reason: a word in CamelCase.
        at: offset of its line in the log, in bytes; -1 if it is not from a log.
    """
    if reason in REASONS:
        klass, weight, words = REASONS[reason]
        fact = _fact(klass, weight, f"{words} ({reason})", at)
        return fact._replace(advice=_ADVICE.get(reason, ""))
    if _OUT_OF.match(reason):
        resource = reason.removeprefix("OutOf")
        return _fact("unschedulable", DECISIVE, f"the node has no {resource} left", at)
    return None


def fact_of_message(message: str, at: int = -1) -> Fact | None:
    """The fact that the scheduler or the kubelet states in a sentence; None for any other text."""
    if match := _OVER.search(message):
        return _over(match["volume"], at)
    if match := _LOW.search(message):
        resource = match["resource"] or match["condition"]
        return _fact("evicted", DECISIVE, f"the node was low on {resource}: Pods were evicted", at)
    if why := why_no_node(message):
        return _fact("unschedulable", DECISIVE, f"no node fits the Pod: {why}", at)
    return None


def fact_of_code(code: int, at: int = -1) -> Fact | None:
    """The fact that a container's exit code alone states; None for 0."""
    if code == 0:
        return None
    klass, weight = _CODES.get(code, ("child_failed", HINT))
    return _fact(klass, weight, f"the container's exit code is {code}", at)


def outlived(fact: Fact, since: str, restarts: int) -> Fact:
    """The fact about a container that ended, if it runs again and is ready: it weighs less.

    Args:
        fact: how it ended.
        since: the time of day of its start; may be empty.
        restarts: how often it was started again.
    """
    at = f" since {since}" if since else ""
    count = f"{restarts} restart{'s' * (restarts != 1)}"
    words = f"{fact.words}; it runs again{at} ({count})"
    return fact._replace(weight=min(fact.weight, LIKELY), words=words, is_past=True)


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    facts = _stated(line, log)
    if facts and (match := _again(line, log)):
        return [outlived(fact, match["since"], int(match["count"])) for fact in facts]
    return facts


def _again(line: Line, log: Log) -> re.Match[str] | None:
    """The state of a container of ``kubectl describe`` whose last state has a line, if it runs again."""
    if not _OF_LAST_STATE.match(line.text):
        return None
    above = "".join(f"{each.text}\n" for each in [*log.before(line.at, _STATE_LINES)][::-1])
    below = "\n".join(each.text for each in log.after(line.at, _STATE_LINES))
    blocks = _RUNS_AGAIN.finditer(f"{above}{line.text}\n{below}")
    return next((each for each in blocks if each.start() < len(above) < each.end()), None)


def _stated(line: Line, log: Log) -> Sequence[Fact] | None:
    text = line.text
    if (stated := fact_of_message(text, line.at)) is not None:
        return [] if is_over(stated.klass, line, log) else [stated]
    if _WAITS.match(text):
        nowhere = any(_NOWHERE.match(above.text) for above in log.before(line.at, _HEAD_LINES))
        words = "the Pod waits, and has no node"
        return [_fact("unschedulable", LIKELY, words, line.at)] if nowhere else []
    if match := _SCHEDULED.match(text):
        if match["state"] == "True":
            return []
        # the scheduler's event, which follows, says why
        return [fact._replace(weight=STRONG + 2) for fact in _of("Unschedulable", line)]
    if match := _DOCKER.match(text):
        return _of("OOMKilled", line) if match["state"] == "true" else []
    if match := _EXIT.match(text):
        fact = fact_of_code(int(match["code"]), line.at)
        return [] if fact is None else [fact]
    if _STATE.match(text):
        return []  # the next lines contain the reason
    for match in _NAMED.finditer(text):
        if facts := _of(match["reason"].rstrip("."), line):
            return facts
    return None


def _of(reason: str, line: Line) -> list[Fact]:
    fact = fact_of_reason(reason, line.at)
    return [] if fact is None else [fact]


def _over(volume: str | None, at: int) -> Fact:
    """The Pod exceeded its own limit: the job's fault, not the node's."""
    if volume and "shm" in volume:
        return _fact("shm_too_small", DECISIVE, f"the volume {volume} is full", at)
    words = f"the volume {volume}" if volume else "the Pod's ephemeral storage"
    fact = _fact("evicted", DECISIVE, f"the kubelet evicted the Pod: {words} exceeds its limit", at)
    advice = "write less to the container's disk, or ask for more ephemeral storage"
    return fact._replace(fault="user", retry="after_fix", advice=advice)


def _fact(klass: str, weight: int, words: str, at: int) -> Fact:
    return Fact(klass, weight, words, KUBERNETES, at)


PODS = Reader(
    (
        "reason", "state:", "podscheduled", "exitcode", "exit code:", "low on resource", "node had condition",
        "nodes are available", "ephemeral local storage", "ephemeral storage limit", "emptydir volume",
        *(name.lower() for name in REASONS),
        "pending",
    ),
    _read,
)  # fmt: skip
