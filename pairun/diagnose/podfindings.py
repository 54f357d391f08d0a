"""Ties what Kubernetes reports about Pods and nodes to the ranks whose logs are known.

A Pod belongs to a log by its name or uid in the file's path, by the writer's name, or by the number
of the rank if the job has one role. What an object states of a Pod is a finding of its rank. An exit code alone
is a report about the rank: the log explains it better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from time import process_time

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.clusterobjects import ClusterObject
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class, of_signals
from pairun.diagnose.lines import Log
from pairun.diagnose.ownreports import diagnosis_in, diagnosis_of_task, failed_task_in
from pairun.diagnose.podreports import PodReport, node_signals, pod_reports, trigger_of
from pairun.diagnose.signals import Signal
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import ENDED, Testimony
from pairun.diagnose.times import Moment, seconds_between
from pairun.diagnose.weighing import diagnose
from pairun.diagnose.writerlog import CHILD_FAILED, Finding
from pairun.diagnose.writers import Writer

_SAME_S = 1.5
"""Pods' ends that differ by less have no order, in seconds: Kubernetes counts whole seconds."""

_KILLED = (137, 143)
_HOUR_S = 3600


def with_objects(
    findings: Sequence[Finding], objects: Sequence[ClusterObject], table: Table, deadline_s: float
) -> list[Finding]:
    """The findings of logs, with those of Kubernetes' objects.

    Args:
        findings: of the job's logs.
        objects: of its files.
        table: the rules.
        deadline_s: limit for each termination message, in seconds of CPU time.
    """
    reports = _of_job(pod_reports(objects), findings)
    joined = list(findings)
    writers: dict[str, Writer] = {}
    # where no log shows a failure, exit codes are all there is
    are_quiet = all(f.diagnosis.klass in (NONE, UNKNOWN) for f in findings)
    failed = [each for each in reports if each.exit_code]
    earliest = _earliest(failed, trigger_of(objects))
    logs = {each.name: logs_of(each, findings, reports) for each in reports}
    lasts = {name: _last(findings, mine) for name, mine in logs.items()}
    for report in reports:
        mine = logs[report.name]
        writer = _writer(report, [findings[n].writer for n in mine], reports, findings)
        writers[report.name] = writer
        for n in mine:
            joined[n] = _at_node(joined[n], report)
        said = _testimonies(report, writer, earliest, failed)
        own = _finding(
            report,
            writer,
            table,
            deadline_s,
            is_told=bool(mine) and not are_quiet,
            has_log=bool(mine),
        )
        if own is not None and writer.has_ranks and not own.is_cause:
            own = own._replace(writer=writer._replace(launcher=True))
        if own is not None and (not own.diagnosis.is_clean or not findings):
            joined.append(own._replace(at=_moment(report, lasts[report.name]), testimonies=said))
        elif mine:
            before = joined[mine[0]]
            joined[mine[0]] = before._replace(testimonies=(*before.testimonies, *said))
    return [*joined, *_of_nodes(objects, reports, writers)]


def _of_job(reports: Sequence[PodReport], findings: Sequence[Finding]) -> Sequence[PodReport]:
    """The Pods of the job: where logs name some, only Pods that are named alike."""
    stems = {_stem(each.name) for each in reports if logs_of(each, findings, reports)}
    return [each for each in reports if _stem(each.name) in stems] if stems else reports


def _stem(name: str) -> str:
    """A Pod's name without its number and the letters that a controller appends."""
    return re.sub(r"(?:-\d+)?(?:-[a-z0-9]{5})?$", "", name)


def logs_of(
    report: PodReport, findings: Sequence[Finding], reports: Sequence[PodReport]
) -> list[int]:
    """The indexes of the findings from a Pod's logs."""
    names = {report.name, report.label, report.uid} - {""}
    named = [
        n
        for n, f in enumerate(findings)
        if {f.writer.label, f.writer.host} & names or names & set(_parts(f.file))
    ]
    if named or report.number is None or not _is_one_role(reports):
        return named
    if _have_several_ranks(reports, findings):
        return []
    return [n for n, f in enumerate(findings) if f.writer.rank == report.number]


def _parts(path: str) -> list[str]:
    """The folders of a path, and the file name, also without its last ending."""
    parts = path.split("/")
    return [*parts, parts[-1].rpartition(".")[0]]


def _is_one_role(reports: Sequence[PodReport]) -> bool:
    """Whether the numbers of the Pods are those of ranks: each is there once."""
    numbers = [each.number for each in reports]
    return len(set(numbers)) == len(numbers) and len({each.role for each in reports}) == 1


def _have_several_ranks(reports: Sequence[PodReport], findings: Sequence[Finding]) -> bool:
    """Whether all Pods of a role are known, and the logs are of several ranks of each."""
    writers = [f.writer for f in findings if f.writer.rank is not None and not f.writer.launcher]
    if any(each.number is not None for each in writers):
        return False  # the logs have Pods' names
    ranks = {each.rank for each in writers}
    numbers = {each.number for each in reports}
    is_multiple = len(ranks) > len(numbers) and len(ranks) % len(numbers) == 0
    return is_multiple and numbers == set(range(len(numbers)))


def _writer(
    report: PodReport,
    mine: Sequence[Writer],
    reports: Sequence[PodReport],
    findings: Sequence[Finding],
) -> Writer:
    """The writer of a Pod's logs; the Pod itself if it has several ranks or no log.

    Args:
        report: the Pod.
        mine: the writers of its logs.
        reports: of all Pods of the job.
        findings: of the job's logs.
    """
    if mine and len({each.rank for each in mine} - {None}) < 2:
        return mine[0]
    has_ranks = bool(mine) or _have_several_ranks(reports, findings)
    rank = report.number if _is_one_role(reports) and not has_ranks else None
    # a Pod of the job without a known rank is no launcher
    return Writer(rank, report.label, report.node, has_ranks=has_ranks or rank is None)


