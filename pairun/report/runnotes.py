"""Notes from the journals on how a run ended: retries, failures, who failed first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.classes import UNKNOWN
from pairun.incident.instances import InstanceFailure, first_of, what_followed
from pairun.report.runsummary import InstanceReport
from pairun.report.shown import fit
from pairun.volume.journal import Record, read_journal

SURE = 0.7
"""Diagnoses below this confidence are reported as guesses."""

QUOTED = 100
"""How many characters of a task's last line to quote."""

_DEFAULTS: Record = {
    "attempts": 0, "task": "a task", "message": "", "outcome": "", "output": [], "time": 0.0,
    "class": UNKNOWN, "headline": "", "confidence": 1.0,
}  # fmt: skip
"""The defaults for fields that are missing or of a wrong type."""


def records_of(journal: str) -> list[Record]:
    """Read a journal to which a job can write: fields of a wrong type count as missing."""
    return [
        _DEFAULTS | {k: v for k, v in record.items() if isinstance(v, type(_DEFAULTS.get(k, v)))}
        for record in read_journal(journal)
        if isinstance(record.get("type"), str)
    ]


def notes_on(instance: InstanceReport, records: Sequence[Record]) -> list[str]:
    """Notes on an instance: retries, failures, exit handlers, diagnosis, stop."""
    stopped = instance.is_stopped()
    notes = [
        f"{r['task']} succeeded at attempt {r['attempts']}"
        for r in _ends(records, handler=False)
        if r["attempts"] > 1 and r["outcome"] in ("ok", "changed")
    ]
    notes += [
        _failed_task(records, r) for r in _ends(records, handler=False) if r["outcome"] == "failed"
    ]
    handlers = [f"{r['task']} {r['outcome']}" for r in _ends(records, handler=True)]
    if handlers:
        notes.append(f"exit handlers: {', '.join(handlers)}")
    notes += [_why(r) for r in records if r["type"] == "diagnosis" and not stopped]
    if stopped:
        notes.append(f"stopped: {instance.stopped}")
    if instance.command is None:
        notes.append(_without_command(instance))
    return notes


def _without_command(instance: InstanceReport) -> str:
    if instance.init is None or instance.is_stopped():
        return "the command was not started"
    return "init failed: the command was not started"


def _last_words(records: Sequence[Record], end: Record) -> str:
    """The last line of a task's output, if its message is only an exit code."""
    if not re.search(r"exit code \d+$", end["message"]):
        return ""
    attempts = [r for r in records if r["type"] == "attempt_end" and r["task"] == end["task"]]
    lines = [
        line for line in (map(str, attempts[-1]["output"]) if attempts else ()) if line.strip()
    ]
    return f" ({fit(lines[-1].strip(), QUOTED)})" if lines else ""


def _ends(records: Sequence[Record], *, handler: bool) -> list[Record]:
    ends = [r for r in records if r["type"] == "task_end"]
    return [r for r in ends if bool(r.get("handler")) == handler]


def first_failure_in(instances: Sequence[InstanceReport]) -> str:
    """Which instance failed first, and why; causes rank before their effects."""
    failures: list[InstanceFailure] = []
    reasons: list[str] = []
    for instance in instances:
        if instance.is_stopped():
            continue
        records = records_of(instance.journal)
        diagnoses = [r for r in records if r["type"] == "diagnosis"]
        tasks = [r for r in _ends(records, handler=False) if r["outcome"] == "failed"]
        for record in diagnoses or tasks:
            klass = str(record["class"]) if diagnoses else ""
            failures.append(InstanceFailure(instance.label, klass, record["time"]))
            reasons.append(_why(record) if diagnoses else _failed_task(records, record))
    if not failures or len(instances) < 2:
        return ""
    number = first_of(failures)
    why = "; ".join(filter(None, (reasons[number], what_followed(failures))))
    return f"first to fail: {failures[number].label}: {why}"


def _failed_task(records: Sequence[Record], end: Record) -> str:
    return f"{end['task']} failed: {end['message']}{_last_words(records, end)}"


def _why(diagnosis: Record) -> str:
    """The headline of a diagnosis; ``probably`` marks a guess."""
    headline, klass = diagnosis["headline"], diagnosis["class"]
    if klass == UNKNOWN:
        return str(headline)
    guess = "probably " if diagnosis["confidence"] < SURE else ""
    return f"{guess}{headline} ({klass})"
