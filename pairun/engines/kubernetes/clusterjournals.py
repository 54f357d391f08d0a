"""The journals of a job's Pods, read from their logs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import attrs

from pairun.engines.kubernetes.apierrors import SILENCE_S, ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.clusterlogs import lines
from pairun.engines.kubernetes.jobobjects import find, instances_of
from pairun.engines.kubernetes.podstates import APP, PodState
from pairun.errors import PairunError, Problem
from pairun.kube.frameworkpods import INIT
from pairun.report.journal.history import UNFINISHED
from pairun.report.journal.historybuilding import phases_of
from pairun.report.journal.metrics import Totals
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.records import notes, read_entries
from pairun.volume.logjournal import read_log

AT_ONCE = 16
"""How many logs pairun reads at the same time."""

END = {"tailLines": "300", "limitBytes": str(16 << 20)}
"""Init and PID 1 print the journal in the last lines of a log."""

BEGIN = {"limitBytes": str(1 << 20)}
"""While a command runs, the journal is only at the beginning of the log."""


def read_cluster_instances(cluster: Cluster, name: str) -> list[InstancePast]:
    """Read what happened to the instances of a job from their logs.

    Args:
        cluster: the cluster.
        name: the job's name in the cluster.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    instances = instances_of(cluster, find(cluster, name))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda each: _instance(cluster, each), instances))


def read_cluster_metrics(cluster: Cluster, name: str) -> tuple[str, list[Problem]]:
    """Sum up the journals of a job's instances, as OpenMetrics text.

    Args:
        cluster: the cluster.
        name: the job's name in the cluster.

    Returns:
        The text and the problems; the text is empty if no log contains a journal.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    instances = [i for i in instances_of(cluster, find(cluster, name)) if not i.gone]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        journals = list(pool.map(lambda each: _journal(cluster, each), instances))
    totals, problems = Totals(), list[Problem]()
    for instance, journal in zip(instances, journals, strict=True):
        if journal is None:
            continue
        try:
            reading = read_entries(io.BytesIO(journal), f"pod {cluster.namespace}/{instance.pod}")
        except PairunError as e:
            problems += e.problems
        else:
            totals.add(entry.data for entry in reading.entries)
    return (totals.text() if any(j is not None for j in journals) else ""), problems


def _instance(cluster: Cluster, instance: PodState) -> InstancePast:
    journal = None if instance.gone else _journal(cluster, instance)
    where = f"pod {cluster.namespace}/{instance.pod}"
    known = f"the Pod is {instance.phase}{f': {instance.reason}' if instance.reason else ''}"
    if journal is None:
        return InstancePast(label=instance.label, journal=None, known=known)
    try:
        reading = read_entries(io.BytesIO(journal), where)
    except PairunError as e:
        return InstancePast(label=instance.label, journal=None, known=str(e))
    past = InstancePast(
        label=instance.label,
        journal=where,
        phases=phases_of(reading.entries),
        notes=notes(reading),
        ignored=reading.ignored,
    )
    return attrs.evolve(past, notes=[*past.notes, known]) if past.outcome == UNFINISHED else past


def _journal(cluster: Cluster, instance: PodState) -> bytes | None:
    """The journal in the log of the user's container, which includes init's; else in init's log."""
    for container in (APP, INIT):
        for part in (END, BEGIN):
            log = _lines(cluster, instance, {"container": container, **part})
            if (journal := read_log(log)) is not None:
                return journal
    return None


def _lines(cluster: Cluster, instance: PodState, query: dict[str, str]) -> Iterator[str]:
    path = cluster.path("v1", "pods", instance.pod, "log")
    try:
        yield from lines(cluster.stream(path, query, silence_s=SILENCE_S))
    except ClusterRefusal as e:
        # the container has not started, or the Pod has just been deleted
        if e.status not in (400, 404):
            raise
