"""Judges what nodes report about their GPUs beside the logs of ranks.

A rank only notices that its GPU failed: its error in CUDA is the same as that of a wrong kernel. The node
knows the cause, in the kernel's log or the report of a GPU tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairun.diagnose.classes import NONE
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.facts.fact import STRONG
from pairun.incident.members import Member
from pairun.incident.times import Moment, seconds_between

DEVICES = frozenset(("gpu_ecc_error", "gpu_lost", "nvlink_error"))
"""Classes of failed GPUs and links."""

_SYMPTOMS = frozenset(
    (
        "cuda_kernel_error",
        "cudnn_error",
        "gpu_not_available",
        "native_abort",
        "nccl_cuda_error",
        "nccl_system_error",
        "nccl_timeout",
        "peer_lost",
    )
)
"""Classes that logs also show when a GPU of the node fails."""

_DAY_S = 86400
"""A kernel's log may be of weeks; times of a node and of a log may be of different zones."""

_SYSLOG_HOST = re.compile(r"^(?:[A-Z][a-z]{2} +\d+ [\d:]{8}|\d{4}-\d\d-\d\d\S+) ([\w.-]+) kernel: ")


class DeviceReport(NamedTuple):
    """What a node reports about a GPU.

    Attributes:
        diagnosis: the fact.
        host: the node; empty if unknown.
        at: when; None if unknown.
    """

    diagnosis: Diagnosis
    host: str
    at: Moment | None


def with_devices(
    diagnosis: Diagnosis, first: Member | None, members: Sequence[Member]
) -> tuple[Diagnosis, tuple[Diagnosis, ...]]:
    """The diagnosis of a job in the light of what its nodes report about their GPUs.

    Args:
        diagnosis: by the logs.
        first: the member that failed first; None if no fact names one.
        members: of the job.

    Returns:
        The fact of the node if it explains what the logs show, else the diagnosis; and the facts that
        do not explain it, one of each class.
    """
    if diagnosis.klass == NONE:
        return diagnosis, ()
    reports = sorted(_reports(members), key=lambda r: -r.diagnosis.confidence)
    if diagnosis.klass in _SYMPTOMS:
        cause = next((r.diagnosis for r in reports if _explains(r, first, members)), None)
        if cause is not None:
            diagnosis = cause._replace(
                evidence=(*cause.evidence, *diagnosis.evidence),
                alternatives=((diagnosis.klass, diagnosis.confidence), *diagnosis.alternatives),
            )
    others: dict[str, Diagnosis] = {}
    for report in reports:
        if report.diagnosis.klass != diagnosis.klass:
            others.setdefault(report.diagnosis.klass, report.diagnosis)
    known = {klass for klass, _ in diagnosis.alternatives}
    more = [(k, each.confidence) for k, each in others.items() if k not in known]
    return (
        diagnosis._replace(alternatives=(*diagnosis.alternatives, *more)),
        tuple(others.values()),
    )


def _reports(members: Sequence[Member]) -> Iterator[DeviceReport]:
    """The facts about GPUs that are not tied to a rank."""
    tied = {
        e for m in members if m.rank is not None for f in m.findings for e in f.diagnosis.evidence
    }
    for member in members:
        for finding in member.findings if member.rank is None else ():
            facts = [(r.diagnosis, r.at) for r in finding.kernel]
            for diagnosis, at in facts or [(finding.diagnosis, finding.at)]:
                is_fact = bool(diagnosis.source) and diagnosis.klass in DEVICES
                if is_fact and not tied.intersection(diagnosis.evidence):
                    yield DeviceReport(diagnosis, _host(diagnosis, member), at)


def _host(diagnosis: Diagnosis, member: Member) -> str:
    """The node in the fact's line as syslog writes it, else that in the path of the file."""
    lines = (_SYSLOG_HOST.match(e.text) for e in diagnosis.evidence)
    return next((match[1] for match in lines if match), member.host)


def _explains(report: DeviceReport, first: Member | None, members: Sequence[Member]) -> bool:
    """Whether a failed GPU may have caused what a member shows; without one, what any shows."""
    if 100 * report.diagnosis.confidence < STRONG:
        return False
    shown = [first] if first is not None else [m for m in members if m.is_waiting or m.is_cause]
    hosts = {m.host for m in shown} - {""}
    others = {m.host for m in members if m.rank is not None} - hosts
    times = [m.at for m in shown if m.at is not None]
    is_near = report.at is None or any(abs(seconds_between(report.at, t)) < _DAY_S for t in times)
    return report.host not in others - {""} and (is_near or not times)
