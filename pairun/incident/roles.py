"""Finds the ranks of writers whose number counts only within a role, or on a node.

A launcher's log names the ranks that it started: the number of its Pod or node is that of none of
them. If no log of a job names a rank, the numbers of the hosts count the processes, one on each.
The ranks that some logs of the role print show how far the others' ranks are from their numbers. Without
them Kubeflow's names do: rank 0 of a PyTorchJob is ``NAME-master-0``, so rank 1 is ``NAME-worker-0``.
Source: Kubeflow Trainer 1, ``pkg/controller.v1/pytorch/envvar.go``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pairun.incident.findings import Finding
from pairun.incident.numberednames import numbers_of_hosts
from pairun.incident.writers import Writer

_LEADS = ("master", "chief")
_FOLLOWER = "worker"

_MOST_EACH = 64
"""A job whose logs are incomplete may have this many times as many ranks as there are logs."""

_ADDRESS = re.compile(r"(?:^|-)\d{1,3}-\d{1,3}-\d{1,3}$")
"""How the name of a host begins whose last number is that of its address, such as ``ip-10-0-3-117``."""

_PARTS = re.compile(r"[^A-Za-z0-9]+")
_LEAST = 2
"""The length of the shortest part of a name that identifies a host."""


def with_ranks(findings: Sequence[Finding]) -> list[Finding]:
    """Correct the ranks that are numbers in a role.

    Args:
        findings: of all files of a job.
    """
    launching = {_role(f) for f in findings if _is_launcher(f)}
    counted = _counting_others(findings) - launching
    findings = [_unranked(f) if _role(f) in launching | counted else f for f in findings]
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


def _counting_others(findings: Sequence[Finding]) -> set[str]:
    """The roles whose numbers count something else than ranks, and whose logs show no rank of their own.

    They are parts of an address, far beyond the number of members, or of hosts with several ranks each.
    """
    stated = {_role(f) for f in findings if f.writer.is_stated}
    most = _MOST_EACH * len({f.writer.label for f in findings})
    return {
        f.writer.role
        for f in findings
        if f.writer.number is not None
        and f.writer.role
        and (
            f.writer.number > most
            or _ADDRESS.search(f.writer.role)
            or len({state.rank for state in f.states}) > 1
        )
    } - stated


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


def with_owners(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of stacks with the rank whose stacks they are, if exactly one fits.

    ``py-spy dump`` does not know the rank, so people name such a file by the host or the process.

    Args:
        findings: of all files of a job.
    """
    ranks = {pid: rank for finding in findings for pid, rank in finding.pids}
    of_ranks = [f for f in findings if f.writer.rank is not None and not f.writer.launcher]
    parts = Counter(part for f in findings if _is_stacks(f) for part in _parts_of(f))
    common = {part for part, count in parts.items() if count > 1}
    return [_owned(f, of_ranks, ranks, common) if _is_stacks(f) else f for f in findings]


def _is_stacks(finding: Finding) -> bool:
    """Whether a file is a dump of stacks, and shows no rank."""
    return finding.stack is not None and bool(finding.stack.pids) and finding.writer.rank is None


def _owned(
    finding: Finding, of_ranks: Sequence[Finding], ranks: Mapping[int, int], common: set[str]
) -> Finding:
    pids = finding.stack.pids if finding.stack is not None else ()
    known = {ranks[pid] for pid in pids if pid in ranks}
    owners = {f.writer.label: f.writer for f in of_ranks if f.writer.rank in known}
    owners = owners or _by_name(_parts_of(finding) - common, of_ranks)
    if len(owners) != 1:
        return finding
    (writer,) = owners.values()
    return finding._replace(writer=writer)


def _by_name(mine: set[str], of_ranks: Sequence[Finding]) -> dict[str, Writer]:
    """The ranks whose logs or hosts have a part of a file's name that no other rank's has."""
    shared = [(f.writer, mine & _parts_of(f)) for f in of_ranks]
    return {
        writer.label: writer
        for writer, parts in shared
        for part in parts
        if all(other.label == writer.label for other, theirs in shared if part in theirs)
    }


def _parts_of(finding: Finding) -> set[str]:
    """The parts of a file's name and of its host's that may identify a host."""
    names = f"{finding.file.rpartition('/')[2]}/{finding.writer.host}"
    return {
        part.lower() for part in _PARTS.split(names) if len(part) >= _LEAST and not part.isdigit()
    }
