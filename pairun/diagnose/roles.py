"""Finds the ranks of writers whose number counts only within a role.

A launcher's log names the ranks that it started: the number of its Pod or node is that of none of
them. If no log of a job names a rank, the numbers of the hosts count the processes, one on each.
The ranks that some logs of the role print show how far the others' ranks are from their numbers. Without
them Kubeflow's names do: rank 0 of a PyTorchJob is ``NAME-master-0``, so rank 1 is ``NAME-worker-0``.
Source: Kubeflow Trainer 1, ``pkg/controller.v1/pytorch/envvar.go``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pairun.diagnose.numberednames import numbers_of_hosts
from pairun.diagnose.writerlog import Finding

_LEADS = ("master", "chief")
_FOLLOWER = "worker"


def with_ranks(findings: Sequence[Finding]) -> list[Finding]:
    """Correct the ranks that are numbers in a role.

    Args:
        findings: of all files of a job.
    """
    launching = {_role(f) for f in findings if _is_launcher(f)}
    findings = [_unranked(f) if _role(f) in launching else f for f in findings]
    roles = {_role(f) for f in findings if f.writer.number is not None}
    offsets = {role: offset for role in roles if (offset := _offset(role, roles, findings))}
    findings = [_moved(f, offsets.get(_role(f), 0)) for f in findings]
    if launching or any(f.writer.rank is not None or f.testimonies for f in findings):
        return findings
    ranks = numbers_of_hosts({f.writer.label for f in findings if not f.writer.launcher})
    return [f._replace(writer=f.writer._replace(rank=ranks.get(f.writer.label))) for f in findings]


def _is_launcher(finding: Finding) -> bool:
    """Whether a log with the number of a Pod or host is that of a launcher of other ranks."""
    writer = finding.writer
    return (
        writer.number is not None
        and not writer.is_stated
        and any(t.by_launcher and t.rank != writer.number for t in finding.testimonies)
    )


def _unranked(finding: Finding) -> Finding:
    writer = finding.writer
    if writer.is_stated or writer.number is None:
        return finding
    return finding._replace(writer=writer._replace(rank=None, number=None, has_ranks=True))


def _role(finding: Finding) -> str:
    """The role; the prefixes of torchrun's tee count the ranks of one file's node."""
    return finding.writer.role or finding.file


def _offset(role: str, roles: set[str], findings: Sequence[Finding]) -> int:
    """How far the ranks of a role are from its indices; 0 if unknown."""
    writers = [f.writer for f in findings if _role(f) == role]
    stated = {
        w.rank - w.number
        for w in writers
        if w.is_stated and w.rank is not None and w.number is not None
    }
    if stated:
        return stated.pop() if len(stated) == 1 else 0
    job = role.removesuffix(_FOLLOWER)
    if job == role or not any(job + lead in roles for lead in _LEADS):
        return 0
    return len({f.writer.label for f in findings if _role(f) in {job + lead for lead in _LEADS}})


def _moved(finding: Finding, offset: int) -> Finding:
    writer = finding.writer
    if not offset or writer.is_stated or writer.number is None:
        return finding
    return finding._replace(writer=writer.ranked(writer.number + offset))
