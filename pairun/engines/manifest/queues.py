"""Queues and Pod groups: Kueue, Volcano, YuniKorn and the Kubernetes scheduler-plugins.

https://kueue.sigs.k8s.io/docs/tasks/run/jobs/, https://volcano.sh/en/docs/podgroup/,
https://yunikorn.apache.org/docs/user_guide/labels_and_annotations_in_yunikorn,
https://scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling/
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.engines.manifest.choices import ManifestOptions
from pairun.engines.manifest.objectnames import metadata
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.kube.labels import LABEL_VALUE
from pairun.kube.owners import Object

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
_KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"


class _Scheduler(NamedTuple):
    """A scheduler that supports queues or groups.

    Attributes:
        name: the default ``schedulerName``.
        queue: the annotation for the queue's name.
        application: the annotation for the job's name.
    """

    name: str
    queue: str
    application: str | None = None


_QUEUES = {
    "volcano": _Scheduler("volcano", "scheduling.volcano.sh/queue-name"),
    "yunikorn": _Scheduler("yunikorn", "yunikorn.apache.org/queue", "yunikorn.apache.org/app-id"),
}


class _Group(NamedTuple):
    """A kind of PodGroup.

    Attributes:
        version: its apiVersion.
        scheduler: the default ``schedulerName``.
        mark: where a Pod names its group: ``labels`` or ``annotations``.
        key: the key of that label or annotation.
    """

    version: str
    scheduler: str
    mark: str
    key: str


_GROUPS = {
    "volcano": _Group(
        "scheduling.volcano.sh/v1beta1", "volcano", "annotations", "scheduling.k8s.io/group-name"
    ),
    "scheduler-plugins": _Group(
        "scheduling.x-k8s.io/v1alpha1",
        "scheduler-plugins-scheduler",
        "labels",
        "scheduling.x-k8s.io/pod-group",
    ),
}


def _kueue(options: ManifestOptions) -> bool:
    return options.whole.get("queue_system") in (None, "kueue")


def mark_pod(template: Object, options: ManifestOptions) -> None:
    """Write a Pod's queue and group where its scheduler reads them.

    Args:
        template: metadata and spec; changed in place.
    """
    pod, meta, spec = options.whole, template["metadata"], template["spec"]
    queue, group = pod.get("queue"), pod.get("pod_group")
    if queue is not None and not _kueue(options):
        scheduler = _QUEUES[pod.get("queue_system")]
        meta["annotations"][scheduler.queue] = queue
        if scheduler.application:
            meta["annotations"][scheduler.application] = options.name
        spec.setdefault("schedulerName", scheduler.name)
    if group is not None:
        kind = _GROUPS[group["system"]]
        meta[kind.mark][kind.key] = options.name
        spec.setdefault("schedulerName", kind.scheduler)


def mark_workload(
    workload: Sequence[Object], job: Job, options: ManifestOptions, problems: Problems
) -> None:
    """Hand a workload to Kueue: a Job or JobSet starts suspended, and Kueue resumes it.

    Args:
        workload: the objects; changed in place.
        problems: collects what Kueue does not support.
    """
    queue = options.whole.get("queue")
    if queue is None or not _kueue(options):
        return
    place = options.whole.place("queue")
    if not re.fullmatch(LABEL_VALUE, queue):
        problems.error("PR783", f"the queue '{queue}' cannot be a label of Kubernetes", place)
    if options.engine == "framework":
        problems.error(
            "PR780", "Kueue does not manage Frameworks", place, "--engine job, jobset or pod"
        )
        return
    count = sum(role.instances for role in job.roles)
    for each in workload:
        each["metadata"]["labels"][KUEUE_QUEUE] = queue
        if options.engine != "pod":
            each["spec"]["suspend"] = True
        elif count > 1:
            each["metadata"]["labels"][_KUEUE_GROUP] = options.name
            each["metadata"]["annotations"][_KUEUE_COUNT] = str(count)


def pod_groups(job: Job, options: ManifestOptions) -> list[Object]:
    """The PodGroup of a job, if the job asks for one."""
    group = options.whole.get("pod_group")
    if group is None:
        return []
    spec: Object = {
        "minMember": group.get("min_member") or sum(role.instances for role in job.roles)
    }
    queue = options.whole.get("queue")
    if group["system"] == "volcano" and options.whole.get("queue_system") == "volcano" and queue:
        spec["queue"] = queue
    version, meta = _GROUPS[group["system"]].version, metadata(options, options.name)
    return [{"apiVersion": version, "kind": "PodGroup", "metadata": meta, "spec": spec}]
