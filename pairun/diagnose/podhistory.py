"""The earlier attempts of a Pod, from its log directory.

A Pod whose container restarts keeps its journal, even if its init containers run again. Each
attempt writes its diagnosis and its progress there. So pairun compares attempts without their logs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.base.paths import JOURNAL
from pairun.diagnose.classes import CLASSES, NONE, RETRIES
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.history import Attempt, advised, attempt_of, retry_advice
from pairun.diagnose.progress import Progress, progress_in
from pairun.volume.door import Door
from pairun.volume.progressfile import MAX_BYTES, parse_progress
from pairun.volume.progressfile import NAME as NOTED

JOURNAL_BYTES = 1 << 20
"""How many bytes at the end of the journal are read."""

MAX_ATTEMPTS = 16
_NODE = "this node"
"""The node of all attempts: a Pod stays on one node."""

_BY_CODE, _BY_LOG = "pairun progress", "log"


def with_pod_history(diagnosis: Diagnosis, door: Door, folder: str, log: bytes) -> Diagnosis:
    """A diagnosis that considers the Pod's earlier attempts, and includes the job's progress.

    ``details`` gets ``step``, ``epoch``, ``checkpoint`` where known, and ``progress_from`` for
    later attempts.

    Args:
        diagnosis: of this attempt.
        door: to the shared volume.
        folder: the Pod's log directory.
        log: the end of the command's output, from all attempts.
    """
    if diagnosis.klass == NONE:
        return diagnosis
    progress, source = _progress(door, folder, log)
    earlier = list(_earlier(_end_of(door, os.path.join(folder, JOURNAL), JOURNAL_BYTES), source))
    advice = retry_advice([*earlier[-MAX_ATTEMPTS:], attempt_of(diagnosis, progress, _NODE)])
    values = {"step": progress.step, "epoch": progress.epoch, "checkpoint": progress.checkpoint}
    details = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if details:
        details["progress_from"] = source
    diagnosis = diagnosis._replace(details={**diagnosis.details, **details})
    return advised(diagnosis, advice)


def _progress(door: Door, folder: str, log: bytes) -> tuple[Progress, str]:
    """How far the job got in this Pod, and the source: its code, else its log."""
    noted = parse_progress(_end_of(door, os.path.join(folder, NOTED), MAX_BYTES))
    if noted is not None:
        return Progress(noted.step, noted.epoch, noted.checkpoint), _BY_CODE
    return progress_in(log), _BY_LOG


def _earlier(journal: bytes, source: str) -> Iterator[Attempt]:
    """The attempts in a journal; the job's command may have written there, too."""
    lines = (line for line in journal.splitlines() if b'"diagnosis"' in line)
    for record in map(parse_record, lines):
        if record is not None and record.get("type") == "diagnosis":
            yield recorded_attempt(record, source)


def recorded_attempt(record: Mapping[str, Any], source: str = "") -> Attempt:
    """The attempt that a journal's record of a diagnosis describes.

    Args:
        record: of type ``diagnosis``.
        source: of the progress with which its own is compared; empty for that which the record names.
    """
    details = record.get("details")
    details = details if isinstance(details, dict) else {}
    klass, retry = str(record.get("class")), record.get("retry")
    fault = CLASSES[klass].fault if klass in CLASSES else "unknown"
    diagnosis = Diagnosis(
        klass, fault, retry if retry in RETRIES else None, 0.0, str(record.get("headline")), "",
        (), details, (), str(record.get("rule") or ""),
    )  # fmt: skip
    is_comparable = not source or details.get("progress_from") == source
    progress = Progress(
        _number(details.get("step")), _number(details.get("epoch")), str(details.get("checkpoint") or "")
    )  # fmt: skip
    return attempt_of(diagnosis, progress if is_comparable else Progress(), _NODE)


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 16 else None


def _end_of(door: Door, path: str, size: int) -> bytes:
    try:
        return door.read_end(path, size)
    except OSError:
        return b""
