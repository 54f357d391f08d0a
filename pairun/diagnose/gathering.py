"""Reads and diagnoses the files of a job in parallel; returns their findings."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pairun.base.paths import JOURNAL
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.clusterobjects import MAX_BYTES as OBJECT_BYTES
from pairun.diagnose.clusterobjects import ObjectReport, may_be_objects, object_reports
from pairun.diagnose.decoding import decoded
from pairun.diagnose.diagnosis import EMPTY, NO_TEXT
from pairun.diagnose.findings import findings_in
from pairun.diagnose.history import Attempt, attempt_of
from pairun.diagnose.layouts import split
from pairun.diagnose.lines import Log
from pairun.diagnose.logfiles import LogFile
from pairun.diagnose.podfindings import with_objects
from pairun.diagnose.podjournal import PodJournal, journal_of
from pairun.diagnose.progress import progress_in
from pairun.diagnose.reading import ArchiveError, read_file
from pairun.diagnose.stalls import is_dump, read_dump
from pairun.diagnose.table import SearchLimit, Table
from pairun.diagnose.testimony import Report
from pairun.diagnose.undecided import what_is_no_text
from pairun.diagnose.weighing import diagnose
from pairun.diagnose.writerlog import Finding, finding_of
from pairun.diagnose.writers import in_job, ranks_by_name, writer_of
from pairun.volume.progressfile import NAME as NOTED
from pairun.volume.progressfile import NotedProgress, parse_progress

_JUDGED_BYTES = 32 << 20
"""How many bytes of all files together are judged in full; a large file's middle is sifted."""

_LEAST_BYTES, _MOST_BYTES = 384 << 10, 6 << 20
_POOL_BYTES = 8 << 20
"""Minimum size, in bytes, that is worth the start of a second process."""

_MAX_EARLIER = 4


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


