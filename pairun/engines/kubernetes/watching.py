"""A job in the cluster: what there is of it, how far it is, and how it goes on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from pairun.engines.completionpolicy import Ended, RolePolicy, decide
from pairun.engines.kubernetes.client import PAGE, Cluster, Patience, Refused, Unreachable
from pairun.engines.kubernetes.podstates import (
    ENDED,
    Instance,
    newest,
    read_pod,
)
from pairun.engines.manifest.objectnames import JOB_LABEL
from pairun.errors import PairunError, Problem
from pairun.report.terminal import visible

WINDOW_S = 2
"""How long changes are gathered before they are told."""
EVENT_CHARS = 500
NAMED = 3
"""So many instances are named where more of them do the same."""
NOT_BEGUN = frozenset({"pending", "unschedulable", "starting", "stuck"})
"""The phases of an instance whose containers do not run."""


class Kind(NamedTuple):
    """A kind of object that starts Pods.

    Attributes:
        engine: the word for it on the command line.
        kind: the API's.
        version: its ``apiVersion``.
        plural: as in its path.
        pods: the label of its Pods that has the job's name.
    """

    engine: str
    kind: str
    version: str
    plural: str
    pods: str = JOB_LABEL


KINDS = (
    Kind("framework", "Framework", "frameworkcontroller.microsoft.com/v1", "frameworks",
         "FC_FRAMEWORK_NAME"),
    # a JobSet's Jobs bear the label too
    Kind("jobset", "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets"),
    Kind("job", "Job", "batch/v1", "jobs"),
)  # fmt: skip
POD = Kind("pod", "Pod", "v1", "pods")


@attrs.frozen(kw_only=True)
class JobState:
    """A job at one moment.

    Attributes:
        name: its name.
        namespace: where it is.
        engine: what starts its Pods.
        state: ``waiting``, ``running``, ``stopping``, ``succeeded`` or ``failed``.
        because: why it ended so, or what the engine says; may be empty.
        total: how many instances there are to be.
        instances: those that have a Pod.
        exit_code: 0 or what its first failure ended with; None while it goes on.
    """

    name: str
    namespace: str
    engine: str
    state: str
    because: str
    total: int
    instances: tuple[Instance, ...]
    exit_code: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the job has its outcome."""
        return self.state in ENDED


@attrs.frozen
class JobObjects:
    """What the API server has under a job's name.

    Attributes:
        name: the name.
        kind: what starts the Pods.
        workloads: the objects of that kind; with plain Pods none.
        policies: with plain Pods what decides the job, as its ConfigMap has it.
    """

    name: str
    kind: Kind
    workloads: tuple[Mapping[str, Any], ...]
    policies: tuple[RolePolicy, ...] = ()

    @property
    def selector(self) -> str:
        """Finds the job's Pods."""
        return f"{self.kind.pods}={self.name}"


def find(cluster: Cluster, name: str) -> JobObjects:
    """What there is of a job.

    Args:
        cluster: where.
        name: the job's name in the cluster.

    Raises:
        PairunError: there is none, or the API server refuses to say.
    """
    refusals: list[Refused] = []
    # what is longer, or has other characters, names no job and no label
    if re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name):
        for kind in KINDS:
            if workloads := _workloads(cluster, kind, name, refusals):
                return JobObjects(name, kind, workloads)
        found = JobObjects(name, POD, (), _policies(cluster, name, refusals))
        if found.policies or any(True for _ in _pods(cluster, found)):
            return found
    if refusals:
        raise refusals[0]
    raise _absent(cluster, name)


def _absent(cluster: Cluster, name: str) -> PairunError:
    text = f"there is no job '{visible(name)}' in namespace {cluster.namespace}"
    return PairunError(Problem("PR789", text, hint="--namespace and --context say where to look"))


