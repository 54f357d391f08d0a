"""The states of the objects that start a job's Pods: Framework, Job, JobSet; and their Events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pairun.kube.events import subject_of, time_of
from pairun.kube.frameworkpods import completion_of, completion_words
from pairun.kube.labels import JOB_LABEL
from pairun.kube.pods import conditions_of


def _framework(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """State, reason and instances of a Framework (frameworkcontroller v1, FrameworkStatus)."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total = sum(int(r.get("taskNumber") or 0) for r in spec.get("taskRoles") or ())
    state = str(status.get("state") or "")
    if state == "Completed":
        completion = completion_of(obj)
        if (completion.get("type") or {}).get("name") == "Succeeded":
            return "succeeded", "", total
        return "failed", completion_words(completion), total
    if spec.get("executionType") == "Stop" or _deleted(obj):
        return "stopping", "", total
    if state == "AttemptRunning":
        return "running", "", total
    # Another attempt may follow while it deletes the Pods of this one.
    return ("running" if state in _ENDING else "waiting"), state, total


_ENDING = frozenset(
    {"AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting", "AttemptCompleted"}
)


def _job(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """State, reason, instances of a Job (kubernetes.io/docs/concepts/workloads/controllers/job)."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total = int(spec.get("completions") or spec.get("parallelism") or 1)
    return *_conditions(obj, {"Complete": "succeeded", "Failed": "failed"}, status), total


def _jobset(obj: Mapping[str, Any]) -> tuple[str, str, int]:
    """State, reason and instances of a JobSet (jobset.sigs.k8s.io, v1alpha2)."""
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
    held = {k: c for k, c in conditions_of(status).items() if c.get("status") == "True"}
    for kind, condition in held.items():
        if state := states.get(kind):
            words = (condition.get("reason"), condition.get("message"))
            return state, ": ".join(str(w) for w in words if w) if state == "failed" else ""
    if _deleted(obj):
        return "stopping", ""
    return "waiting", "suspended" if "Suspended" in held else ""


def _deleted(obj: Mapping[str, Any]) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


class WorkloadKind(NamedTuple):
    """A kind of object that starts Pods.

    Attributes:
        engine: the engine's name on the command line.
        kind: the API's name of the kind.
        version: its ``apiVersion``.
        plural: the plural in its path.
        controller: what creates its Pods.
        state: reads the state, the reason and the number of instances of an object.
        pods: the Pod label that holds the job's name.
        is_built_in: whether every cluster has the kind.
    """

    engine: str
    kind: str
    version: str
    plural: str
    controller: str
    state: Callable[[Mapping[str, Any]], tuple[str, str, int]]
    pods: str = JOB_LABEL
    is_built_in: bool = False

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.version.rpartition("/")[0]

    def object(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object of this kind."""
        about = {"apiVersion": self.version, "kind": self.kind}
        return {**about, "metadata": metadata, "spec": spec}


FRAMEWORK = WorkloadKind("framework", "Framework", "frameworkcontroller.microsoft.com/v1", "frameworks",
                 "FrameworkController", _framework, "FC_FRAMEWORK_NAME")  # fmt: skip
# a JobSet's Jobs have the label too
JOBSET = WorkloadKind("jobset", "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", "the JobSet controller",
              _jobset)  # fmt: skip
JOB = WorkloadKind("job", "Job", "batch/v1", "jobs", "the Job controller", _job, is_built_in=True)
POD = WorkloadKind(
    "pod", "Pod", "v1", "pods", "kubelet", lambda _: ("waiting", "", 1), is_built_in=True
)
KINDS = (FRAMEWORK, JOBSET, JOB)
"""The kinds with a controller, in the order in which pairun looks for a job."""


def refusal_in(events: Iterable[Mapping[str, Any]], name: str, since: str) -> str:
    """Why the cluster refuses to create a job's Pods, by its newest Event; empty without one.

    Args:
        events: the Events ``FailedCreate`` of Jobs.
        name: the job's name; the Jobs of a JobSet have longer ones.
        since: ignore earlier Events (RFC 3339).
    """
    newest = ("", "")
    for event in events:
        when, owner = time_of(event), subject_of(event).get("name")
        if when >= since and f"{owner}-".startswith(f"{name}-"):
            newest = max(newest, (when, str(event.get("message") or "")))
    # Each try makes another name.
    return " ".join(re.sub(r'\bpods "[^"]*"', "its Pods", newest[1]).split())


def queue_words(queue: str, workload: Mapping[str, Any]) -> str:
    """What a job in a queue of Kueue waits for; empty if it is admitted or has ended.

    Args:
        queue: the queue's name.
        workload: the job's Workload (https://kueue.sigs.k8s.io/docs/concepts/workload/).
    """
    status = workload.get("status") or {}
    conditions = conditions_of(status)
    held = {name for name, c in conditions.items() if str(c.get("status")) == "True"}

    def message(name: str) -> str:
        text = " ".join(str(conditions.get(name, {}).get("message") or "").split())
        return f": {text}" if text else ""

    if held & {"Admitted", "Finished"}:
        return ""
    if (workload.get("spec") or {}).get("active") is False:
        return f"deactivated in queue {queue}{message('Evicted')}"
    if "QuotaReserved" in held:
        checks = status.get("admissionChecks") or ()
        names = ", ".join(str(c.get("name")) for c in checks if c.get("state") != "Ready")
        return f"quota is reserved in queue {queue}; waiting for admission checks: {names}"
    evicted = f" (evicted{message('Evicted')})" if "Evicted" in held else ""
    return f"waiting for quota in queue {queue}{message('QuotaReserved')}{evicted}"