def gather(
    files: Sequence[LogFile],
    table: Table,
    deadline_s: float,
    facts: Circumstances | None = None,
) -> Gathered:
    """Read and diagnose files.

    Args:
        files: the files.
        table: the rules.
        deadline_s: limit for each process, in seconds of CPU time.
        facts: known besides the logs; for a single log.
    """
    budget = max(_LEAST_BYTES, min(_MOST_BYTES, _JUDGED_BYTES // max(1, len(files))))
    read = [file for file in files if not file.skipped]
    ranks = ranks_by_name(file.within for file in read)
    task = _Task(table, budget, deadline_s, facts, ranks, is_alone=len(read) == 1)
    processes = min(len(files), len(os.sched_getaffinity(0)), 8)
    if processes < 2 or sum(map(_size, files)) < _POOL_BYTES:
        results = [task.read(file) for file in files]
    else:
        results = _in_pool(task, files, processes)
    findings = _in_job([f for r in results for f in r.findings])
    objects = tuple(o for r in results for o in r.objects)
    return Gathered(
        findings=tuple(with_objects(findings, objects, table, deadline_s)),
        objects=objects,
        wholes=tuple(f for r in results for f in r.wholes),
        states=tuple(s for r in results for s in r.states),
        noted=tuple(n for r in results for n in r.noted),
        earlier=max((r.earlier for r in results), key=len, default=()),
        unread=(*(u for r in results for u in r.unread), *_empty(findings)),
        failed=tuple(f for r in results for f in r.failed),
    )


def _in_job(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with the ranks of their writers in the job."""
    reported = [
        {t.rank for t in f.reports if t.by_launcher and t.rank is not None} for f in findings
    ]
    writers = in_job([(f.writer, f.file) for f in findings], reported)
    return tuple(f._replace(writer=w) for f, w in zip(findings, writers, strict=True))


def _empty(findings: Sequence[Finding]) -> list[str]:
    """The empty logs, for people; of two streams one is often empty."""
    wrote = {(f.writer.rank, f.writer.label) for f in findings if f.bytes}
    empty = [f for f in findings if (f.writer.rank, f.writer.label) not in wrote]
    return [f"{f.file}: {EMPTY}" for f in empty] if len(findings) > 1 else []


class _Task:
    """Reads and diagnoses one file at a time; shared with the processes of the pool."""

    def __init__(
        self,
        table: Table,
        budget: int,
        deadline_s: float,
        facts: Circumstances | None,
        ranks: Mapping[str, int],
        *,
        is_alone: bool,
    ) -> None:
        self._table, self._budget, self._facts, self._ranks = table, budget, facts, ranks
        self._deadline_s, self._is_alone = deadline_s, is_alone
        self.start()

    def start(self) -> None:
        """Start to count this process's CPU time, which does not depend on the machine's load."""
        self._began = time.process_time()

    def read(self, file: LogFile) -> Gathered:
        """Read and diagnose one file."""
        if file.skipped:
            return Gathered(unread=(f"{file.name}: {file.skipped}",))
        if self._is_over():
            return Gathered(unread=(f"{file.name}: not read, the time was over",))
        try:
            reading = read_file(file.path, file.name, self._budget, is_over=self._is_over)
        except OSError as e:
            why = e.strerror or str(e)
            # beside logs, an archive may hold anything
            is_beside = isinstance(e, ArchiveError) and not self._is_alone
            failed = () if is_beside else ((file.name, why),)
            return Gathered(unread=(f"{file.name}: {why}",), failed=failed)
        unread = (reading.unread,) if reading.unread else ()
        if os.path.basename(file.within) == NOTED and (noted := parse_progress(reading.log.data)):
            return Gathered(noted=(noted,))
        if is_dump(reading.log.data[:4096]):
            return self._dump(file)
        if may_be_objects(reading.log.data[:4096]) and (objects := self._objects(file)):
            return Gathered(objects=objects)
        journal = journal_of(file.path, self._table, self._deadline_s)
        is_journal = journal is not None and os.path.basename(file.path) == JOURNAL
        log = Log(b"", file.name) if is_journal else decoded(reading.log)
        writer = writer_of(file.within, log, self._ranks.get(file.within))
        if not self._is_alone and not is_journal and what_is_no_text([log]) == NO_TEXT:
            unread = (*unread, f"{file.name}: {NO_TEXT}")
            if writer.rank is None:
                return Gathered(unread=unread)
        facts = self._facts_with(journal)
        finding = finding_of(writer, log, self._table, self._deadline_s, facts)
        earlier = self._earlier(log) if finding.diagnosis.attempts > 1 else ()
        if journal is not None:
            finding = self._with_journal(finding, journal)._replace(bytes=reading.size)
            earlier = max(earlier, journal.earlier[-_MAX_EARLIER:], key=len)
        parts = split(log)
        if not parts:
            return Gathered((finding,), earlier=earlier, unread=unread)
        if finding.diagnosis.attempts > 1:
            last = self._last_attempt(log)
            parts = split(last) or [(writer, last)]
        findings = tuple(finding_of(w, part, self._table, self._deadline_s) for w, part in parts)
        return Gathered(findings=findings, wholes=(finding,), earlier=earlier, unread=unread)

    def _facts_with(self, journal: PodJournal | None) -> Circumstances | None:
        """The facts besides the log; a missing exit code is taken from the Pod's journal."""
        facts = self._facts or Circumstances()
        if (
            journal is None
            or facts.exit_code is not None
            or journal.circumstances.exit_code is None
        ):
            return self._facts
        return journal.circumstances

    def _with_journal(self, finding: Finding, journal: PodJournal) -> Finding:
        """A finding with what PID 1 or a failed task recorded, if that is clearer than the log."""
        shown, recorded = finding.diagnosis, journal.diagnosis
        if recorded is None or journal.circumstances.exit_code == 0:
            return finding
        if shown.klass not in (NONE, UNKNOWN) and shown.confidence >= recorded.confidence:
            return finding
        return finding._replace(diagnosis=recorded, finished=False)

    def _last_attempt(self, log: Log) -> Log:
        """The last attempt in a log."""
        limit = SearchLimit.after(self._deadline_s, time.process_time)
        return log.since(findings_in(log, self._table, limit, failed=False).attempts[-1].start)

    def _earlier(self, log: Log) -> tuple[Attempt, ...]:
        """The attempts in a log before its last one."""
        limit = SearchLimit.after(self._deadline_s, time.process_time)
        segments = findings_in(log, self._table, limit, failed=False).attempts[:-1]
        attempts = []
        for segment in segments[-_MAX_EARLIER:]:
            data = log.data[segment.start : segment.end]
            diagnosis = diagnose([Log(data, log.name)], self._table, None, self._deadline_s)
            attempts.append(attempt_of(diagnosis, progress_in(data)))
        return tuple(attempts)

    def _dump(self, file: LogFile) -> Gathered:
        try:
            with open(file.path, "rb") as stream:
                return Gathered(states=tuple(read_dump(stream.read(64 << 20), file.within)))
        except (OSError, ValueError) as e:
            return Gathered(unread=(f"{file.name}: {e}",))

    def _objects(self, file: LogFile) -> tuple[ObjectReport, ...]:
        whole = read_file(file.path, file.name, OBJECT_BYTES, is_over=self._is_over)
        return tuple(object_reports(whole.log.data, file.name)) if not whole.unread else ()

    def _is_over(self) -> bool:
        return time.process_time() - self._began > self._deadline_s


_shared: list[_Task] = []
"""The task for the pool's processes, which are forks of this one."""


def _begin() -> None:
    _shared[0].start()


def _read_shared(file: LogFile) -> Gathered:
    return _shared[0].read(file)


def _in_pool(task: _Task, files: Sequence[LogFile], processes: int) -> list[Gathered]:
    # imported here: most diagnoses read one small log and need no pool
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _shared[:] = [task]
    with ProcessPoolExecutor(processes, mp_context=get_context("fork"), initializer=_begin) as pool:
        return list(pool.map(_read_shared, files))


def _size(file: LogFile) -> int:
    try:
        return os.stat(file.path).st_size if file.path != "-" else 0
    except OSError:
        return 0
