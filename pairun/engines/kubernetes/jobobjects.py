"""The objects of a job in a cluster: its workloads and its Pods."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from pairun.base.escapes import visible
from pairun.base.foreignjson import parse_json
from pairun.engines.completionpolicy import RolePolicy
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.manifest.objectnames import ENGINE
from pairun.errors import PairunError, Problem
from pairun.kube.frameworkpods import framework_instances
from pairun.kube.labels import JOB_CONFIG, JOB_LABEL
from pairun.kube.owners import Owner, controller_of
from pairun.kube.podstates import PodState, newest, read_pod
from pairun.kube.workloads import FRAMEWORK, KINDS, POD, WorkloadKind


@attrs.frozen
class JobObjects:
    """The objects in a cluster that belong to a job.

    Attributes:
        name: the job's name.
        kind: the kind that starts the Pods.
        workload: the object of that kind; None for plain Pods.
        policies: for plain Pods, the completion policy in the ConfigMap.
    """

    name: str
    kind: WorkloadKind
    workload: Mapping[str, Any] | None
    policies: tuple[RolePolicy, ...] = ()

    @property
    def selector(self) -> str:
        """A label selector for the job's Pods."""
        return f"{self.kind.pods}={self.name}"

    @property
    def framework(self) -> Mapping[str, Any] | None:
        """The Framework; None for other kinds."""
        return self.workload if self.kind is FRAMEWORK else None

    def instances(self, pods: Iterable[PodState], *, is_over: bool = False) -> tuple[PodState, ...]:
        """The instances of the job, one per role and number.

        Args:
            pods: the job's Pods, deleted ones included.
            is_over: whether the job has failed; see `newest`.
        """
        if self.framework is not None:
            return framework_instances(self.framework, pods)
        return newest(pods, is_over=is_over)


class NoJob(PairunError):
    """The job does not exist for certain: no kind that could have it is hidden from this login."""


def find(cluster: Cluster, name: str, engine: str | None = None) -> JobObjects:
    """Find the objects of a job with as few rights as possible.

    pairun reads the workload by its name, which needs no right to list a kind. A login may lack the
    right to read some kinds, and the API server refuses before it says whether the kind is installed
    (403 before 404), so a refusal means only "unknown". What is unknown is never guessed: followed as
    plain Pods, a retrying Job would end with its first attempt; deleted as plain Pods, it would stay
    and create Pods without their Secrets. But who works with Jobs alone needs no right on JobSets.
    These facts decide, in this order:

    1. A workload that can be read is the job, whatever else is refused.
    2. The Pods' owner references name the controller. If its kind is refused, the refusal is the
       error. If the kind can be read and has no such workload, the Pods are being deleted, or their
       workload has another name, and the error names it. Pods without a controller are plain; they
       need the completion policy in the ConfigMap.
    3. Without Pods, the ConfigMap names the engine.
    4. Otherwise there is no job, and the error names the kinds that may hide one.

    Args:
        engine: its engine, if known: pairun then reads no other kind.

    Raises:
        NoJob: the job does not exist.
        PairunError: the job is unknown, or the API server refuses.
    """
    # a longer name, or one with other characters, is neither a job's name nor a label
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name):
        raise absent(cluster, name)
    denied: dict[str, ClusterRefusal] = {}
    for kind in KINDS:
        if engine in (None, kind.engine):
            with _collected(denied, kind.engine):
                if (workload := workload_of(cluster, kind, name)) is not None:
                    return JobObjects(name, kind, workload)
    if engine in denied:
        raise denied[engine]
    pods = cluster.objects(cluster.path("v1", "pods"), f"{JOB_LABEL}={name}")
    owners = [(controller_of(pod), pod["metadata"].get("deletionTimestamp")) for pod in pods]
    for owner, _ in owners:
        if owner and (refused := denied.get(_engine_of(owner, name))):
            raise refused
    for owner, deleted in owners:
        if owner and not deleted:
            text = f"there is no workload '{name}', but Pods of the job belong to {owner.kind} {owner.name}"
            hint = "retry later if it is being deleted; pairun does not change a renamed workload"
            raise PairunError(Problem("PR789", text, hint=hint))
    config = None
    with _collected(denied, POD.engine):
        config = read_own(cluster, "v1", "configmaps", f"{name}-{JOB_CONFIG}", name)
    if all(owner for owner, _ in owners):
        engine = engine or ((config or {}).get("metadata", {}).get("annotations") or {}).get(ENGINE)
        if engine is None and denied:
            raise _unknown(cluster, name, denied)
        if engine not in (None, POD.engine) or config is None:
            raise denied.get(str(engine)) or absent(cluster, name)
    elif POD.engine in denied:
        raise denied[POD.engine]
    return JobObjects(name, POD, None, _policies(config or {}))


