"""Reads the logs of a folder one by one, and keeps the endings that no rule explains."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.incident.decoding import decoded
from pairun.incident.numberednames import is_counted
from pairun.incident.reading import read_file
from pairun.incident.walking import files_below
from pairun.incident.writers import Writer, host_in, writer_of
from pairun.learning.clusters import Clusters
from pairun.learning.endings import ending_of, is_explained, sample_of

READ_BYTES = 1 << 20
"""How many bytes at the end of a log are judged."""

DEADLINE_S = 30.0
"""The limit of one log's diagnosis, in seconds."""

_HEALTHY_LINES = 400
_STREAM = re.compile(r"(?i)(?:[._-]?(?:stdout|stderr|out|err|log|txt|json|jsonl|gz|zst|xz|bz2))+$")
_RANK = re.compile(r"(?i)[._-]*(?:rank|task|proc)?[._-]?\d{1,5}$")


class JudgedLog(NamedTuple):
    """A log and its diagnosis.

    Attributes:
        log: the log.
        within: its path below the folder.
        diagnosis: by the rules.
    """

    log: Log
    within: str
    diagnosis: Diagnosis


class Survey:
    """The survey of a folder's logs.

    Attributes:
        logs: number of logs read.
        empty: the names of empty logs.
        unexplained: number of logs with an unexplained ending.
        clusters: their endings.
        healthy: lines of logs without a failure.
        unread: unreadable files, each with the reason.
    """

    def __init__(self) -> None:
        self.logs = 0
        self.empty: list[str] = []
        self.unexplained = 0
        self.clusters = Clusters()
        self.healthy: deque[str] = deque(maxlen=_HEALTHY_LINES)
        self.unread: list[tuple[str, str]] = []

    def read(
        self,
        folder: str,
        table: Table,
        mask: Callable[[str], str],
        facts: Circumstances | None = None,
    ) -> None:
        """Read every log below a folder.

        Args:
            folder: the folder.
            table: the rules.
            mask: removes the secrets from a line.
            facts: known of each log besides its lines.
        """
        for judged in judged_logs(folder, table, self.unread, facts):
            self.logs += 1
            log = judged.log
            if not log.data.strip():
                self.empty.append(log.name)
                continue
            if is_explained(log, judged.diagnosis):
                if judged.diagnosis.klass == NONE:
                    self.healthy += [sample_of(line, mask) for line in log.tail(4)]
                continue
            ending = ending_of(log, table, mask)
            if ending is None:
                continue
            self.unexplained += 1
            # a writer of unknown host has its Pod's name, which here is the job's
            host = host_in(judged.within, log)
            writer = writer_of(judged.within, log)._replace(host=host)
            job = job_of(judged.within, writer)
            self.clusters.add(ending._replace(node=host, job=job))


def judged_logs(
    folder: str,
    table: Table,
    unread: list[tuple[str, str]],
    facts: Circumstances | None = None,
) -> Iterator[JudgedLog]:
    """Every log below a folder with its diagnosis, one by one.

    Args:
        folder: the folder; links below it are skipped.
        table: the rules.
        unread: collects unreadable files, each with the reason.
        facts: known of each log besides its lines.
    """
    for file in files_below(folder):
        if file.skipped:
            unread.append((file.name, file.skipped))
            continue
        try:
            reading = read_file(file.path, file.name, READ_BYTES, is_over=lambda: False)
        except OSError as e:
            unread.append((file.name, e.strerror or str(e)))
            continue
        log = decoded(reading.log)
        diagnosis = diagnose([log], table, facts, DEADLINE_S, guesses=False)
        yield JudgedLog(log, file.within, diagnosis)


def job_of(within: str, writer: Writer) -> str:
    """The job that wrote a log: the topmost folder or the file, without node and rank.

    Args:
        within: the path below the folder of logs.
        writer: who wrote the log.
    """
    *folders, file = within.split("/")
    if named := [name for part in folders if (name := _without(writer.host, part))]:
        return named[0]
    name = _STREAM.sub("", _without(writer.host, file))
    is_rank = writer.rank is not None and not is_counted([name])
    return _RANK.sub("", name) if is_rank else name


def _without(host: str, part: str) -> str:
    if not host or host not in part:
        return part
    rest = _STREAM.sub("", part).replace(host, "")
    return rest.strip("._-@")
