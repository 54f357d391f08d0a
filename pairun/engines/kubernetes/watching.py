"""Follows a job in a cluster until it has ended."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from pairun.base.escapes import visible
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Patience, Unreachable
from pairun.engines.kubernetes.cluster import PAGE, Cluster
from pairun.engines.kubernetes.earlierattempts import attempts_in_words
from pairun.engines.kubernetes.jobobjects import (
    POD,
    JobObjects,
    absent,
    find,
    instances_of,
    workloads_of,
)
from pairun.engines.kubernetes.jobstate import JobState, first_failure, state_of
from pairun.engines.kubernetes.kueue import waiting_words
from pairun.engines.kubernetes.podstates import DELETED, ENDED, PodState, read_pod

WINDOW_S = 2
"""How long changes are gathered before a state is made of them."""

EVENT_CHARS = 500


def read_job(cluster: Cluster, name: str) -> JobState:
    """How far a job is.

    Raises:
        PairunError: there is none, or the API server refuses to say.
    """
    job = find(cluster, name)
    state = state_of(job, cluster.namespace, instances_of(cluster, job))
    return _explained(cluster, job, state)


def _explained(cluster: Cluster, job: JobObjects, state: JobState) -> JobState:
    """A job with what its objects do not say: what earlier attempts mean, or why Pods are not made.

    Quota, admission and a service account that is not there are told in events alone.
    """
    if state.state == "failed":
        first = first_failure(job, state.instances)
        # the ends and logs of earlier attempts are read only where there are any
        if first is not None and first.restarts and not first.gone:
            words = attempts_in_words(cluster, job.selector, first)
            return attrs.evolve(
                state, because="; ".join(filter(None, (state.because, visible(words))))
            )
        return state
    if state.state == "waiting" and (words := waiting_words(cluster, job)):
        return attrs.evolve(state, because=visible(words)[:EVENT_CHARS])
    missing = job.workloads and len(state.instances) < state.total
    if not missing or state.ended or state.because or job.kind.engine not in ("job", "jobset"):
        return state
    query = {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job", "limit": str(PAGE)}
    try:
        events = cluster.get(cluster.path("v1", "events"), query).get("items") or ()
    except ClusterRefusal:
        return state
    # an earlier job of this name may have left its own
    since = min(str((w.get("metadata") or {}).get("creationTimestamp")) for w in job.workloads)
    events_since = [
        (when, str(event.get("message") or ""))
        for event in events
        for when in [str(event.get("lastTimestamp") or event.get("eventTime") or "")]
        if when >= since
        and f"{(event.get('involvedObject') or {}).get('name')}-".startswith(f"{job.name}-")
    ]
    words = max(events_since, default=("", ""))[1]
    return attrs.evolve(state, because=visible(" ".join(words.split()))[:EVENT_CHARS])


def follow(cluster: Cluster, name: str) -> Iterator[JobState]:
    """How far a job is, again and again until it has ended; at least every few seconds.

    An API server that does not answer is asked again for some minutes.

    Raises:
        PairunError: the job is gone, or the API server refuses or stays away.
    """
    job = find(cluster, name)
    patience = Patience()
    pods: dict[str, PodState] = {}
    deleted: dict[str, PodState] = {}
    version = ""
    while True:
        try:
            if not version:
                pods, version = _listed(cluster, job)
            state = state_of(
                job, cluster.namespace, job.instances([*deleted.values(), *pods.values()])
            )
            state = _explained(cluster, job, state)
            patience.answered()
            yield state
            if state.ended:
                return
            version = _changed(cluster, job, pods, deleted, version)
            job = _again(cluster, job, deleted or not pods)
        except (ClusterRefusal, Unreachable) as e:
            version = ""
            if isinstance(e, ClusterRefusal) and e.status == 410:
                continue
            patience.bear(e)
            time.sleep(WINDOW_S)


def _again(cluster: Cluster, job: JobObjects, some_deleted: object) -> JobObjects:
    """A job's objects as they are now.

    Args:
        cluster: where.
        job: the job.
        some_deleted: whether Pods are deleted: then plain Pods may be deleted as a whole job.

    Raises:
        PairunError: they are gone, or the API server refuses to say.
    """
    if job.kind is POD:
        return find(cluster, job.name) if some_deleted else job
    refusals: list[ClusterRefusal] = []
    workloads = workloads_of(cluster, job.kind, job.name, refusals)
    if not workloads:
        raise refusals[0] if refusals else absent(cluster, job.name)
    return attrs.evolve(job, workloads=workloads)


def _listed(cluster: Cluster, job: JobObjects) -> tuple[dict[str, PodState], str]:
    """The Pods by their uid, and the version from which on they can be watched."""
    pods: dict[str, PodState] = {}
    version = ""
    for page in cluster.pages(cluster.path("v1", "pods"), job.selector):
        version = str(page["metadata"]["resourceVersion"])
        pods |= {each.uid: each for each in map(read_pod, page.get("items") or ())}
    return pods, version


def _changed(
    cluster: Cluster,
    job: JobObjects,
    pods: dict[str, PodState],
    deleted: dict[str, PodState],
    version: str,
) -> str:
    """Bring the Pods up to date for some seconds.

    Args:
        cluster: where.
        job: whose Pods.
        pods: the Pods that exist, by their uid.
        deleted: those that ended or were evicted before they were deleted: their last state says
            why a job failed, and nothing else does.
        version: of `pods`.

    Returns:
        The version of `pods` then.
    """
    path = cluster.path("v1", "pods")
    for event in cluster.watch(path, job.selector, version, WINDOW_S):
        pod = event.get("object") or {}
        meta = pod.get("metadata") or {}
        version = str(meta.get("resourceVersion") or version)
        if event.get("type") == "DELETED":
            pods.pop(str(meta.get("uid")), None)
            if (last := _last_state(job, pod)) is not None:
                deleted[last.uid] = last
        elif event.get("type") in ("ADDED", "MODIFIED"):
            each = read_pod(pod)
            pods[each.uid] = each
    return version


def _last_state(job: JobObjects, pod: Mapping[str, Any]) -> PodState | None:
    """The end of a Pod that is deleted; None where a controller makes another one."""
    last = attrs.evolve(read_pod(pod), gone=True)
    if last.phase in ENDED:
        return last
    # Nothing creates a plain Pod again.
    return attrs.evolve(last, phase="failed", reason=DELETED) if job.kind is POD else None


def follow_for(
    cluster: Cluster, name: str, timeout_s: float | None, tick_s: float
) -> Iterator[JobState | None]:
    """The same, until the time is over, even while the API server does not answer.

    Args:
        cluster: where.
        name: the job's name in the cluster.
        timeout_s: how long, or None for no limit.
        tick_s: yields None after so many seconds without a state.
    """
    states: queue.Queue[JobState | Exception | None] = queue.Queue(1)

    def read() -> None:
        try:
            for state in follow(cluster, name):
                states.put(state)
            states.put(None)
        except Exception as e:  # noqa: BLE001  # otherwise the reader would wait for ever
            states.put(e)

    threading.Thread(target=read, daemon=True).start()
    end = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = tick_s if end is None else min(tick_s, end - time.monotonic())
        try:
            item = states.get(timeout=max(left_s, 0))
        except queue.Empty:
            if end is not None and time.monotonic() >= end:
                return
            yield None
            continue
        if isinstance(item, Exception):
            raise item
        if item is None:
            return
        yield item
