"""Why Kueue keeps a job waiting: the conditions of the job's Workload.

https://kueue.sigs.k8s.io/docs/concepts/workload/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import JobObjects
from pairun.engines.manifest.queues import KUEUE_QUEUE

_VERSIONS = ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2")
_JOB_UID = "kueue.x-k8s.io/job-uid"
"""The label of a Workload with the uid of the job's object."""


def waiting_words(cluster: Cluster, job: JobObjects) -> str:
    """What a job waits for in its queue; empty if it is in no queue or already admitted.

    Args:
        cluster: the namespace.
        job: a Job or JobSet that has not started; plain Pods report themselves that they are gated.
    """
    for workload in job.workloads:
        meta = workload.get("metadata") or {}
        queue = (meta.get("labels") or {}).get(KUEUE_QUEUE)
        if queue is None:
            continue
        try:
            words = next(_words(cluster, str(queue), str(meta.get("uid"))), None)
        except ClusterRefusal as e:
            return f"waiting in queue {queue}; cannot read the reason: {e}"
        if words is None:
            words = f"waiting for quota in queue {queue}: Kueue has no Workload of this job"
        if words:
            return words
    return ""


def _words(cluster: Cluster, queue: str, uid: str) -> Iterator[str]:
    """What each Workload of an object waits for."""
    missing = 0
    for version in _VERSIONS:
        try:
            workloads = list(
                cluster.objects(cluster.path(version, "workloads"), f"{_JOB_UID}={uid}")
            )
        except ClusterRefusal as e:
            if e.status != 404:
                raise
            missing += 1
            continue
        yield from (_condition_words(queue, workload) for workload in workloads)
        return
    if missing == len(_VERSIONS):
        yield f"waiting in queue {queue}: the cluster has no Kueue that would start the job"


def _condition_words(queue: str, workload: Mapping[str, Any]) -> str:
    """What one Workload waits for; empty if it is admitted or has ended."""
    conditions = {
        str(c.get("type")): c for c in (workload.get("status") or {}).get("conditions") or ()
    }

    def holds(name: str) -> bool:
        return str(conditions.get(name, {}).get("status")) == "True"

    def message(name: str) -> str:
        text = " ".join(str(conditions.get(name, {}).get("message") or "").split())
        return f": {text}" if text else ""

    if holds("Admitted") or holds("Finished"):
        return ""
    if (workload.get("spec") or {}).get("active") is False:
        return f"deactivated in queue {queue}{message('Evicted')}"
    if holds("QuotaReserved"):
        checks = (workload.get("status") or {}).get("admissionChecks") or ()
        names = ", ".join(str(c.get("name")) for c in checks if c.get("state") != "Ready")
        return f"quota is reserved in queue {queue}; waiting for admission checks: {names}"
    evicted = f" (evicted{message('Evicted')})" if holds("Evicted") else ""
    return f"waiting for quota in queue {queue}{message('QuotaReserved')}{evicted}"
