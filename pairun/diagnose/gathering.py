"""Diagnoses the files of a job: reads them in parallel, joins each attempt, and advises on a retry."""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from pairun.base.paths import JOURNAL
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.clusterobjects import MAX_BYTES as OBJECT_BYTES
from pairun.diagnose.clusterobjects import may_be_objects, object_reports
from pairun.diagnose.decoding import decoded
from pairun.diagnose.diagnosis import EMPTY, NO_TEXT, Diagnosis
from pairun.diagnose.findings import findings_in
from pairun.diagnose.history import Attempt, RetryAdvice, retry_advice, with_retries
from pairun.diagnose.incident import Incident, join
from pairun.diagnose.layouts import split
from pairun.diagnose.lines import Log
from pairun.diagnose.logfiles import ArchiveError, LogFile, Reading, read_file
from pairun.diagnose.podfindings import with_objects
from pairun.diagnose.podjournal import PodJournal, journal_of
from pairun.diagnose.progress import Progress, progress_in
from pairun.diagnose.stalls import is_dump, read_dump
from pairun.diagnose.table import SearchLimit, Table
from pairun.diagnose.undecided import what_is_no_text
from pairun.diagnose.weighing import diagnose
from pairun.diagnose.writerlog import Finding, Gathered, finding_of
from pairun.diagnose.writers import in_job, ranks_by_name, rotated, writer_of
from pairun.volume.progressfile import NAME as NOTED
from pairun.volume.progressfile import parse_progress

_JUDGED_BYTES = 32 << 20
"""How many bytes of all files together are judged in full; a large file's middle is sifted."""

_LEAST_BYTES, _MOST_BYTES = 384 << 10, 6 << 20
_POOL_BYTES = 8 << 20
"""Minimum size, in bytes, that is worth the start of a second process."""

_MAX_EARLIER = 4
_HEAD_BYTES, _DUMP_BYTES = 4096, 64 << 20
_ENDS_WELL = 0.9
"""The least confidence in ``none`` for a log that ends in success or progress."""

_NUMBERED = re.compile(r"(?:^|/)(?:attempt|restart|retry|try)[._-]?(\d{1,6})/", re.IGNORECASE)
_PREVIOUS = re.compile(r"(?:^|[/._-])previous(?:[/._-]|$)", re.IGNORECASE)


class Answer(NamedTuple):
    """The diagnosis of a job's files.

    Attributes:
        incident: of the last attempt; None if none of its files can be read.
        advice: on a retry, from all known attempts.
        failed: unreadable files, each with the reason.
    """

    incident: Incident | None
    advice: RetryAdvice | None
    failed: tuple[tuple[str, str], ...]


def answer(
    files: Sequence[LogFile], table: Table, deadline_s: float, facts: Circumstances | None = None
) -> Answer:
    """Diagnose the last attempt of a job, and compare it with earlier ones.

    Args:
        files: of the job.
        table: the rules.
        deadline_s: how long each attempt may take in each process, in seconds of CPU time.
        facts: what is known of the whole job besides its logs.
    """
    *before, last = attempts_in(files)
    older = rotated(file.within for file in last)
    live = [file for file in last if file.within not in older]
    gathered, incident = _joined(live, table, deadline_s, facts)
    if older and incident is not None and _is_decided(incident.diagnosis):
        names = ((file.name, older.get(file.within)) for file in last)
        unread = [f"{n}: an older part of {os.path.basename(live)}" for n, live in names if live]
        incident = incident._replace(unread=(*incident.unread, *unread))
    elif older:
        gathered, incident = _joined(last, table, deadline_s, facts)
    if incident is None:
        unread_parts = [each.partition(": ") for each in gathered.unread]
        left_out = tuple((name, why) for name, _, why in unread_parts)
        return Answer(None, None, gathered.failed or left_out)
    if incident.diagnosis.klass == NONE:
        return Answer(incident, None, gathered.failed)
    groups = [_joined(group, table, deadline_s, None) for group in before[-_MAX_EARLIER:]]
    attempts = [_attempt(joined, shown) for shown, joined in groups if joined and shown.findings]
    history = [*attempts, *gathered.earlier, _attempt(incident, gathered)]
    retries = max((each.retries for each in gathered.objects), default=0)
    advice = with_retries(retry_advice(history), retries)
    diagnosis = incident.diagnosis._replace(retry=advice.retry)
    return Answer(incident._replace(diagnosis=diagnosis), advice, gathered.failed)


