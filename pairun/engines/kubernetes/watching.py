"""Follows a job in a cluster until it has ended."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
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
    workload_of,
)
from pairun.engines.kubernetes.jobstate import JobState, first_failure, state_of
from pairun.engines.kubernetes.kueue import waiting_words
from pairun.engines.kubernetes.podstates import PodState, read_pod

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
    # an earlier job of this name may have left Events
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


def follow(
    cluster: Cluster,
    name: str,
    engine: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[JobState]:
    """Yield the state of a job every few seconds until it has ended.

    If the API server does not respond, pairun retries for some minutes.

    Args:
        cluster: the namespace.
        name: the job's name in the cluster.
        engine: its engine, if known.
        say: takes lines for people about an outage.

    Raises:
        PairunError: the job is gone, or the API server refuses or does not respond.
    """
    job = find(cluster, name, engine)
    patience = Patience(say)
    pods: dict[str, PodState] = {}
    version = ""
    while True:
        try:
            if not version:
                version = _listed(cluster, job, pods)
            state = state_of(job, cluster.namespace, job.instances(pods.values()))
            if state.state == "failed":
                instances = job.instances(pods.values(), is_over=True)
                state = state_of(job, cluster.namespace, instances)
            state = _explained(cluster, job, state)
            patience.answered()
            yield state
            if state.ended:
                return
            version = _changed(cluster, job, pods, version)
            job = _again(cluster, job, not pods or any(each.gone for each in pods.values()))
        except (ClusterRefusal, Unreachable) as e:
            version = ""
            if isinstance(e, ClusterRefusal) and e.status == 410:
                continue
            patience.bear(e)
            time.sleep(WINDOW_S)


def _again(cluster: Cluster, job: JobObjects, some_deleted: object) -> JobObjects:
    """Read a job's objects again.

    Args:
        cluster: the namespace.
        job: the job.
        some_deleted: whether Pods were deleted; for plain Pods this can mean that the job was.

    Raises:
        PairunError: the objects are gone, or the API server refuses.
    """
    if job.kind is POD:
        return find(cluster, job.name, job.kind.engine) if some_deleted else job
    if (workload := workload_of(cluster, job.kind, job.name)) is None:
        raise absent(cluster, job.name)
    return attrs.evolve(job, workloads=(workload,))


def _listed(cluster: Cluster, job: JobObjects, pods: dict[str, PodState]) -> str:
    """Update the Pods from a list; return the resource version from which to watch them."""
    listed: set[str] = set()
    version = ""
    for page in cluster.pages(cluster.path("v1", "pods"), job.selector):
        version = str(page["metadata"]["resourceVersion"])
        listed |= {_see(pods, pod).uid for pod in page.get("items") or ()}
    for uid in pods.keys() - listed:
        _lose(job, pods, uid)
    return version


def _changed(cluster: Cluster, job: JobObjects, pods: dict[str, PodState], version: str) -> str:
    """Update the Pods from a watch for some seconds.

    Args:
        cluster: the namespace.
        job: the job.
        pods: the Pods by uid. Deleted ones that say why they ended remain: only their last state
            says why a job failed.
        version: the resource version of `pods`.

    Returns:
        The new resource version of `pods`.
    """
    path = cluster.path("v1", "pods")
    for event in cluster.watch(path, job.selector, version, WINDOW_S):
        pod = event.get("object") or {}
        version = str((pod.get("metadata") or {}).get("resourceVersion") or version)
        if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
            each = _see(pods, pod)
            if event["type"] == "DELETED":
                _lose(job, pods, each.uid)
    return version


def _see(pods: dict[str, PodState], pod: Mapping[str, Any]) -> PodState:
    """Add what a response shows of a Pod to what earlier ones showed."""
    now = read_pod(pod)
    before = pods.get(now.uid, now)
    pods[now.uid] = before.seen_as(now)
    return now


def _lose(job: JobObjects, pods: dict[str, PodState], uid: str) -> None:
    """Keep the last state of a deleted Pod, if it says why the Pod ended."""
    last = pods.pop(uid).deleted(is_plain=job.kind is POD)
    if last is not None:
        pods[uid] = last


def follow_for(
    cluster: Cluster, name: str, engine: str | None, timeout_s: float | None, tick_s: float
) -> Iterator[JobState | str | None]:
    """Follow a job like `follow`, with a time limit that also holds if the API server stalls.

    Yields states, and lines for people about an outage.

    Args:
        cluster: the namespace.
        name: the job's name in the cluster.
        engine: its engine, if known.
        timeout_s: the limit in seconds; None for no limit.
        tick_s: yields None after this many seconds without a state.
    """
    states: queue.Queue[JobState | str | Exception | None] = queue.Queue(1)

    def read() -> None:
        try:
            for state in follow(cluster, name, engine, states.put):
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
