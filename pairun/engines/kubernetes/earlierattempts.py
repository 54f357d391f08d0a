"""Whether earlier attempts of an instance suggest a retry: earlier Pods, its container's last run.

A Job keeps the Pods that failed. The kubelet keeps the end and the log of a container's last run
(Pod API, ``lastState`` and read log with ``previous``). FrameworkController deletes both, and keeps
only counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pairun.diagnose.classes import RETRIES
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.history import Attempt, attempt_of, retry_advice
from pairun.diagnose.progress import Progress, progress_in
from pairun.engines.kubernetes.apierrors import SILENCE_S, ClusterRefusal, Unreachable
from pairun.engines.kubernetes.cluster import Cluster
from pairun.kube.endwords import APP
from pairun.kube.podstates import PodState, diagnoses, read_pod

MAX_PODS = 4
"""How many of an instance's last Pods pairun compares."""

TAIL = {"container": APP, "tailLines": "200", "limitBytes": str(1 << 18)}


def attempts_in_words(cluster: Cluster, selector: str, instance: PodState) -> str:
    """What an instance's attempts suggest about a retry; empty for one attempt or different ends.

    Args:
        cluster: the namespace.
        selector: selects the Pods of the job.
        instance: an instance that failed.
    """
    try:
        pods = [p for p in cluster.objects(cluster.path("v1", "pods"), selector)
                if _is_of(read_pod(p), instance)]  # fmt: skip
    except (ClusterRefusal, Unreachable):
        return ""
    pods.sort(key=lambda p: str((p.get("metadata") or {}).get("creationTimestamp")))
    attempts = [each for pod in pods[-MAX_PODS:] for each in _attempts(cluster, pod)]
    if len(attempts) < 2:
        return ""
    advice = retry_advice(attempts)
    stop = "do not run it again before a correction"
    return (
        f"{advice.words}; {stop}" if advice.words and advice.retry == "after_fix" else advice.words
    )


def _is_of(state: PodState, instance: PodState) -> bool:
    return (state.role, state.index) == (instance.role, instance.index)


def _attempts(cluster: Cluster, pod: Mapping[str, Any]) -> Iterator[Attempt]:
    """The diagnosed ends of the user's container in a Pod, the earlier one first."""
    for why, previous in zip(diagnoses(pod), (True, False), strict=True):
        if why.get("class"):
            node = str((pod.get("spec") or {}).get("nodeName") or "")
            progress = _progress(cluster, str(pod["metadata"]["name"]), previous=previous)
            yield _attempt(why, progress, node)


def _attempt(why: Mapping[str, str | float], progress: Progress, node: str) -> Attempt:
    retry = str(why.get("retry"))
    headline = str(why.get("headline") or "")
    return attempt_of(
        Diagnosis(str(why["class"]), "unknown", retry if retry in RETRIES else None, 0.0, headline,
                  "", (), {}, ()),
        progress, node,
    )  # fmt: skip


def _progress(cluster: Cluster, pod: str, *, previous: bool) -> Progress:
    """How far a container came, by the end of its log; unknown if the log cannot be read."""
    query = {**TAIL, "previous": "true"} if previous else TAIL
    path = cluster.path("v1", "pods", pod, "log")
    try:
        return progress_in(b"".join(cluster.stream(path, query, silence_s=SILENCE_S)))
    except (ClusterRefusal, Unreachable):
        return Progress()
