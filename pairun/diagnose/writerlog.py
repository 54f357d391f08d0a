"""What one writer's log shows: its diagnosis, its time of failure, its reports on other ranks."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from pairun.diagnose.brief import is_consequence
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.collectives import RankState, states_in
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_line
from pairun.diagnose.lines import Log
from pairun.diagnose.progress import Progress, progress_in
from pairun.diagnose.stacks import Stack, last_stack
from pairun.diagnose.surroundings import Surroundings
from pairun.diagnose.table import Table
from pairun.diagnose.testimony import Testimony, testimonies
from pairun.diagnose.times import Moment, last_moment, moment_of_failure
from pairun.diagnose.weighing import BY_CODE, diagnose
from pairun.diagnose.writers import Writer

CHILD_FAILED = "child_failed"
"""The class of a launcher that only reports a failed rank."""

_TAIL_LINES = 5
_CHAIN = re.compile(
    rb"During handling of the above exception, another exception occurred:"
    rb"|The above exception was the direct cause of the following exception:"
)
_TRACEBACK = b"Traceback (most recent call last)"
_NEAR_BYTES = 1 << 16
LOSSES = frozenset(("nccl_timeout", "peer_lost", "rendezvous_timeout"))
"""The classes of ranks that waited for, or lost, another one."""


class Finding(NamedTuple):
    """What one writer's log shows.

    Attributes:
        writer: who wrote it.
        file: the file name for people.
        diagnosis: of this log alone.
        at: time at which the failure was logged; None if unknown.
        last: time of the log's last line; None if unknown.
        finished: whether the log ends with success, or its exit code is 0.
        bytes: size of the log.
        states: of collectives, from its watchdog.
        testimonies: its reports on ranks that failed or are missing.
        stack: where its main thread was, by a dump of its stacks.
        progress: how far the job got.
        tail: its last lines.
        lines: the numbers of its first and its last line.
    """

    writer: Writer
    file: str
    diagnosis: Diagnosis
    at: Moment | None = None
    last: Moment | None = None
    finished: bool = False
    bytes: int = 0
    states: Sequence[RankState] = ()
    testimonies: Sequence[Testimony] = ()
    stack: Stack | None = None
    progress: Progress = Progress()
    tail: tuple[Evidence, ...] = ()
    lines: tuple[int, int] = (0, 0)

    @property
    def is_cause(self) -> bool:
        """Whether the log shows a failure that another rank did not cause.

        An exit code alone is no cause: the launcher stops or kills the other ranks.
        """
        klass, by_code = self.diagnosis.klass, self.diagnosis.source == BY_CODE
        return klass != CHILD_FAILED and not by_code and not is_consequence(self.diagnosis)

    @property
    def is_silent(self) -> bool:
        """Whether the log shows neither a failure nor a success."""
        return self.diagnosis.is_clean and not self.finished and not self.states

    @property
    def is_waiting(self) -> bool:
        """Whether the rank failed because it waited for, or lost, another one."""
        return self.diagnosis.klass not in (NONE, UNKNOWN) and is_consequence(self.diagnosis)


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
    line = _line_of(diagnosis)
    at = log.offset(line) if line else -1
    if line and not is_consequence(diagnosis):
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
        states=states_in(log),
        testimonies=tuple(testimonies(log)),
        stack=last_stack(log),
        progress=progress_in(log.data),
        tail=tuple(of_line(log, each) for each in log.tail(_TAIL_LINES)),
        lines=(log.number(0), log.number(max(0, len(log.data.rstrip()) - 1))),
    )


def _line_of(diagnosis: Diagnosis) -> int:
    """The number of the line that decided; 0 if there is none."""
    if diagnosis.klass in (NONE, UNKNOWN):
        return 0
    return next((e.line for e in diagnosis.evidence if e.line), 0)


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
