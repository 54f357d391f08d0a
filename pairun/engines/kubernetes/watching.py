"""Follows a job in a cluster until it has ended."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from pairun.base.escapes import visible
from pairun.diagnose.history import Attempt, recorded, retry_advice
from pairun.diagnose.progress import Progress, progress_in
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Patience, Unreachable
from pairun.engines.kubernetes.cluster import PAGE, Cluster
from pairun.engines.kubernetes.jobobjects import (
    JobObjects,
    absent,
    find,
    instances_of,
    workload_of,
)
from pairun.engines.kubernetes.jobstate import JobState, first_failure, state_of
from pairun.engines.manifest.queues import KUEUE_QUEUE
from pairun.kube.endwords import APP
from pairun.kube.podstates import PodState, diagnoses, read_pod
from pairun.kube.workloads import POD, queue_words, refusal_in

_T = TypeVar("_T")

WINDOW_S = 2
"""How long pairun collects changes before it computes a new state, in seconds."""

EVENT_CHARS = 500


def read_job(cluster: Cluster, name: str) -> JobState:
    """Read the state of a job.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    job = find(cluster, name)
    state = state_of(job, cluster.namespace, instances_of(cluster, job))
    return _explained(cluster, job, state)


def _explained(cluster: Cluster, job: JobObjects, state: JobState) -> JobState:
    """Add what a job's objects do not say: what earlier attempts mean, or why Pods are missing.

    Only Events report an exceeded quota, an admission error or a missing service account.
    """
    if state.state == "failed":
        first = first_failure(job, state.instances)
        # read the ends and logs of earlier attempts only if there are any
        if first is not None and first.restarts and not first.gone:
            words = _attempts_in_words(cluster, job.selector, first)
            return attrs.evolve(
                state, because="; ".join(filter(None, (state.because, visible(words))))
            )
        return state
    if state.state == "waiting" and (words := _queue_words(cluster, job)):
        return attrs.evolve(state, because=visible(words)[:EVENT_CHARS])
    if len(state.instances) >= state.total or state.ended or state.because:
        return state
    if job.workload is None or job.framework is not None:
        return state
    query = {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job", "limit": str(PAGE)}
    try:
        events = cluster.get(cluster.path("v1", "events"), query).get("items") or ()
    except ClusterRefusal:
        return state
    # an earlier job of this name may have left Events
    since = str((job.workload.get("metadata") or {}).get("creationTimestamp"))
    said = visible(refusal_in(events, job.name, since))[:EVENT_CHARS]
    return attrs.evolve(state, because=said, refused=bool(said))


# --- why a job waits, and what earlier attempts mean ----------------------------------------------

_KUEUE = ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2")
_JOB_UID = "kueue.x-k8s.io/job-uid"
"""The label of Kueue's Workload with the uid of the job's object."""


def _queue_words(cluster: Cluster, job: JobObjects) -> str:
    """What a Job or JobSet waits for in its queue; empty if it is in no queue or admitted.

    Plain Pods report themselves that they are gated.
    """
    meta = (job.workload or {}).get("metadata") or {}
    if (name := (meta.get("labels") or {}).get(KUEUE_QUEUE)) is None:
        return ""
    found = None
    for version in _KUEUE:
        try:
            path = cluster.path(version, "workloads")
            found = list(cluster.objects(path, f"{_JOB_UID}={meta.get('uid')}"))
            break
        except ClusterRefusal as e:
            if e.status != 404:
                return f"waiting in queue {name}; cannot read the reason: {e}"
    if found is None:
        return f"waiting in queue {name}: the cluster has no Kueue that would start the job"
    if not found:
        return f"waiting for quota in queue {name}: Kueue has no Workload of this job"
    return queue_words(str(name), found[0])


MAX_PODS = 4
"""How many of an instance's last Pods pairun compares."""
TAIL = {"container": APP, "tailLines": "200", "limitBytes": str(1 << 18)}


def _attempts_in_words(cluster: Cluster, selector: str, instance: PodState) -> str:
    """What the attempts of a failed instance suggest about a retry; empty for one attempt or different ends.

    A Job keeps the Pods that failed. The kubelet keeps the end and the log of a container's last run
    (Pod API, ``lastState`` and read log with ``previous``). FrameworkController deletes both, and keeps
    only counts.
    """
    key = (instance.role, instance.index)
    try:
        pods = list(cluster.objects(cluster.path("v1", "pods"), selector))
    except (ClusterRefusal, Unreachable):
        return ""
    states = sorted(((read_pod(p), p) for p in pods), key=lambda each: each[0].made)
    own = [(s, pod) for s, pod in states if (s.role, s.index) == key]
    attempts = [a for state, pod in own[-MAX_PODS:] for a in _attempts(cluster, state, pod)]
    if len(attempts) < 2:
        return ""
    advice = retry_advice(attempts)
    stop = advice.words and advice.retry == "after_fix"
    return f"{advice.words}; do not run it again before a correction" if stop else advice.words


def _attempts(cluster: Cluster, state: PodState, pod: Mapping[str, Any]) -> Iterator[Attempt]:
    """The diagnosed ends of the user's container in a Pod, the earlier one first."""
    for why, query in zip(diagnoses(pod), ({**TAIL, "previous": "true"}, TAIL), strict=True):
        if why.get("class"):
            progress = Progress()
            with contextlib.suppress(ClusterRefusal, Unreachable):
                progress = progress_in(b"".join(cluster.log(state.pod, query)))
            yield Attempt(recorded(why), progress, state.node or "")


# --- following ------------------------------------------------------------------------------------


def follow(
    cluster: Cluster,
    name: str,
    engine: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[JobState]:
    """Yield the state of a job every few seconds until it has ended.

    If the API server does not respond, pairun retries for some minutes; before the first state only if
    the engine is known, as for a job that was just submitted.

    Args:
        engine: its engine, if known.
        say: takes lines for people about an outage.

    Raises:
        PairunError: the job is gone, or the API server refuses or does not respond.
    """
    job, pods = None, _Pods()
    patience = Patience(say)
    while True:
        try:
            job = job or find(cluster, name, engine)
            if pods.refresh(cluster, job):
                job = _again(cluster, job, not pods or any(each.gone for each in pods.values()))
            state = state_of(job, cluster.namespace, job.instances(pods.values()))
            if state.ended:
                # The watch of a server that lags behind may not have shown how the Pods ended.
                pods.version = ""
                pods.refresh(cluster, job)
                instances = job.instances(pods.values(), is_over=state.state == "failed")
                state = state_of(job, cluster.namespace, instances)
            state = _explained(cluster, job, state)
            patience.answered()
            yield state
            if state.ended:
                return
        except (ClusterRefusal, Unreachable) as e:
            pods.version = ""
            if job is None and engine is None:
                raise
            if isinstance(e, ClusterRefusal) and e.status == 410:
                continue
            patience.bear(e)
            time.sleep(WINDOW_S)


def _again(cluster: Cluster, job: JobObjects, some_deleted: object) -> JobObjects:
    """Read a job's objects again.

    Args:
        some_deleted: whether Pods were deleted; for plain Pods this can mean that the job was.

    Raises:
        PairunError: the objects are gone, or the API server refuses.
    """
    if job.kind is POD:
        return find(cluster, job.name, job.kind.engine) if some_deleted else job
    if (workload := workload_of(cluster, job.kind, job.name)) is None:
        raise absent(cluster, job.name)
    return attrs.evolve(job, workload=workload)


class _Pods(dict[str, PodState]):
    """The Pods of a job by uid: a list that a watch keeps up to date.

    Deleted ones that say why they ended remain: only their last state says why a job failed.

    Attributes:
        version: the resource version; empty to read the list again.
    """

    version = ""

    def refresh(self, cluster: Cluster, job: JobObjects) -> bool:
        """Read the list, or watch its changes for some seconds; whether it has watched."""
        path = cluster.path("v1", "pods")
        if self.version:
            for event in cluster.watch(path, job.selector, self.version, WINDOW_S):
                pod = event.get("object") or {}
                version = (pod.get("metadata") or {}).get("resourceVersion")
                self.version = str(version or self.version)
                if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
                    uid = self._see(pod)
                    if event["type"] == "DELETED":
                        self._lose(job, uid)
            return True
        listed: set[str] = set()
        for page in cluster.pages(path, job.selector):
            self.version = self.version or str(page["metadata"]["resourceVersion"])
            listed |= {self._see(pod) for pod in page.get("items") or ()}
        for uid in self.keys() - listed:
            self._lose(job, uid)
        return False

    def _see(self, pod: Mapping[str, Any]) -> str:
        """Add what a response shows of a Pod to what earlier ones showed; its uid."""
        now = read_pod(pod)
        self[now.uid] = self.get(now.uid, now).seen_as(now)
        return now.uid

    def _lose(self, job: JobObjects, uid: str) -> None:
        """Keep the last state of a deleted Pod, if it says why the Pod ended."""
        last = self.pop(uid).deleted(is_plain=job.kind is POD)
        if last is not None:
            self[uid] = last


def follow_for(
    cluster: Cluster, name: str, engine: str | None, timeout_s: float | None, tick_s: float
) -> Iterator[JobState | str | None]:
    """Follow a job like `follow`, with a time limit that also holds if the API server stalls.

    Yields states, and lines for people about an outage.

    Args:
        engine: its engine, if known.
        timeout_s: the limit in seconds; None for no limit.
        tick_s: yields None after this many seconds without a state.
    """

    def read(put: Callable[[JobState | str], None]) -> None:
        for state in follow(cluster, name, engine, put):
            put(state)

    return from_thread(read, 1, timeout_s, tick_s)


def from_thread(
    work: Callable[[Callable[[_T], None]], None],
    waiting: int,
    timeout_s: float | None = None,
    tick_s: float | None = None,
) -> Iterator[_T | None]:
    """Yield what a function puts while it runs in a thread, and raise its error.

    Args:
        work: calls its argument with each item; an exception as an item is raised, too.
        waiting: how many items may wait; then the thread waits.
        timeout_s: ends after this many seconds; None for no limit.
        tick_s: yields None after this many seconds without an item.
    """
    items: queue.Queue[_T | Exception | None] = queue.Queue(waiting)

    def run() -> None:
        try:
            work(items.put)
            items.put(None)
        except Exception as e:  # noqa: BLE001  # otherwise the reader would wait for ever
            items.put(e)

    threading.Thread(target=run, daemon=True).start()
    end = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = end - time.monotonic()
        if tick_s is not None:
            left_s = min(tick_s, left_s)
        try:
            item = items.get(timeout=None if left_s == float("inf") else max(left_s, 0))
        except queue.Empty:
            if time.monotonic() >= end:
                return
            yield None
            continue
        if isinstance(item, Exception):
            raise item
        if item is None:
            return
        yield item
