"""What the logs of each writer of a job show: its diagnosis, its time of failure, its reports on ranks."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.clusterobjects import ObjectReport
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class, of_line
from pairun.diagnose.history import Attempt
from pairun.diagnose.lines import Log
from pairun.diagnose.progress import Progress, progress_in
from pairun.diagnose.stalls import last_stack, waits_in
from pairun.diagnose.surroundings import Surroundings
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import STACK, WAITING, Report, reports_in
from pairun.diagnose.times import Moment, last_moment, moment_of_failure
from pairun.diagnose.weighing import BY_CODE, diagnose
from pairun.diagnose.writers import Writer
from pairun.volume.progressfile import NotedProgress

CHILD_FAILED = "child_failed"
"""The class of a launcher that only reports a failed rank."""

_TAIL_LINES = 5
_CHAIN = re.compile(
    rb"During handling of the above exception, another exception occurred:"
    rb"|The above exception was the direct cause of the following exception:"
)
_TRACEBACK = b"Traceback (most recent call last)"
_NEAR_BYTES = 1 << 16
_DIFFERENT = "collectives-differ"
LOSSES = frozenset(("nccl_timeout", "peer_lost", "rendezvous_timeout"))
"""The classes of ranks that waited for, or lost, another one."""


class Finding(NamedTuple):
    """What one writer's log shows, or all logs of a member of the job: a rank, Pod or process.

    Attributes:
        writer: who wrote it.
        file: the file name for people; of several logs, of the deciding one.
        diagnosis: of this log alone.
        at: time at which the failure was logged; None if unknown.
        last: time of the log's last line; None if unknown.
        finished: whether the log ends with success, or its exit code is 0.
        bytes: size of the log.
        reports: what it reports about ranks.
        progress: how far the job got.
        tail: its last lines.
        lines: the numbers of its first and its last line.
        files: the names of all logs of a member; none if no log of it is known.
    """

    writer: Writer
    file: str
    diagnosis: Diagnosis
    at: Moment | None = None
    last: Moment | None = None
    finished: bool = False
    bytes: int = 0
    reports: tuple[Report, ...] = ()
    progress: Progress = Progress()
    tail: tuple[Evidence, ...] = ()
    lines: tuple[int, int] = (0, 0)
    files: tuple[str, ...] = ()

    @property
    def rank(self) -> int | None:
        """The number of its writer in the job; None if unknown."""
        return self.writer.rank

    @property
    def label(self) -> str:
        """The name of its writer for people."""
        return self.writer.label

    @property
    def host(self) -> str:
        """The machine of its writer; empty if unknown."""
        return self.writer.host

    @property
    def stack(self) -> Report | None:
        """Where its main thread was, by a dump of its stacks."""
        return next((r for r in self.reports if r.kind == STACK), None)

    @property
    def is_cause(self) -> bool:
        """Whether the log shows a failure that another rank did not cause.

        An exit code alone is no cause: the launcher stops or kills the other ranks. Nor are different
        collectives: each rank reports them when one enters another, and it does not show which.
        """
        klass, by_code = self.diagnosis.klass, self.diagnosis.source == BY_CODE
        is_own = not by_code and self.diagnosis.rule != _DIFFERENT
        return klass != CHILD_FAILED and is_own and not self.diagnosis.is_consequence

    @property
    def is_silent(self) -> bool:
        """Whether the log shows neither a failure nor a success."""
        waits = any(r.kind == WAITING for r in self.reports)
        return self.diagnosis.is_clean and not self.finished and not waits

    @property
    def is_waiting(self) -> bool:
        """Whether the rank failed because it waited for, or lost, another one."""
        return self.diagnosis.klass not in (NONE, UNKNOWN) and self.diagnosis.is_consequence


class Gathered(NamedTuple):
    """What the files of a job show.

    Attributes:
        findings: one for each writer of each file.
        wholes: of each file in which several writers' lines alternate, the diagnosis of all of it.
        states: of collectives, from flight recorders.
        noted: the progress that the job's code reports.
        objects: the reports of Kubernetes' objects.
        earlier: attempts in a file before its last one, earliest first.
        unread: what was not read, for people.
        failed: unreadable files, each with the reason.
    """

    findings: tuple[Finding, ...] = ()
    wholes: tuple[Finding, ...] = ()
    states: tuple[Report, ...] = ()
    noted: tuple[NotedProgress, ...] = ()
    objects: tuple[ObjectReport, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    unread: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def finding_of(
    writer: Writer,
    log: Log,
    table: Table,
    deadline_s: float,
    facts: Circumstances | None = None,
) -> Finding:
    """Diagnose a log, and read what it says of ranks, collectives, times and progress.

    Args:
        writer: who wrote it.
        log: the log.
        table: the rules.
        deadline_s: limit for this, in seconds of CPU time.
        facts: known besides the log.
    """
    diagnosis = diagnose([log], table, facts, deadline_s, clock=time.process_time)
    is_known = diagnosis.klass not in (NONE, UNKNOWN)
    line = next((e.line for e in diagnosis.evidence if is_known and e.line), 0)
    at = log.offset(line) if line else -1
    if line and not diagnosis.is_consequence:
        diagnosis = _loss_before(log, at, table, deadline_s) or diagnosis
    return Finding(
        writer=writer,
        file=log.name,
        diagnosis=diagnosis,
        at=moment_of_failure(log, at) if line else None,
        last=last_moment(log),
        finished=(facts is not None and facts.exit_code == 0)
        or Surroundings(log).succeeded_at >= 0,
        bytes=len(log.data),
        reports=(*reports_in(log), *waits_in(log), *filter(None, [last_stack(log)])),
        progress=progress_in(log.data),
        tail=tuple(of_line(log, each) for each in log.tail(_TAIL_LINES)),
        lines=(log.number(0), log.number(max(0, len(log.data.rstrip()) - 1))),
    )


def _loss_before(log: Log, at: int, table: Table, deadline_s: float) -> Diagnosis | None:
    """The lost peer during whose handling, as by an emergency checkpoint, a log's deciding exception was raised.

    Returns:
        The diagnosis of the exception before; None if there is none, or it is no lost peer.
    """
    start = max(0, at - _NEAR_BYTES)
    chain = next(reversed(list(_CHAIN.finditer(log.data, start, at))), None)
    if chain is None or log.data.count(_TRACEBACK, chain.end(), at) != 1:
        return None
    diagnosis = diagnose(
        [log.since(start, chain.start())], table, None, deadline_s, clock=time.process_time
    )
    return diagnosis if diagnosis.klass in LOSSES else None


def members_of(findings: Sequence[Finding]) -> list[Finding]:
    """The members of a job: the findings of each writer as one, such as those of a rank's two streams."""
    ranked = [f.writer for f in findings if f.rank is not None or f.writer.has_ranks]
    ranks = {writer.rank if writer.rank is not None else writer.label for writer in ranked}
    groups: dict[tuple[int | None, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rank, finding.label), []).append(finding)
    members = [_merged(group, are_ranks_known=len(ranks) > 1) for group in groups.values()]
    return sorted(members, key=lambda m: (m.rank is None, m.rank or 0, m.label))


