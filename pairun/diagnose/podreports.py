"""What Kubernetes' objects report about each Pod of a job: signals, exit codes, messages, times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.diagnose.classes import EXIT_CODES
from pairun.diagnose.clusterobjects import ClusterObject, mapping, mappings
from pairun.diagnose.signals import EFFECT, KUBERNETES, SYSTEM, Signal
from pairun.diagnose.systemfacts import of_event, of_message, of_reason
from pairun.diagnose.times import Moment, moment_in
from pairun.kube.frameworkpods import completion_of, ended_pod, init_names, tasks_of

_ROLES = ("pairun/role", "FC_TASKROLE_NAME", "jobset.sigs.k8s.io/replicatedjob-name",
          "training.kubeflow.org/replica-type")  # fmt: skip
_INDEXES = ("pairun/index", "FC_TASK_INDEX", "batch.kubernetes.io/job-completion-index",
            "training.kubeflow.org/replica-index", "apps.kubernetes.io/pod-index")  # fmt: skip
"""Labels and annotations with an instance's role and number: pairun's and the controllers'."""

_BEFORE_START = frozenset(("unschedulable", "image_missing", "registry_unavailable"))
"""Classes that no longer hold once the Pod's container has started."""


class PodReport(NamedTuple):
    """What the objects in a job's files report about one Pod.

    Attributes:
        name: the Pod's name.
        uid: its uid; may be empty.
        role: the role in its labels; may be empty.
        number: its number in the role; None if unknown.
        node: its node; may be empty.
        signals: heaviest first.
        exit_code: of the first container that failed; 0 if the others ended with 0; None if none ended.
        at: when it ended; None if unknown.
        by_code: what this exit code alone states; None for 0 and None.
        messages: termination messages of its containers: the end of the log, or PID 1's diagnosis.
        file: the file of the object, for people.
        line: its line there.
        message_line: the line of the first message.
        started: whether a container of the Pod has started.
    """

    name: str
    uid: str = ""
    role: str = ""
    number: int | None = None
    node: str = ""
    signals: tuple[Signal, ...] = ()
    exit_code: int | None = None
    at: Moment | None = None
    by_code: Signal | None = None
    messages: tuple[str, ...] = ()
    file: str = ""
    line: int = 1
    message_line: int = 1
    started: bool = False

    @property
    def label(self) -> str:
        """Role and number as pairun names an instance; else the Pod's name."""
        return f"{self.role}-{self.number}" if self.role and self.number is not None else self.name


def pod_reports(objects: Sequence[ClusterObject]) -> list[PodReport]:
    """The Pods that the objects report about, each once; also Pods that only Events name."""
    reports: dict[str, PodReport] = {}
    for each in objects:
        for pod in _pods_of(each):
            # of two states of a Pod, as a watch prints them, the last counts
            reports[pod.name] = pod
    for each in objects:
        involved = each.part("involvedObject") or each.part("regarding")
        if each.kind != "Event" or involved.get("kind") != "Pod":
            continue
        name = str(involved.get("name") or "")
        report = reports.get(name) or PodReport(
            name, uid=str(involved.get("uid") or ""), file=each.file, line=each.line
        )
        reports[name] = _with_event(report, each)
    return [_settled(each) for each in reports.values()]


def node_signals(objects: Sequence[ClusterObject]) -> Iterator[tuple[str, Signal]]:
    """What objects report about nodes, each with the node's name."""
    for each in objects:
        if each.kind == "Node":
            for condition in mappings(each.part("status").get("conditions")):
                why = str(condition.get("message") or condition.get("reason") or "")
                signal = _of_condition(
                    str(condition.get("type")), str(condition.get("status")), why
                )
                if signal is not None:
                    line = each.line_of("message" if condition.get("message") else "reason", why)
                    yield each.name, signal._replace(where=(each.file, line))
        involved = each.part("involvedObject") or each.part("regarding")
        if each.kind == "Event" and involved.get("kind") == "Node":
            yield from ((str(involved.get("name") or ""), each_) for each_ in _of_event(each))


