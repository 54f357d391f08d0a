"""Finds the lost peer that an exception of a log follows from, or that ends a log.

An exception that is raised while a lost peer is handled, such as by an emergency checkpoint, follows from
that loss. A program that waits for its peers after an error has handled that error.
"""

from __future__ import annotations

import re
import time

from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

_CHAIN = re.compile(
    rb"During handling of the above exception, another exception occurred:"
    rb"|The above exception was the direct cause of the following exception:"
)
_HEADER = b"Traceback (most recent call last)"
_BYTES = 1 << 16
_LOSSES = frozenset(("nccl_timeout", "peer_lost", "rendezvous_timeout"))


def loss_before(log: Log, at: int, table: Table, deadline_s: float) -> Diagnosis | None:
    """The lost peer during whose handling a log's deciding exception was raised.

    Args:
        log: the log.
        at: the offset of the deciding line.
        table: the rules.
        deadline_s: limit for this, in seconds of CPU time.

    Returns:
        The diagnosis of the exception before; None if there is none, or it is no lost peer.
    """
    start = max(0, at - _BYTES)
    chain = next(reversed(list(_CHAIN.finditer(log.data, start, max(at, 0)))), None)
    if chain is None or log.data.count(_HEADER, chain.end(), at) != 1:
        return None
    return _loss_in(log, max(0, chain.start() - _BYTES), chain.start(), table, deadline_s)


def loss_after(log: Log, at: int, table: Table, deadline_s: float) -> Diagnosis | None:
    """The lost peer that ends a log which continued after its deciding line.

    Args:
        log: the log.
        at: the offset of the deciding line.
        table: the rules.
        deadline_s: limit for this, in seconds of CPU time.
    """
    end = log.data.find(b"\n", at)
    rest = log.data[end + 1 :] if end >= 0 else b""
    if _HEADER not in rest:
        return None
    size = len(log.data)
    return _loss_in(log, max(end + 1, size - _BYTES), size, table, deadline_s)


def _loss_in(log: Log, start: int, end: int, table: Table, deadline_s: float) -> Diagnosis | None:
    """The lost peer that a part of a log shows; None if it shows something else."""
    part = Log(log.data[start:end], log.name)
    diagnosis = diagnose([part], table, None, deadline_s, clock=time.process_time)
    if diagnosis.klass not in _LOSSES:
        return None
    starts = [0, *(m.end() for m in re.finditer(rb"\n", part.data))]
    evidence = tuple(
        e._replace(line=log.number(start + starts[e.line - 1])) if e.line else e
        for e in diagnosis.evidence
    )
    return diagnosis._replace(evidence=evidence)
