"""Ties files of stacks to the ranks, by the host or the process number that both name.

``py-spy dump`` does not know the rank, so people name such a file by the host or the process:
``pyspy/node3-40272.txt`` beside ``rank2_node3.log``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pairun.incident.findings import Finding
from pairun.incident.writers import Writer

_PARTS = re.compile(r"[^A-Za-z0-9]+")
_LEAST = 2
"""The length of the shortest part of a name that identifies a host."""


def with_owners(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of stacks with the rank whose stacks they are, if exactly one fits.

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