def _of_condition(kind: str, state: str, why: str) -> Signal | None:
    """What a node's condition states.

    Every condition but ``Ready`` names a problem, which is absent only if it is false.

    Args:
        kind: its type.
        state: ``True``, ``False`` or ``Unknown``.
        why: its reason or message.
    """
    if state == ("True" if kind == "Ready" else "False"):
        return None
    weight = SYSTEM if kind == "Ready" or state == "True" else EFFECT
    klass = "storage_io_error" if kind == "ReadonlyFilesystem" else "node_stuck"
    words = f"the node's condition {kind} is {state}: {why}"
    return Signal(klass, weight, words, KUBERNETES)


def retries_of(objects: Sequence[ClusterObject]) -> int:
    """How often FrameworkController has retried the job or one of its tasks."""
    counts = [0]
    for each in objects:
        if each.kind == "Framework":
            counts.append(_retries(each.part("status")))
            counts += [_retries(task) for _, task in tasks_of(each.data)]
    return max(counts)


def trigger_of(objects: Sequence[ClusterObject]) -> str:
    """The label of the task that ended a Framework's last attempt; empty if none did."""
    for each in objects:
        if each.kind == "Framework":
            trigger = completion_of(each.data).get("trigger")
            if isinstance(trigger, dict) and "taskIndex" in trigger:
                return f"{trigger.get('taskRoleName')}-{trigger['taskIndex']}"
    return ""


def _retries(status: Mapping[str, Any]) -> int:
    count = mapping(status.get("retryPolicyStatus")).get("totalRetriedCount")
    return count if isinstance(count, int) else 0


def _pods_of(each: ClusterObject) -> Iterator[PodReport]:
    if each.kind == "Pod" and each.name:
        yield _report(each, each.data)
    if each.kind == "Framework":
        inits = init_names(each.data)
        for role, task in tasks_of(each.data):
            attempt = mapping(task.get("attemptStatus"))
            completion = mapping(attempt.get("completionStatus"))
            if completion and attempt.get("podName"):
                yield _report(each, ended_pod(role, task, attempt, completion, inits))


def _report(each: ClusterObject, pod: Mapping[str, Any]) -> PodReport:
    meta, status = mapping(pod.get("metadata")), mapping(pod.get("status"))
    labels = {**mapping(meta.get("annotations")), **mapping(meta.get("labels"))}
    containers = [
        container
        for key in ("initContainerStatuses", "containerStatuses")
        for container in mappings(status.get(key))
    ]
    states = [state for container in containers for state in states_of(container)]
    ended = [terminated for state in states if (terminated := mapping(state.get("terminated")))]
    codes = [code for each_ in ended if isinstance(code := each_.get("exitCode"), int)]
    failed = [each_ for each_ in ended if each_.get("exitCode")]
    times = [moment_in(str(each_.get("finishedAt") or "")) for each_ in failed or ended]
    by_code = next(of_codes(each, containers), None)
    told = [str(e["message"]) for e in failed if e.get("message")]
    index = next((str(labels[k]) for k in _INDEXES if str(labels.get(k, "")).isdecimal()), "")
    return PodReport(
        name=str(meta.get("name")),
        uid=str(meta.get("uid") or ""),
        role=next((str(labels[k]) for k in _ROLES if labels.get(k)), ""),
        number=int(index) if len(index) in range(1, 7) else _last_number(str(meta.get("name"))),
        node=str(mapping(pod.get("spec")).get("nodeName") or ""),
        signals=tuple(of_status(each, status, containers)),
        exit_code=next((code for code in codes if code), 0 if codes else None),
        at=min((t for t in times if t is not None), default=None),
        by_code=by_code,
        messages=tuple(told),
        file=each.file,
        line=each.line,
        message_line=each.line_of("message", told[0]) if told else each.line,
        started=any("running" in state or state.get("terminated") for state in states),
    )


def _last_number(name: str) -> int | None:
    match = re.search(r"-(\d{1,5})$", name)
    return int(match[1]) if match else None


