"""Ties what a node's kernel reports about a process to the rank that the process was.

A process belongs to a rank by its number, which the rank's log or a launcher prints, or by its cgroup,
which names the Pod or Slurm's task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pairun.incident.clusterobjects import ClusterObject
from pairun.incident.ends import on_log_clock, zone_lag
from pairun.incident.findings import Finding
from pairun.incident.kernellog import KernelReport
from pairun.incident.podfindings import logs_of
from pairun.incident.podreports import pod_reports
from pairun.incident.times import Moment


def with_kernel(findings: Sequence[Finding], objects: Sequence[ClusterObject]) -> list[Finding]:
    """The findings of logs, with those of kernels about the ranks' processes.

    Args:
        findings: of all files of a job.
        objects: of Kubernetes, which know the Pods' uids.
    """
    reports = pod_reports(objects)
    pods = {each.uid: logs_of(each, findings, reports) for each in reports}
    ranks: dict[int, int] = {}
    for finding in findings:
        ranks.update(finding.pids)
    return [*findings, *_tied(findings, ranks, pods)]


def _tied(
    findings: Sequence[Finding], ranks: Mapping[int, int], pods: Mapping[str, Sequence[int]]
) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for source in findings:
        for report in source.kernel:
            rank = report.task if report.task is not None else ranks.get(report.pid or -1)
            mine = [findings[n] for n in pods.get(report.pod, ())]
            mine += [f for f in findings if _is_of(f, rank, report.pod)]
            writers = {f.writer.label: f.writer for f in mine}
            for label, writer in writers.items() if len(writers) == 1 else ():
                if (label, report.diagnosis.klass) not in seen:
                    seen.add((label, report.diagnosis.klass))
                    at = _moment(report, mine)
                    yield Finding(writer, source.file, report.diagnosis, at=at, bytes=1)


def _is_of(finding: Finding, rank: int | None, pod: str) -> bool:
    """Whether a finding is of a rank, or of the Pod with a uid, which pairun's log folders name."""
    if rank is not None and finding.writer.rank == rank:
        return True
    return bool(pod) and pod in finding.file.split("/")


def _moment(report: KernelReport, mine: Sequence[Finding]) -> Moment | None:
    """When the kernel acted, on the clock of the rank's log; without a time, when that log ends."""
    last = next((f.last for f in mine if f.last is not None), None)
    if last is None or report.at is None:
        return last or report.at
    if last.form == "zone":
        return report.at
    return on_log_clock(last, report.at, zone_lag([(last, report.at)]))