@contextlib.contextmanager
def _collected(denied: dict[str, ClusterRefusal], engine: str) -> Iterator[None]:
    """Keep a missing right of this login in `denied`."""
    try:
        yield
    except ClusterRefusal as e:
        if e.status != 403 or e.passing:
            raise
        denied[engine] = e


def _engine_of(owner: Owner, name: str) -> str:
    """The engine whose workload starts the Pods of a controller.

    A JobSet creates Jobs with longer names, FrameworkController a ConfigMap for each attempt.
    """
    if owner.kind == "Job":
        return "job" if owner.name == name else "jobset"
    return "framework" if owner.kind == "ConfigMap" else ""


def absent(cluster: Cluster, name: str) -> NoJob:
    """The error for a job that does not exist."""
    text = f"there is no job '{visible(name)}' in namespace {cluster.namespace}"
    return NoJob(Problem("PR789", text, hint="set --namespace or --context to search elsewhere"))


def _unknown(cluster: Cluster, name: str, denied: Mapping[str, ClusterRefusal]) -> PairunError:
    """The error for a job that only a kind that this login may not read could have."""
    kinds = {k.engine: k.plural for k in KINDS} | {POD.engine: "configmaps"}
    [problem] = absent(cluster, name).problems
    words = ", ".join(kinds[engine] for engine in denied)
    text = f"{problem.message} that this login may read: it may not get {words}"
    rule = next(iter(denied.values())).problems[0].hint
    return PairunError(problem._replace(message=text, hint=f"{problem.hint}; or {rule}"))


def workload_of(cluster: Cluster, kind: WorkloadKind, name: str) -> Mapping[str, Any] | None:
    """The job's workload of a kind; None if it does not exist.

    Raises:
        ClusterRefusal: the API server refuses.
    """
    # The Frameworks of OpenPAI's REST server do not have the label.
    job = None if kind is FRAMEWORK else name
    return read_own(cluster, kind.version, kind.plural, name, job)


def read_own(
    cluster: Cluster, version: str, plural: str, name: str, job: str | None
) -> dict[str, Any] | None:
    """Read an object; None if it or its kind does not exist, or it has another job's label."""
    try:
        found = cluster.get(cluster.path(version, plural, name))
    except ClusterRefusal as e:
        if e.status != 404:
            raise
        return None
    labels = (found.get("metadata") or {}).get("labels") or {}
    return found if job in (None, labels.get(JOB_LABEL)) else None


def _policies(config: Mapping[str, Any]) -> tuple[RolePolicy, ...]:
    """The completion policy of a job of plain Pods, from its ConfigMap."""
    try:
        framework = parse_json((config.get("data") or {}).get("framework.json") or "{}")
        return tuple(_policy(role) for role in framework["spec"]["taskRoles"])
    except (ValueError, KeyError, TypeError):
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


def _pods(cluster: Cluster, job: JobObjects) -> Iterator[PodState]:
    path = cluster.path("v1", "pods")
    return map(read_pod, cluster.objects(path, job.selector))


def pods_of(cluster: Cluster, job: JobObjects) -> tuple[PodState, ...]:
    """The newest Pod of every instance of a job."""
    return newest(_pods(cluster, job))


def instances_of(cluster: Cluster, job: JobObjects) -> tuple[PodState, ...]:
    """The instances of a job, including those without a Pod that the workload lists."""
    return job.instances(_pods(cluster, job))