def _with_event(report: PodReport, event: ClusterObject) -> PodReport:
    own = _of_event(event)
    times = ("eventTime", "lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp")
    text = next((str(event.data[key]) for key in times if event.data.get(key)), "")
    return report._replace(
        signals=(*report.signals, *own),
        at=report.at or (moment_in(text) if own else None),
        started=report.started or event.data.get("reason") == "Started",
    )


def _of_event(event: ClusterObject) -> list[Signal]:
    reason = str(event.data.get("reason") or "")
    message = str(event.data.get("message") or event.data.get("note") or "")
    key = next((k for k in ("message", "note") if event.data.get(k)), "reason")
    where = (event.file, event.line_of(key, event.data.get(key) or ""))
    signal = of_event(reason, message)
    return [] if signal is None else [signal._replace(where=where)]


def _settled(report: PodReport) -> PodReport:
    """A report with each class once, and without what the Pod has overcome."""
    signals: dict[str, Signal] = {}
    for each in sorted(report.signals, key=lambda s: -s.weight):
        if not (report.started and each.klass in _BEFORE_START):
            signals.setdefault(each.klass, each)
    return report._replace(signals=tuple(signals.values()))


def states_of(container: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The state of a container, and how it ended before if it has restarted since."""
    state = mapping(container.get("state"))
    yield state
    if not state.get("terminated"):
        yield mapping(container.get("lastState"))


def of_status(
    each: ClusterObject, status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]
) -> Iterator[Signal]:
    """What a Pod's status states by words.

    Args:
        each: the object.
        status: of the Pod.
        containers: the statuses of its containers.
    """
    if status.get("phase") == "Succeeded":
        return
    yield from _stated_in(each, status, "message", "reason")
    for condition in mappings(status.get("conditions")):
        kind, holds = condition.get("type"), condition.get("status")
        if (kind, holds) in (("DisruptionTarget", "True"), ("PodScheduled", "False")):
            yield from _stated_in(each, condition, "message", "reason")
    for container in containers:
        for state in states_of(container):
            for part in (mapping(state.get("waiting")), mapping(state.get("terminated"))):
                for signal in _stated_in(each, part, "reason"):
                    yield _weighed(signal, container)


def _stated_in(each: ClusterObject, part: Mapping[str, Any], *keys: str) -> Iterator[Signal]:
    for key in keys:
        text = str(part.get(key) or "")
        signal = of_message(text) if key == "message" else of_reason(text)
        if signal is not None:
            yield signal._replace(where=(each.file, each.line_of(key, text)))


def of_codes(each: ClusterObject, containers: Sequence[Mapping[str, Any]]) -> Iterator[Signal]:
    """What the exit codes of containers alone state.

    Args:
        each: the object.
        containers: their statuses.
    """
    for container in containers:
        for state in states_of(container):
            code = mapping(state.get("terminated")).get("exitCode")
            if isinstance(code, int) and (signal := _of_code(code)) is not None:
                where = (each.file, each.line_of("exitCode", code))
                yield _weighed(signal, container)._replace(where=where)


def _of_code(code: int) -> Signal | None:
    """What a container's exit code alone states; None for 0."""
    if code == 0:
        return None
    klass, weight = EXIT_CODES.get(code, ("child_failed", EFFECT))
    return Signal(klass, weight, f"the container's exit code is {code}", KUBERNETES)


def _weighed(signal: Signal, container: Mapping[str, Any]) -> Signal:
    """A signal about a container, which counts little if the container runs again and is ready."""
    running = mapping(container.get("state")).get("running")
    if not isinstance(running, dict) or container.get("ready") is not True:
        return signal
    since, restarts = moment_in(str(running.get("startedAt") or "")), container.get("restartCount")
    at = f" since {since.clock()}" if since is not None else ""
    count = "1 restart" if restarts in (1, None) else f"{restarts} restarts"
    words = f"{signal.words}; it runs again{at} ({count})"
    return signal._replace(weight=min(signal.weight, EFFECT), words=words)