def _workloads(
    cluster: Cluster, kind: Kind, name: str, refusals: list[Refused]
) -> tuple[Mapping[str, Any], ...]:
    """The objects of a kind; none where the cluster does not have the kind, or does not tell."""
    path = cluster.path(kind.version, kind.plural)
    try:
        if kind.engine == "framework":
            return (cluster.get(f"{path}/{name}"),)
        return tuple(cluster.objects(path, f"{JOB_LABEL}={name}"))
    except Refused as e:
        if e.status == 403:
            refusals.append(e)
        elif e.status != 404:
            raise
        return ()


def _policies(cluster: Cluster, name: str, refusals: list[Refused]) -> tuple[RolePolicy, ...]:
    """When a job of plain Pods is decided: the completion policy in its ConfigMap."""
    path = cluster.path("v1", "configmaps")
    try:
        maps = list(cluster.objects(path, f"{JOB_LABEL}={name}"))
        texts = [text for m in maps if (text := (m.get("data") or {}).get("framework.json"))]
        return tuple(
            _policy(role) for text in texts for role in json.loads(text)["spec"]["taskRoles"]
        )
    except Refused as e:
        if e.status != 403:
            raise
        refusals.append(e)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return ()


def _policy(role: Mapping[str, Any]) -> RolePolicy:
    number = int(role["taskNumber"])
    policy = role.get("frameworkAttemptCompletionPolicy") or {}
    return RolePolicy(
        role=str(role["name"]),
        instances=number,
        min_failed=int(policy.get("minFailedTaskCount") or 1),
        min_succeeded=int(policy.get("minSucceededTaskCount") or number),
    )


def _pods(cluster: Cluster, found: JobObjects) -> Iterator[Instance]:
    path = cluster.path("v1", "pods")
    return map(read_pod, cluster.objects(path, found.selector))


def read_job(cluster: Cluster, name: str) -> JobState:
    """How far a job is.

    Raises:
        PairunError: there is none, or the API server refuses to say.
    """
    found = find(cluster, name)
    state = state_of(found, cluster.namespace, newest(_pods(cluster, found)))
    return _explained(cluster, found, state)