def _merged(group: list[Finding], *, are_ranks_known: bool) -> Finding:
    def decisive(each: Finding) -> tuple[bool, bool, bool, float]:
        shown = each.diagnosis
        return each.is_cause, each.is_waiting, not shown.is_clean, shown.confidence

    group = sorted(group, key=decisive, reverse=True)
    first = group[0]
    host = next((f.host for f in group if f.host), "")
    # next to logs of ranks, a log without a rank is the launcher's
    is_beside = first.rank is None and are_ranks_known and not first.writer.has_ranks
    launcher = first.writer.launcher or is_beside
    member = first._replace(
        writer=first.writer._replace(host=host, launcher=launcher),
        last=max((f.last for f in group if f.last is not None), default=None),
        finished=any(f.finished for f in group)
        and all(f.finished or f.diagnosis.is_clean for f in group),
        reports=tuple(r for f in group for r in f.reports),
        progress=next((f.progress for f in group if f.progress != Progress()), Progress()),
        tail=next((f.tail for f in group if f.tail), ()),
        files=tuple(sorted({f.file for f in group})),
    )
    # a log without a failure may end because its rank did
    return member._replace(at=member.at or (member.last if member.is_silent else None))


def named_in(report: Report, members: Sequence[Finding] = ()) -> Finding:
    """The member that a report names; one without a known log if it is none of the members."""
    label = report.label
    if report.rank is not None:
        mine = [m for m in members if m.rank == report.rank][:1]
    else:
        mine = [m for m in members if m.label == label or m.label.endswith(f"-{label}")]
    if len(mine) == 1:
        return mine[0]
    shown = of_class(NONE, 0.3)._replace(headline="no log of it is known")
    return Finding(Writer(report.rank, label), "", shown)
