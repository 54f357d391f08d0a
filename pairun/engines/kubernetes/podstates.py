"""The state of one instance, read from its Pod: identity, phase, restarts, reason.

The fields are those of the Pod API (kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle). A
Pod is identified by pairun's labels, by FrameworkController's, or by the index of an Indexed Job.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import yaml

from pairun.engines.manifest.objectnames import INDEX_LABEL, ROLE_LABEL
from pairun.kube.pods import STUCK, is_scheduled, unscheduled
from pairun.report.terminal import visible
from pairun.runtime.termination import END, START

INIT = "init"
APP = "app"
MESSAGE_BYTES = 12 * 1024
"""Kubernetes keeps no more of what all containers of a Pod say at their end."""
HEADLINE = 200
DIAGNOSIS = ("class", "fault", "retry", "confidence", "headline", "evidence", "advice")
"""What PID 1 writes of why the command died (pairun.runtime.termination)."""
DIAGNOSIS_CHARS = 512

INIT_CODES = {
    251: "the gang was not complete in time",
    252: "the barrier cannot pass",
    253: "a port of this container is taken",
    254: "the image does not exist, or the registry refuses this job",
}
"""What docs/exit-codes.md says of them."""
APP_CODES = {
    126: "the command cannot be executed",
    127: "the image does not have the command",
    255: "a task before the command failed, or an exit handler, or the cluster's exit spec decided",
}
SIGNALS = {
    129: "SIGHUP",
    130: "SIGINT",
    134: "SIGABRT",
    137: "SIGKILL",
    139: "SIGSEGV",
    143: "SIGTERM",
}
_FAILED_TASK = re.compile(r"^failed +([^\s:]+): [^\n]*\n +(\S[^\n]*)$", re.MULTILINE)
"""A task that failed, and why, in what the init phase prints."""
ENDED = frozenset({"succeeded", "failed"})


@attrs.frozen(kw_only=True)
class PodState:
    """An instance of a job, as its newest Pod shows it.

    Attributes:
        role: name of its role, as Pods bear it.
        index: its number in the role.
        pod: the Pod's name.
        uid: the Pod's uid.
        node: the node, or None while there is none.
        phase: ``pending``, ``unschedulable``, ``starting`` (images and volumes), ``stuck``, ``init``,
            ``running``, ``stopping``, ``succeeded``, ``failed``, ``lost``.
        reason: why, in words; empty where there is nothing to say.
        init_code: what init ended with, or None.
        code: what the user's container ended with, or None.
        restarts: starts of its containers after the first, and Pods before this one.
        made: when the Pod was made (RFC 3339).
        ended: when it ended (RFC 3339), or empty.
        grace_s: how long it may take to stop.
        diagnosis: why the command died, as its PID 1 says; empty where it says nothing.
    """

    role: str
    index: int
    pod: str
    uid: str
    node: str | None
    phase: str
    reason: str = ""
    init_code: int | None = None
    code: int | None = None
    restarts: int = 0
    made: str = ""
    ended: str = ""
    grace_s: int = 30
    diagnosis: Mapping[str, str | float] = attrs.field(factory=dict)

    @property
    def label(self) -> str:
        """Role and number."""
        return f"{self.role}-{self.index}"

    @property
    def exit_code(self) -> int | None:
        """What the instance ended with, whichever phase it was; None while it goes on."""
        if self.phase not in ENDED:
            return None
        if self.code is not None:
            return self.code
        if self.phase == "succeeded":
            return 0
        return self.init_code or 1


def read_pod(pod: Mapping[str, Any]) -> PodState:
    """The instance that a Pod is of."""
    meta, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    labels = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    init = _container(status.get("initContainerStatuses"), INIT)
    app = _container(status.get("containerStatuses"), APP)
    init_code, code = _code(init), _code(app)
    phase, reason = _phase(meta, status, init, app)
    ends = [_ended(c).get("finishedAt") for c in (init, app)]
    return PodState(
        role=visible(str(labels.get(ROLE_LABEL) or labels.get("FC_TASKROLE_NAME") or "pod")),
        index=_index(labels),
        pod=str(meta.get("name")),
        uid=str(meta.get("uid")),
        node=spec.get("nodeName"),
        phase=phase,
        reason=_one_line(reason),
        init_code=init_code,
        code=code,
        restarts=sum(int(c.get("restartCount") or 0) for c in (init, app)),
        made=str(meta.get("creationTimestamp") or ""),
        ended=max((str(e) for e in ends if e), default="") if phase in ENDED else "",
        grace_s=int(spec.get("terminationGracePeriodSeconds") or 0),
        diagnosis=diagnosis(str(_ended(app).get("message") or "")),
    )


def newest(pods: Iterable[PodState]) -> tuple[PodState, ...]:
    """One per role and number, in order: the newest, which counts those before it."""
    by_instance: dict[tuple[str, int], list[PodState]] = {}
    for each in pods:
        by_instance.setdefault((each.role, each.index), []).append(each)
    return tuple(
        attrs.evolve(last, restarts=sum(p.restarts for p in same) + len(same) - 1)
        for _, same in sorted(by_instance.items())
        for last in [max(same, key=lambda p: (p.made, p.phase not in ENDED, p.uid))]
    )


def headline(message: str) -> str:
    """The line of a termination message that says most.

    It is what the diagnosis found, else what matched, else the last words of the user's command or
    of the container.
    """
    read = _document(message)
    if read is None:
        text = _tagged(message) or message[:MESSAGE_BYTES]
        tasks = _FAILED_TASK.findall(text)
        return _one_line(": ".join(tasks[-1]))[:HEADLINE] if tasks else _last_line(text)
    if (why := _diagnosis(read)).get("class") not in (None, "unknown"):
        words = (f"{why.get('headline', '')} ({why['class']})", why.get("evidence"))
        return _one_line(": ".join(str(w) for w in words if w))[:HEADLINE]
    logs = read.get("errorLogs")
    logs = logs if isinstance(logs, dict) else {}
    texts = (read.get("matchedUserLogString"), read.get("matchedPlatformLogString"),
             logs.get("user"), logs.get("platform"))  # fmt: skip
    return _last_line(next((t for t in texts if isinstance(t, str) and t.strip()), ""))


def diagnosis(message: str) -> Mapping[str, str | float]:
    """What a termination message says of why the command died; empty where it says nothing."""
    return _diagnosis(_document(message) or {})


def _tagged(message: str) -> str:
    return message[:MESSAGE_BYTES].partition(START)[2].partition(END)[0]


def _document(message: str) -> Mapping[str, Any] | None:
    """The YAML of a termination message; None where there is none."""
    try:
        read = yaml.safe_load(_tagged(message))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def _diagnosis(read: Mapping[str, Any]) -> dict[str, str | float]:
    why = read.get("diagnosis")
    diagnosis: dict[str, str | float] = {}
    if not isinstance(why, dict):
        return diagnosis
    for name in DIAGNOSIS:
        if isinstance(value := why.get(name), str):
            diagnosis[name] = value[:DIAGNOSIS_CHARS]
        elif isinstance(value, float) and math.isfinite(value):
            diagnosis[name] = value
    return diagnosis


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return _one_line(lines[-1])[:HEADLINE] if lines else ""


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def meaning(code: int, table: Mapping[int, str]) -> str:
    """An exit code and what it means, where that is known."""
    known = table.get(code) or (f"ended by {SIGNALS[code]}" if code in SIGNALS else "")
    return f"{code} ({known})" if known else str(code)


def _index(labels: Mapping[str, str]) -> int:
    for name in (INDEX_LABEL, "FC_TASK_INDEX", "batch.kubernetes.io/job-completion-index"):
        if re.fullmatch("[0-9]{1,9}", text := str(labels.get(name, ""))):
            return int(text)
    return 0


def _container(statuses: Any, name: str) -> Mapping[str, Any]:
    """The status of a container of a name; else of the first, for Pods that others wrote."""
    containers = [s for s in statuses or () if isinstance(s, dict)]
    return next(
        (s for s in containers if s.get("name") == name), containers[0] if containers else {}
    )


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    state = container.get("state") or {}
    return state.get("terminated") or {}


def _code(container: Mapping[str, Any]) -> int | None:
    code = _ended(container).get("exitCode")
    return code if isinstance(code, int) else None


def _phase(
    meta: Mapping[str, Any],
    status: Mapping[str, Any],
    init: Mapping[str, Any],
    app: Mapping[str, Any],
) -> tuple[str, str]:
    match status.get("phase"):
        case "Succeeded":
            return "succeeded", ""
        case "Failed":
            gone = "its Pod was deleted" if meta.get("deletionTimestamp") else ""
            return "failed", _failure(status, init, app) or gone
        case "Unknown":
            return "lost", "its node does not answer"
    if meta.get("deletionTimestamp"):
        return "stopping", ""
    if status.get("phase") in (None, "Pending") and (reason := unscheduled(status)) is not None:
        return "unschedulable", reason
    for container, what in ((init, INIT), (app, "the command")):
        state = container.get("state") or {}
        if (waiting := state.get("waiting") or {}).get("reason") in STUCK:
            words = [str(waiting["reason"])]
            if last := (container.get("lastState") or {}).get("terminated"):
                words.append(f"{what} ended with {_code_and_reason(last, what)}")
            elif waiting.get("message"):
                words.append(str(waiting["message"]))
            return "stuck", ": ".join(words)
        if "running" in state:
            return ("init" if container is init else "running"), ""
    if _ended(app):
        return "stopping", ""
    if not status.get("phase") or not is_scheduled(status):
        return "pending", ""
    return "starting", ""


def _failure(status: Mapping[str, Any], init: Mapping[str, Any], app: Mapping[str, Any]) -> str:
    if _code(init):
        return f"init ended with {_code_and_reason(_ended(init), INIT)}"
    if ended := _ended(app):
        return f"the command ended with {_code_and_reason(ended, 'the command')}"
    words = (status.get("reason"), status.get("message"))
    return ": ".join(str(w) for w in words if w)


def _code_and_reason(ended: Mapping[str, Any], what: str) -> str:
    """A container's end: its code, what that means, and its last words."""
    code = ended.get("exitCode")
    code = code if isinstance(code, int) else 1
    text = meaning(code, INIT_CODES if what == INIT else APP_CODES)
    if ended.get("reason") == "OOMKilled":
        text = f"{code} (out of memory)"
    said = headline(str(ended.get("message") or ""))
    return f"{text}: {said}" if said else text