def _explained(cluster: Cluster, found: JobObjects, state: JobState) -> JobState:
    """A Job whose Pods are not made, with the Job controller's word on it, if that may be read.

    Quota, admission and a service account that is not there are told in events alone.
    """
    missing = found.workloads and len(state.instances) < state.total
    if not missing or state.ended or state.because or found.kind.engine not in ("job", "jobset"):
        return state
    query = {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job", "limit": str(PAGE)}
    try:
        events = cluster.get(cluster.path("v1", "events"), query).get("items") or ()
    except Refused:
        return state
    # an earlier job of this name may have left its own
    since = min(str((w.get("metadata") or {}).get("creationTimestamp")) for w in found.workloads)
    told = [
        (when, str(event.get("message") or ""))
        for event in events
        for when in [str(event.get("lastTimestamp") or event.get("eventTime") or "")]
        if when >= since
        and f"{(event.get('involvedObject') or {}).get('name')}-".startswith(f"{found.name}-")
    ]
    words = max(told, default=("", ""))[1]
    return attrs.evolve(state, because=visible(" ".join(words.split()))[:EVENT_CHARS])


def pods_of(cluster: Cluster, found: JobObjects) -> tuple[Instance, ...]:
    """The instances of a job."""
    return newest(_pods(cluster, found))


def follow(cluster: Cluster, name: str) -> Iterator[JobState]:
    """How far a job is, again and again until it has ended; at least every few seconds.

    An API server that does not answer is asked again for some minutes.

    Raises:
        PairunError: the job is gone, or the API server refuses or stays away.
    """
    found = find(cluster, name)
    patience = Patience()
    pods: dict[str, Instance] = {}
    version = ""
    while True:
        try:
            if not version:
                pods, version = _listed(cluster, found)
            state = state_of(found, cluster.namespace, newest(pods.values()))
            state = _explained(cluster, found, state)
            patience.answered()
            yield state
            if state.ended:
                return
            version = _changed(cluster, found, pods, version)
            found = _again(cluster, found, pods)
        except (Refused, Unreachable) as e:
            version = ""
            if isinstance(e, Refused) and e.status == 410:
                continue
            patience.bear(e)
            time.sleep(WINDOW_S)


def _again(cluster: Cluster, found: JobObjects, pods: Mapping[str, Instance]) -> JobObjects:
    """A job's objects as they are now.

    Raises:
        PairunError: they are gone, or the API server refuses to say.
    """
    if found.kind is POD:
        return found if pods else find(cluster, found.name)
    refusals: list[Refused] = []
    workloads = _workloads(cluster, found.kind, found.name, refusals)
    if not workloads:
        raise refusals[0] if refusals else _absent(cluster, found.name)
    return attrs.evolve(found, workloads=workloads)


def _listed(cluster: Cluster, found: JobObjects) -> tuple[dict[str, Instance], str]:
    """The Pods by their uid, and the version from which on they can be watched."""
    pods: dict[str, Instance] = {}
    version = ""
    for page in cluster.pages(cluster.path("v1", "pods"), found.selector):
        version = str(page["metadata"]["resourceVersion"])
        pods |= {each.uid: each for each in map(read_pod, page.get("items") or ())}
    return pods, version


def _changed(cluster: Cluster, found: JobObjects, pods: dict[str, Instance], version: str) -> str:
    """Bring the Pods up to date for some seconds; the version that they have then."""
    path = cluster.path("v1", "pods")
    for event in cluster.watch(path, found.selector, version, WINDOW_S):
        pod = event.get("object") or {}
        meta = pod.get("metadata") or {}
        version = str(meta.get("resourceVersion") or version)
        if event.get("type") == "DELETED":
            pods.pop(str(meta.get("uid")), None)
        elif event.get("type") in ("ADDED", "MODIFIED"):
            each = read_pod(pod)
            pods[each.uid] = each
    return version


def state_of(found: JobObjects, namespace: str, instances: Sequence[Instance]) -> JobState:
    """How far a job is, from its objects and its Pods."""
    if found.kind is POD:
        state, because, total = _decided(found.policies, instances)
    else:
        states = [_STATES[found.kind.engine](w) for w in found.workloads]
        total = sum(number for *_, number in states)
        state, because = _together([(s, b) for s, b, _ in states])
        if state == "failed":
            because = "; ".join(filter(None, (because, _told(instances))))
    if state == "waiting" and any(i.phase not in NOT_BEGUN for i in instances):
        state = "running"
    first = _first_failure(instances)
    code = 0 if state == "succeeded" else None
    if state == "failed":
        code = (first.exit_code if first else None) or 1
    return JobState(
        name=found.name,
        namespace=namespace,
        engine=found.kind.engine,
        state=state,
        because=visible(" ".join(because.split())),
        total=max(total, len(instances)),
        instances=tuple(instances),
        exit_code=code,
    )


def _first_failure(instances: Iterable[Instance]) -> Instance | None:
    failed = [i for i in instances if i.phase == "failed"]
    return min(failed, key=lambda i: i.ended or "~", default=None)


def _told(instances: Iterable[Instance]) -> str:
    """The first instance that failed, and why: the workload's own status does not say."""
    first = _first_failure(instances)
    return f"{first.label}: {first.reason}" if first and first.reason else ""


def _decided(policies: Sequence[RolePolicy], instances: Sequence[Instance]) -> tuple[str, str, int]:
    """State, reason and number of instances of a job of plain Pods, which nobody else decides."""
    roles = sorted({i.role for i in instances})
    counts = {r: sum(i.role == r for i in instances) for r in roles}
    policies = policies or [RolePolicy(r, n, 1, n) for r, n in counts.items()]
    total = sum(p.instances for p in policies)
    ended = [
        Ended(i.role, i.label, i.exit_code or 0, "init" if i.init_code else "runtime")
        for i in sorted(instances, key=lambda i: i.ended or "~")
        if i.phase in ENDED
    ]
    if decision := decide(policies, ended, max(total, len(instances), 1)):
        return ("succeeded" if decision.succeeded else "failed"), decision.because, total
    return "waiting", "", total


def _together(states: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """One state of several objects: a failure counts first, a success when all have it."""
    for wanted in ("failed", "stopping", "running", "waiting", "succeeded"):
        for state, because in states:
            if state == wanted:
                return state, because
    return "waiting", ""


def _framework(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """Of a Framework (frameworkcontroller v1, FrameworkStatus)."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total = sum(int(r.get("taskNumber") or 0) for r in spec.get("taskRoles") or ())
    state = str(status.get("state") or "")
    done = (status.get("attemptStatus") or {}).get("completionStatus") or {}
    if state == "Completed":
        succeeded = (done.get("type") or {}).get("name") == "Succeeded"
        words = (done.get("phrase"), done.get("diagnostics"))
        because = ": ".join(str(w).strip().partition("\n")[0][:300] for w in words if w)
        return ("succeeded", "", total) if succeeded else ("failed", because, total)
    if spec.get("executionType") == "Stop" or _deleted(obj):
        return "stopping", "", total
    return ("running" if state == "AttemptRunning" else "waiting"), state, total


def _job(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """Of a Job (kubernetes.io/docs/concepts/workloads/controllers/job)."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total = int(spec.get("completions") or spec.get("parallelism") or 1)
    return *_conditions(obj, {"Complete": "succeeded", "Failed": "failed"}, status), total


def _jobset(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """Of a JobSet (jobset.sigs.k8s.io, v1alpha2)."""
    total = 0
    for each in (obj.get("spec") or {}).get("replicatedJobs") or ():
        job = ((each.get("template") or {}).get("spec")) or {}
        number = int(job.get("completions") or job.get("parallelism") or 1)
        total += int(each.get("replicas") or 1) * number
    states = {"Completed": "succeeded", "Failed": "failed"}
    return *_conditions(obj, states, obj.get("status") or {}), total


def _conditions(
    obj: Mapping[str, Any], states: Mapping[str, str], status: Mapping[str, Any]
) -> tuple[str, str]:
    held = [c for c in status.get("conditions") or () if c.get("status") == "True"]
    for condition in held:
        if state := states.get(str(condition.get("type"))):
            words = (condition.get("reason"), condition.get("message"))
            return state, ": ".join(str(w) for w in words if w) if state == "failed" else ""
    if _deleted(obj):
        return "stopping", ""
    suspended = any(c.get("type") == "Suspended" for c in held)
    return "waiting", "suspended" if suspended else ""


def _deleted(obj: Mapping[str, Any]) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


_STATES = {"framework": _framework, "job": _job, "jobset": _jobset}


def changes(before: JobState | None, now: JobState) -> list[str]:
    """What is new since a moment before, a line for each: for people who follow a job.

    Instances that came to the same point share a line.
    """
    old = {i.label: (i.phase, i.reason) for i in before.instances} if before else {}
    groups: dict[tuple[str, str], list[str]] = {}
    for each in now.instances:
        point = (each.phase, each.reason)
        if old.get(each.label) != point:
            groups.setdefault(point, []).append(each.label)
    lines = [_line(now, point, labels) for point, labels in groups.items()]
    gone = [label for label in old if label not in {i.label for i in now.instances}]
    if gone:
        lines.append(f"{named(gone)}: the Pod is gone")
    said = (before.state, before.because) if before else ("", "")
    if (now.state, now.because) != said and not now.ended and now.because:
        lines.append(f"the job is {now.state}: {now.because}")
    if not now.instances and before is None:
        lines.append("no Pod yet")
    return lines


def _line(now: JobState, point: tuple[str, str], labels: Sequence[str]) -> str:
    phase, reason = point
    said = f"{phase}: {reason}" if reason else phase
    if now.total == 1:
        return f"{labels[0]}: {said}"
    number = sum(i.phase == phase for i in now.instances)
    return f"{named(labels)}: {said} ({number} of {now.total} {phase})"


def named(labels: Sequence[str]) -> str:
    """Some instances by their names, more of them by their number too."""
    more = len(labels) - NAMED
    return ", ".join(labels[:NAMED]) + (f" and {more} more" if more > 0 else "")