def _joined(
    files: Sequence[LogFile], table: Table, deadline_s: float, facts: Circumstances | None
) -> tuple[Gathered, Incident | None]:
    """What files show, together; no incident if none of them can be read."""
    alone = facts if sum(not file.skipped for file in files) == 1 else None
    gathered = gather(files, table, deadline_s, alone)
    if not gathered.findings and not gathered.states:
        return gathered, None
    return gathered, join(gathered, table, facts)


def _is_decided(diagnosis: Diagnosis) -> bool:
    """Whether the live logs show a cause, or an end in success or progress."""
    if diagnosis.klass == NONE:
        return diagnosis.confidence >= _ENDS_WELL
    return not diagnosis.is_consequence


def attempts_in(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """Group files by attempt, earliest first; files without an attempt belong to the last one."""
    groups: dict[int, list[LogFile]] = defaultdict(list)
    previous = [f for f in files if _PREVIOUS.search(f.within) and not _NUMBERED.search(f.within)]
    others: list[LogFile] = []
    for file in files:
        if match := _NUMBERED.search(file.within):
            groups[int(match[1])].append(file)
        elif file not in previous:
            others.append(file)
    numbered = [groups[number] for number in sorted(groups)] or [[]]
    numbered[-1] += others
    return [group for group in (previous, *numbered) if group] or [[]]


def _attempt(incident: Incident, gathered: Gathered) -> Attempt:
    """An attempt; how far it got is as its code reports, else as its logs show."""
    known = [each.progress for each in incident.members if each.progress != Progress()]
    progress = max(known, key=lambda p: (p.step or -1, p.epoch or -1), default=Progress())
    for noted in gathered.noted[:1]:
        progress = Progress(noted.step, noted.epoch, noted.checkpoint)
    node = incident.first.host if incident.first is not None else ""
    return Attempt(incident.diagnosis, progress, node)


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
    until_s = time.process_time() + deadline_s
    task = _Task(table, budget, deadline_s, facts, ranks, len(read) == 1, until_s)
    sizes = (os.stat(f.path).st_size for f in read if os.path.isfile(f.path))
    processes = min(len(files), len(os.sched_getaffinity(0)), 8)
    if processes < 2 or sum(sizes) < _POOL_BYTES:
        results = [task.read(file) for file in files]
    else:
        results = _in_pool(task, files, processes)
    # each attribute but the earlier attempts is what all files show
    whole = Gathered(*(tuple(chain(*parts)) for parts in zip(*results, strict=True)))
    reported = [
        {t.rank for t in f.reports if t.by_launcher and t.rank is not None} for f in whole.findings
    ]
    writers = in_job([(f.writer, f.file) for f in whole.findings], reported)
    findings = tuple(f._replace(writer=w) for f, w in zip(whole.findings, writers, strict=True))
    return whole._replace(
        findings=tuple(with_objects(findings, whole.objects, table, deadline_s)),
        earlier=max((r.earlier for r in results), key=len, default=()),
        unread=(*whole.unread, *_empty(findings)),
    )


def _empty(findings: Sequence[Finding]) -> list[str]:
    """The empty logs, for people; of two streams one is often empty."""
    wrote = {(f.writer.rank, f.writer.label) for f in findings if f.bytes}
    empty = [f for f in findings if (f.writer.rank, f.writer.label) not in wrote]
    return [f"{f.file}: {EMPTY}" for f in empty] if len(findings) > 1 else []


class _Task(NamedTuple):
    """Reads and diagnoses one file at a time; shared with the processes of the pool.

    Its limit counts CPU time, which does not depend on the machine's load. A process of the pool
    starts to count at 0.
    """

    table: Table
    budget: int
    deadline_s: float
    facts: Circumstances | None
    ranks: Mapping[str, int]
    is_alone: bool
    until_s: float

    def read(self, file: LogFile) -> Gathered:
        """Read and diagnose one file."""
        if file.skipped:
            return Gathered(unread=(f"{file.name}: {file.skipped}",))
        if self._is_over():
            return Gathered(unread=(f"{file.name}: not read, the time was over",))
        try:
            reading = read_file(file.path, file.name, self.budget, is_over=self._is_over)
            if is_dump(reading.log.data[:_HEAD_BYTES]):
                with open(file.path, "rb") as stream:
                    return Gathered(states=tuple(read_dump(stream.read(_DUMP_BYTES), file.within)))
        except (OSError, ValueError) as e:
            why = getattr(e, "strerror", "") or str(e)
            # beside logs, an archive may hold anything
            is_beside = isinstance(e, ArchiveError) and not self.is_alone
            is_failure = isinstance(e, OSError) and not is_beside
            failed = ((file.name, why),) if is_failure else ()
            return Gathered(unread=(f"{file.name}: {why}",), failed=failed)
        if os.path.basename(file.within) == NOTED and (noted := parse_progress(reading.log.data)):
            return Gathered(noted=(noted,))
        if may_be_objects(reading.log.data[:_HEAD_BYTES]):
            whole = read_file(file.path, file.name, OBJECT_BYTES, is_over=self._is_over)
            if not whole.unread and (objects := object_reports(whole.log.data, file.name)):
                return Gathered(objects=tuple(objects))
        return self._of_log(file, reading)

    def _of_log(self, file: LogFile, reading: Reading) -> Gathered:
        """What a log shows, with what the Pod's journal records."""
        unread = (reading.unread,) if reading.unread else ()
        journal = journal_of(file.path, self.table, self.deadline_s)
        is_journal = journal is not None and os.path.basename(file.path) == JOURNAL
        log = Log(b"", file.name) if is_journal else decoded(reading.log)
        writer = writer_of(file.within, log, self.ranks.get(file.within))
        if not self.is_alone and not is_journal and what_is_no_text([log]) == NO_TEXT:
            unread = (*unread, f"{file.name}: {NO_TEXT}")
            if writer.rank is None:
                return Gathered(unread=unread)
        facts = self.facts
        if journal and journal.circumstances.exit_code is not None:
            facts = facts if facts and facts.exit_code is not None else journal.circumstances
        finding = finding_of(writer, log, self.table, self.deadline_s, facts)
        last, earlier = log, tuple[Attempt, ...]()
        if finding.diagnosis.attempts > 1:
            limit = SearchLimit.after(self.deadline_s, time.process_time)
            *before, end = findings_in(log, self.table, limit, failed=False).attempts
            last = log.since(end.start)
            for part in (log.since(each.start, each.end) for each in before[-_MAX_EARLIER:]):
                diagnosis = diagnose([part], self.table, None, self.deadline_s)
                earlier = (*earlier, Attempt(diagnosis, progress_in(part.data)))
        if journal is not None:
            finding = _with_journal(finding, journal)._replace(bytes=reading.size)
            earlier = max(earlier, journal.earlier[-_MAX_EARLIER:], key=len)
        parts = split(log)
        if not parts:
            return Gathered((finding,), earlier=earlier, unread=unread)
        parts = parts if last is log else split(last) or [(writer, last)]
        findings = tuple(finding_of(w, part, self.table, self.deadline_s) for w, part in parts)
        return Gathered(findings=findings, wholes=(finding,), earlier=earlier, unread=unread)

    def _is_over(self) -> bool:
        return time.process_time() > self.until_s


def _with_journal(finding: Finding, journal: PodJournal) -> Finding:
    """A finding with what PID 1 or a failed task recorded, if that is clearer than the log."""
    shown, recorded = finding.diagnosis, journal.diagnosis
    if recorded is None or journal.circumstances.exit_code == 0:
        return finding
    if shown.klass not in (NONE, UNKNOWN) and shown.confidence >= recorded.confidence:
        return finding
    return finding._replace(diagnosis=recorded, finished=False)


_shared: list[_Task] = []
"""The task for the pool's processes, which are forks of this one."""


def _read_shared(file: LogFile) -> Gathered:
    return _shared[0].read(file)


def _in_pool(task: _Task, files: Sequence[LogFile], processes: int) -> list[Gathered]:
    # imported here: most diagnoses read one small log and need no pool
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _shared[:] = [task]
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        return list(pool.map(_read_shared, files))
