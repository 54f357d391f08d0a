"""The objects of a job in a cluster: its workloads and its Pods."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pairun.base.escapes import visible
from pairun.base.records import record
from pairun.engines.completionpolicy import RolePolicy
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.frameworktasks import framework_instances
from pairun.engines.kubernetes.podstates import PodState, newest, read_pod
from pairun.engines.manifest.objectnames import JOB_LABEL
from pairun.errors import PairunError, Problem


class Kind(NamedTuple):
    """A kind of object that starts Pods.

    Attributes:
        engine: the engine's name on the command line.
        kind: the API's name of the kind.
        version: its ``apiVersion``.
        plural: the plural in its path.
        controller: what creates its Pods.
        pods: the Pod label that holds the job's name.
    """

    engine: str
    kind: str
    version: str
    plural: str
    controller: str
    pods: str = JOB_LABEL


KINDS = (
    Kind("framework", "Framework", "frameworkcontroller.microsoft.com/v1", "frameworks",
         "FrameworkController", "FC_FRAMEWORK_NAME"),
    # a JobSet's Jobs have the label too
    Kind("jobset", "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", "the JobSet controller"),
    Kind("job", "Job", "batch/v1", "jobs", "the Job controller"),
)  # fmt: skip
POD = Kind("pod", "Pod", "v1", "pods", "kubelet")


@record(kw_only=False)
class JobObjects:
    """The objects in a cluster that belong to a job.

    Attributes:
        name: the job's name.
        kind: the kind that starts the Pods.
        workloads: the objects of that kind; none for plain Pods.
        policies: for plain Pods, the completion policy in the ConfigMap.
    """

    name: str
    kind: Kind
    workloads: tuple[Mapping[str, Any], ...]
    policies: tuple[RolePolicy, ...] = ()

    @property
    def selector(self) -> str:
        """A label selector for the job's Pods."""
        return f"{self.kind.pods}={self.name}"

    @property
    def framework(self) -> Mapping[str, Any] | None:
        """The Framework; None for other kinds."""
        return self.workloads[0] if self.kind.engine == "framework" and self.workloads else None

    def instances(self, pods: Iterable[PodState]) -> tuple[PodState, ...]:
        """The instances of the job, one per role and number.

        Args:
            pods: the job's Pods, deleted ones included.
        """
        if self.framework is not None:
            return framework_instances(self.framework, pods)
        return newest(pods)


def find(cluster: Cluster, name: str) -> JobObjects:
    """Find the objects of a job.

    Args:
        cluster: the namespace.
        name: the job's name in the cluster.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    refusals: list[ClusterRefusal] = []
    # a longer name, or one with other characters, is neither a job's name nor a label
    if re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name):
        for kind in KINDS:
            if workloads := workloads_of(cluster, kind, name, refusals):
                return JobObjects(name, kind, workloads)
        plain = JobObjects(name, POD, (), _policies(cluster, name, refusals))
        if plain.policies or any(True for _ in _pods(cluster, plain)):
            return plain
    if refusals:
        raise refusals[0]
    raise absent(cluster, name)


def absent(cluster: Cluster, name: str) -> PairunError:
    """The error for a job that does not exist."""
    text = f"there is no job '{visible(name)}' in namespace {cluster.namespace}"
    return PairunError(
        Problem("PR789", text, hint="set --namespace or --context to search elsewhere")
    )


def workloads_of(
    cluster: Cluster, kind: Kind, name: str, refusals: list[ClusterRefusal]
) -> tuple[Mapping[str, Any], ...]:
    """The objects of a kind; none if the cluster lacks the kind or denies access."""
    path = cluster.path(kind.version, kind.plural)
    try:
        if kind.engine == "framework":
            return (cluster.get(f"{path}/{name}"),)
        return tuple(cluster.objects(path, f"{JOB_LABEL}={name}"))
    except ClusterRefusal as e:
        if e.status == 403:
            refusals.append(e)
        elif e.status != 404:
            raise
        return ()


def _policies(
    cluster: Cluster, name: str, refusals: list[ClusterRefusal]
) -> tuple[RolePolicy, ...]:
    """The completion policy of a job of plain Pods, from its ConfigMap."""
    path = cluster.path("v1", "configmaps")
    try:
        maps = list(cluster.objects(path, f"{JOB_LABEL}={name}"))
        texts = [text for m in maps if (text := (m.get("data") or {}).get("framework.json"))]
        return tuple(
            _policy(role) for text in texts for role in json.loads(text)["spec"]["taskRoles"]
        )
    except ClusterRefusal as e:
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


def _pods(cluster: Cluster, job: JobObjects) -> Iterator[PodState]:
    path = cluster.path("v1", "pods")
    return map(read_pod, cluster.objects(path, job.selector))


def pods_of(cluster: Cluster, job: JobObjects) -> tuple[PodState, ...]:
    """The newest Pod of every instance of a job."""
    return newest(_pods(cluster, job))


def instances_of(cluster: Cluster, job: JobObjects) -> tuple[PodState, ...]:
    """The instances of a job, including those without a Pod that the workload lists."""
    return job.instances(_pods(cluster, job))
