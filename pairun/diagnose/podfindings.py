"""Ties what Kubernetes reports about Pods and nodes to the ranks whose logs are known.

A Pod belongs to a log by its name or uid in the file's path, by the writer's name, or by the number
of the rank if the job has one role. What an object states of a Pod is a finding of its rank. An exit code alone
is a report about the rank: the log explains it better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.clusterobjects import ObjectReport
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class, of_signals
from pairun.diagnose.podjournal import in_message
from pairun.diagnose.signals import Signal
from pairun.diagnose.systemfacts import BEFORE_START
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import ENDED, Report
from pairun.diagnose.times import Moment, seconds_between
from pairun.diagnose.writerlog import CHILD_FAILED, Finding
from pairun.diagnose.writers import Writer
from pairun.kube import endwords

_SAME_S = 1.5
"""Pods' ends that differ by less have no order, in seconds: Kubernetes counts whole seconds."""

_KILLED = (137, 143)
_HOUR_S = 3600


def with_objects(
    findings: Sequence[Finding], objects: Sequence[ObjectReport], table: Table, deadline_s: float
) -> list[Finding]:
    """The findings of logs, with those of Kubernetes' objects.

    Args:
        findings: of the job's logs.
        objects: the reports in its files.
        table: the rules.
        deadline_s: limit for each termination message, in seconds of CPU time.
    """
    pods = _pods(objects)
    logs = _logs_of(pods, findings)
    # where logs name some Pods, only Pods that are named alike are of the job
    stems = {_stem(pod.name) for pod in pods if logs[pod.name]}
    pods = [pod for pod in pods if not stems or _stem(pod.name) in stems]
    logs, are_ranks = _logs_of(pods, findings), _are_ranks(pods, findings)
    failed = [pod for pod in pods if pod.exit_code]
    first = _earliest(failed, objects)
    alone = " before the others" if len(first) == 1 < len(failed) else ""
    # where no log shows a failure, exit codes are all there is
    are_quiet = all(f.diagnosis.klass in (NONE, UNKNOWN) for f in findings)
    joined = list(findings)
    writers: dict[str, Writer] = {}
    for pod in pods:
        mine = logs[pod.name]
        ranks = {findings[n].writer.rank for n in mine} - {None}
        # without a known rank it is no launcher
        rank = pod.number if are_ranks and not mine else None
        writer = Writer(rank, pod.label, pod.node, has_ranks=rank is None)
        writer = findings[mine[0]].writer if mine and len(ranks) < 2 else writer
        writers[pod.name] = writer
        for n in mine:
            joined[n] = _at_node(joined[n], pod)
        said: tuple[Report, ...] = ()
        if pod.name in first and writer.rank is not None:
            words = (
                f"Kubernetes recorded that {pod.label} ended with exit code {pod.exit_code}{alone}"
            )
            said = (Report(ENDED, writer.rank, words, exit_code=pod.exit_code, first=bool(alone)),)
        signals = [s for s in pod.signals if not (pod.started and s.klass in BEFORE_START)]
        if mine and not are_quiet:
            # the logs show more than an exit code does
            signals = [each for each in signals if each.klass != CHILD_FAILED]
        elif pod.by_code is not None:
            signals.append(pod.by_code)
        best = max(signals, key=lambda s: s.weight, default=None)
        shown = [] if best is None else [_of_object(best, "Pod", pod.name)]
        if not mine:
            shown = shown or [of_class(NONE, 0.7)]
            place = Evidence(pod.where[0], pod.message_line, f"Pod {pod.name}")
            if pod.message:
                told = endwords.diagnosis(pod.message), endwords.failed_task(pod.message)
                shown.append(in_message(pod.message, *told, place, table, deadline_s))
        why = max(shown, key=lambda d: (d.klass != UNKNOWN, d.confidence), default=None)
        if why is not None and (not why.is_clean or not findings):
            at = _moment(pod, [findings[n].last for n in mine])
            own = Finding(writer, pod.where[0], why, at, pod.at, bytes=1, reports=said)
            own = own._replace(finished=pod.exit_code == 0)
            is_beside = writer.has_ranks and not own.is_cause
            joined.append(own._replace(writer=writer._replace(launcher=True)) if is_beside else own)
        elif mine:
            before = joined[mine[0]]
            joined[mine[0]] = before._replace(reports=(*before.reports, *said))
    return [*joined, *_of_nodes(objects, pods, writers)]


