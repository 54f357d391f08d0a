"""The attempts of a job: groups files by attempt, joins each, and advises on a retry."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.brief import is_consequence
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE
from pairun.diagnose.gathering import Gathered, gather
from pairun.diagnose.history import Attempt, RetryAdvice, attempt_of, retry_advice, with_retries
from pairun.diagnose.incident import Incident, join
from pairun.diagnose.logfiles import LogFile
from pairun.diagnose.progress import Progress
from pairun.diagnose.table import Table
from pairun.diagnose.writers import rotated

_MAX_EARLIER = 4
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
    *earlier, last = attempts_in(files)
    older = rotated(file.within for file in last)
    live = [file for file in last if file.within not in older]
    gathered, incident = _joined(live, table, deadline_s, facts)
    if older and not (incident is not None and _is_decided(incident)):
        gathered, incident = _joined(last, table, deadline_s, facts)
    elif older and incident is not None:
        unread = [
            f"{file.name}: an older part of {os.path.basename(older[file.within])}"
            for file in last
            if file.within in older
        ]
        incident = incident._replace(unread=(*incident.unread, *unread))
    if incident is None:
        unread_parts = [each.partition(": ") for each in gathered.unread]
        left_out = tuple((name, why) for name, _, why in unread_parts)
        return Answer(None, None, gathered.failed or left_out)
    history = [
        each for group in earlier[-_MAX_EARLIER:] for each in _attempt(group, table, deadline_s)
    ]
    history += [*gathered.earlier, _last_attempt(incident, gathered)]
    if incident.diagnosis.klass == NONE:
        return Answer(incident, None, gathered.failed)
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


def _is_decided(incident: Incident) -> bool:
    """Whether the live logs show a cause, or an end in success or progress."""
    diagnosis = incident.diagnosis
    if diagnosis.klass == NONE:
        return diagnosis.confidence >= _ENDS_WELL
    return not is_consequence(diagnosis)


def attempts_in(files: Sequence[LogFile]) -> list[list[LogFile]]:
    """Group files by attempt, earliest first; files without an attempt belong to the last one."""
    groups: dict[int, list[LogFile]] = {}
    others: list[LogFile] = []
    previous: list[LogFile] = []
    for file in files:
        if match := _NUMBERED.search(file.within):
            groups.setdefault(int(match[1]), []).append(file)
        elif _PREVIOUS.search(file.within):
            previous.append(file)
        else:
            others.append(file)
    ordered = [groups[number] for number in sorted(groups)]
    if not ordered or not others:
        ordered += [others] if others else []
    else:
        ordered[-1] += others
    ordered = [previous, *ordered] if previous else ordered
    return ordered or [[]]


def _attempt(group: Sequence[LogFile], table: Table, deadline_s: float) -> list[Attempt]:
    gathered = gather(group, table, deadline_s)
    if not gathered.findings:
        return []
    return [_last_attempt(join(gathered, table), gathered)]


def _last_attempt(incident: Incident, gathered: Gathered) -> Attempt:
    node = incident.first.host if incident.first is not None else ""
    return attempt_of(incident.diagnosis, _progress(incident, gathered), node)


def _progress(incident: Incident, gathered: Gathered) -> Progress:
    """How far the attempt got: as its code reports, else as its logs show."""
    for noted in gathered.noted:
        return Progress(noted.step, noted.epoch, noted.checkpoint)
    known = [m.progress for m in incident.members if m.progress != Progress()]
    return max(known, key=lambda p: (p.step or -1, p.epoch or -1), default=Progress())
