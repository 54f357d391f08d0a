"""The journals of a job's Pods, read from their logs."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.clusterlogs import NO_LOG, lines
from pairun.engines.kubernetes.jobobjects import JobObjects, find, instances_of
from pairun.engines.kubernetes.jobstate import first_failure
from pairun.errors import PairunError, Problem
from pairun.kube.endwords import APP, INIT
from pairun.kube.podstates import ENDED, PodState
from pairun.report.journal.finding import instance_of
from pairun.report.journal.history import UNFINISHED, InstancePast
from pairun.report.journal.metrics import Totals
from pairun.report.journal.records import read_entries
from pairun.volume.logjournal import read_log

AT_ONCE = 16
"""How many logs pairun reads at the same time."""

MOST_READ = 300
"""How many journals a report reads. Of the other instances it shows what their Pods say."""

_END = {"tailLines": "300", "limitBytes": str(16 << 20)}
"""Init and PID 1 print the journal in the last lines of a log."""

BEGIN = {"limitBytes": str(1 << 20)}
"""While a command runs, the journal is only at the beginning of the log."""


def read_cluster_instances(cluster: Cluster, name: str) -> list[InstancePast]:
    """Read what happened to the instances of a job: from the logs of up to `MOST_READ`, else from their Pods.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    job = find(cluster, name)
    instances = instances_of(cluster, job)
    to_read = _to_read(job, instances)
    read = {i.label: journal for i, journal in _journals(cluster, to_read)}
    is_unread = {i.label for i in instances if not i.gone} - read.keys()
    more = f"; a report reads up to {MOST_READ} journals"
    return [
        _instance(cluster, i, read.get(i.label), more if i.label in is_unread else "")
        for i in instances
    ]


def _to_read(job: JobObjects, instances: Sequence[PodState]) -> list[PodState]:
    """Those whose journals to read: the first failure, the failures as they ended, evenly spread others."""
    first = first_failure(job, instances)
    failed = [i for i in instances if i.phase == "failed" and not i.gone]
    failed.sort(key=lambda i: (i is not first, i.ended or "~"))
    others = [i for i in instances if i.phase != "failed" and not i.gone]
    left = max(1, MOST_READ - len(failed))
    return [*failed, *others[:: max(1, math.ceil(len(others) / left))]][:MOST_READ]


def read_cluster_metrics(cluster: Cluster, name: str) -> tuple[str, list[Problem]]:
    """Sum up the journals of a job's instances, as OpenMetrics text.

    Returns:
        The text and the problems; the text is empty if no log contains a journal.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    instances = [i for i in instances_of(cluster, find(cluster, name)) if not i.gone]
    totals, problems, is_found = Totals(), list[Problem](), False
    for instance, journal in _journals(cluster, instances):
        if journal is None:
            continue
        is_found = True
        where = f"pod {cluster.namespace}/{instance.pod}"
        try:
            reading = read_entries(io.BytesIO(journal), where)
        except PairunError as e:
            problems += e.problems
        else:
            totals.add(entry.data for entry in reading.entries)
    return (totals.text() if is_found else ""), problems


def _instance(
    cluster: Cluster, instance: PodState, journal: bytes | None, more: str
) -> InstancePast:
    where = f"pod {cluster.namespace}/{instance.pod}"
    known = f"the Pod is {instance.phase}{f': {instance.reason}' if instance.reason else ''}{more}"
    if journal is None:
        outcome = instance.phase if instance.phase in ENDED else UNFINISHED
        by_pod = (outcome, instance.exit_code)
        return InstancePast(label=instance.label, journal=None, known=known, by_pod=by_pod)
    try:
        reading = read_entries(io.BytesIO(journal), where)
    except PairunError as e:
        return InstancePast(label=instance.label, journal=None, known=str(e))
    past = instance_of(reading, instance.label, where)
    return attrs.evolve(past, notes=[*past.notes, known]) if past.outcome == UNFINISHED else past


def _journals(
    cluster: Cluster, instances: Sequence[PodState]
) -> Iterator[tuple[PodState, bytes | None]]:
    """The journals of some instances, several read at the same time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(instances, pool.map(lambda i: _journal(cluster, i), instances), strict=True)


def _journal(cluster: Cluster, instance: PodState) -> bytes | None:
    """The journal in the log of the user's container, which includes init's; else in init's log."""
    parts = (BEGIN,) if instance.phase == "running" else (_END, BEGIN)
    for container, part in (*((APP, part) for part in parts), (INIT, _END)):
        log = _lines(cluster, instance, {"container": container, **part})
        if (journal := read_log(log)) is not None:
            return journal
    return None


def _lines(cluster: Cluster, instance: PodState, query: dict[str, str]) -> Iterator[str]:
    try:
        yield from lines(cluster.log(instance.pod, query))
    except ClusterRefusal as e:
        if e.status not in NO_LOG:
            raise