def _at_node(finding: Finding, report: PodReport) -> Finding:
    """A finding with its Pod's node, unless the log names its host."""
    host = finding.writer.host
    if not report.node or host not in ("", finding.writer.label, report.name):
        return finding
    return finding._replace(writer=finding.writer._replace(host=report.node))


def _finding(
    report: PodReport,
    writer: Writer,
    table: Table,
    deadline_s: float,
    *,
    is_told: bool,
    has_log: bool,
) -> Finding | None:
    """What a Pod's state shows; None for a Pod without a signal whose log is known.

    Args:
        report: the Pod.
        writer: of its log.
        table: the rules.
        deadline_s: limit for its termination message, in seconds of CPU time.
        is_told: whether logs tell more than an exit code.
        has_log: whether its log is known.
    """
    signals = [s for s in report.signals if not (is_told and s.klass == CHILD_FAILED)]
    if not is_told and report.by_code is not None:
        signals.append(report.by_code)
    best = max(signals, key=lambda s: s.weight, default=None)
    if best is None and has_log:
        return None
    diagnosis = of_class(NONE, 0.7) if best is None else _diagnosis(best, report)
    if not has_log and report.messages:
        shown = _of_message("\n".join(report.messages), report, table, deadline_s)
        if shown.klass != UNKNOWN and shown.confidence > diagnosis.confidence:
            diagnosis = shown
    return Finding(
        writer, report.file, diagnosis, last=report.at, finished=report.exit_code == 0, bytes=1
    )


def _of_message(message: str, report: PodReport, table: Table, deadline_s: float) -> Diagnosis:
    """The diagnosis from a termination message: PID 1's own one, or that of the log's end."""
    own = diagnosis_in(message, report.file, report.message_line)
    if own is not None:
        return own
    if (failure := failed_task_in(message)) is not None:
        where = Evidence(report.file, report.message_line, f"Pod {report.name}: {failure.message}")
        return diagnosis_of_task(failure, table, where, deadline_s)
    log = Log(message.encode(), report.file)
    shown = diagnose([log], table, None, deadline_s, process_time)
    return shown._replace(
        evidence=tuple(e._replace(line=report.message_line) for e in shown.evidence)
    )


def _diagnosis(signal: Signal, report: PodReport) -> Diagnosis:
    signal = signal._replace(
        advice=signal.advice.replace("POD`", f"{report.name}`"),
        where=signal.where or (report.file, report.line),
    )
    return _named(signal, f"Pod {report.name}")


def _named(signal: Signal, name: str) -> Diagnosis:
    """The diagnosis from what an object reports, with the object's name in the evidence."""
    diagnosis = of_signals([signal])
    where = diagnosis.evidence[0]
    return diagnosis._replace(evidence=(where._replace(text=f"{name}: {signal.words}"),))


def _last(findings: Sequence[Finding], mine: Sequence[int]) -> Moment | None:
    """The last time in a Pod's logs if it has no zone, so that its clock may be another one; else None."""
    lasts = [last for n in mine if (last := findings[n].last) and last.form != "zone"]
    return max(lasts, default=None)


def _moment(report: PodReport, last: Moment | None) -> Moment | None:
    """When a Pod ended; by its log if the clock of that may be in another zone."""
    if last is None or report.at is None:
        return last or report.at
    later_s = seconds_between(last, report.at)
    return last._replace(at=last.at + later_s) if 0 <= later_s < _HOUR_S else last


def _earliest(failed: Sequence[PodReport], trigger: str) -> list[PodReport]:
    """The Pods of which one failed first, by a Framework's status or by their times."""
    triggered = [each for each in failed if each.label == trigger]
    if triggered or any(each.at is None for each in failed):
        return triggered or list(failed)
    return [each for each in failed if all(_seconds(other, each) < _SAME_S for other in failed)]


def _seconds(earlier: PodReport, later: PodReport) -> float:
    if earlier.at is None or later.at is None:
        return 0.0
    return seconds_between(earlier.at, later.at)


def _testimonies(
    report: PodReport, writer: Writer, earliest: Sequence[PodReport], failed: Sequence[PodReport]
) -> tuple[Testimony, ...]:
    """The report that a rank's container failed; only of those that failed first."""
    if report not in earliest or writer.rank is None:
        return ()
    words = f"Kubernetes recorded that {report.label} ended with exit code {report.exit_code}"
    is_first = len(earliest) == 1 and len(failed) > 1
    words += " before the others" if is_first else ""
    return (Testimony(writer.rank, ENDED, words, report.exit_code, first=is_first),)


def _of_nodes(
    objects: Sequence[ClusterObject],
    reports: Sequence[PodReport],
    writers: Mapping[str, Writer],
) -> list[Finding]:
    """The findings about nodes; without any Pod's node, or on a node of the job."""
    known = {each.node for each in reports} - {""}
    findings: dict[tuple[str, str], Finding] = {}
    for node, signal in node_signals(objects):
        if (known and node not in known) or (node, signal.klass) in findings:
            continue
        diagnosis = _named(signal, f"node {node}")
        stuck = [r for r in reports if r.node == node and r.exit_code in (None, *_KILLED)]
        writer = Writer(None, node, node, launcher=bool(writers))
        if len(stuck) == 1 and not stuck[0].signals:
            # the only Pod there did not end by itself
            writer = writers[stuck[0].name]
        file = diagnosis.evidence[0].file
        findings[node, signal.klass] = Finding(writer, file, diagnosis, bytes=1)
    return list(findings.values())