def _pods(objects: Sequence[ObjectReport]) -> list[ObjectReport]:
    """The Pods, each once, with what their Events report; also Pods that only Events name."""
    # of two states of a Pod, as a watch prints them, the last counts
    pods = {each.name: each for each in objects if each.kind == "Pod"}
    for each in objects:
        if each.kind == "Event":
            pod = pods.get(each.name, each._replace(signals=()))
            pods[each.name] = pod._replace(
                signals=(*pod.signals, *each.signals),
                at=pod.at or each.at,
                started=pod.started or each.started,
            )
    return list(pods.values())


def _stem(name: str) -> str:
    """A Pod's name without its number and the letters that a controller appends."""
    return re.sub(r"(?:-\d+)?(?:-[a-z0-9]{5})?$", "", name)


def _logs_of(
    pods: Sequence[ObjectReport], findings: Sequence[Finding]
) -> Mapping[str, Sequence[int]]:
    """The indexes of the findings from each Pod's logs."""
    names = [
        {
            *f.file.split("/"),
            f.file.split("/")[-1].rpartition(".")[0],
            f.writer.label,
            f.writer.host,
        }
        for f in findings
    ]
    are_ranks, logs = _are_ranks(pods, findings), {}
    for pod in pods:
        own = {pod.name, pod.label, pod.uid} - {""}
        logs[pod.name] = [n for n, each in enumerate(names) if own & each]
        if not logs[pod.name] and pod.number is not None and are_ranks:
            logs[pod.name] = [n for n, f in enumerate(findings) if f.writer.rank == pod.number]
    return logs


def _are_ranks(pods: Sequence[ObjectReport], findings: Sequence[Finding]) -> bool:
    """Whether the numbers of the Pods are those of ranks.

    They are not in several roles, nor where all Pods of a role are known and the logs are of several
    ranks of each.
    """
    numbers = {pod.number for pod in pods}
    if len(numbers) < len(pods) or len({pod.role for pod in pods}) != 1:
        return False
    writers = [f.writer for f in findings if f.writer.rank is not None and not f.writer.launcher]
    ranks = {each.rank for each in writers if each.number is None}
    is_multiple = len(ranks) > len(numbers) and len(ranks) % len(numbers) == 0
    return not is_multiple or numbers != set(range(len(numbers)))


def _at_node(finding: Finding, pod: ObjectReport) -> Finding:
    """A finding with its Pod's node, unless the log names its host."""
    if not pod.node or finding.writer.host not in ("", finding.writer.label, pod.name):
        return finding
    return finding._replace(writer=finding.writer._replace(host=pod.node))


def _of_object(signal: Signal, kind: str, name: str) -> Diagnosis:
    """The diagnosis from what an object reports, with the object's name in evidence and advice."""
    advice = signal.advice.replace("POD`", f"{name}`")
    diagnosis = of_signals([signal._replace(advice=advice)])
    where = diagnosis.evidence[0]._replace(text=f"{kind} {name}: {signal.words}")
    return diagnosis._replace(evidence=(where,))


def _moment(pod: ObjectReport, lasts: Sequence[Moment | None]) -> Moment | None:
    """When a Pod ended; by its log's clock if that may be in another zone."""
    last = max((each for each in lasts if each and each.form != "zone"), default=None)
    if last is None or pod.at is None:
        return last or pod.at
    later_s = seconds_between(last, pod.at)
    return last._replace(at=last.at + later_s) if 0 <= later_s < _HOUR_S else last


def _earliest(failed: Sequence[ObjectReport], objects: Sequence[ObjectReport]) -> set[str]:
    """The names of the Pods of which one failed first, by a Framework's status or by their times."""
    triggers = {each.trigger for each in objects if each.kind == "Framework"}
    first = {pod.name for pod in failed if (pod.role, pod.number) in triggers}
    times = [pod.at for pod in failed if pod.at is not None]
    if first or len(times) < len(failed):
        return first or {pod.name for pod in failed}
    return {
        pod.name
        for pod in failed
        if pod.at is not None and all(seconds_between(each, pod.at) < _SAME_S for each in times)
    }


def _of_nodes(
    objects: Sequence[ObjectReport], pods: Sequence[ObjectReport], writers: Mapping[str, Writer]
) -> Iterator[Finding]:
    """The findings about nodes; without any Pod's node, or on a node of the job."""
    known = {pod.node for pod in pods} - {""}
    for each in objects:
        if each.kind != "Node" or (known and each.name not in known):
            continue
        writer = Writer(None, each.name, each.name, launcher=bool(writers))
        stuck = [pod for pod in pods if pod.node == each.name and pod.exit_code in (None, *_KILLED)]
        if len(stuck) == 1 and not stuck[0].signals:
            # the only Pod there did not end by itself
            writer = writers[stuck[0].name]
        for signal in each.signals:
            diagnosis = _of_object(signal, "node", each.name)
            yield Finding(writer, diagnosis.evidence[0].file, diagnosis, bytes=1)
