"""What pairun itself reports about a Pod: PID 1's diagnosis, the task that failed, earlier attempts.

PID 1 writes its diagnosis into the termination message and the journal (`pairun.runtime.termination`,
`pairun.volume.journal`). Init's termination message has its last lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.diagnose.classes import CLASSES, FAULTS, NONE, RETRIES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

_DOCUMENT = re.compile(r"^diagnosis:\n(?P<lines>(?:  [a-z]+: .*\n)+)", re.MULTILINE)
_FAILED = re.compile(
    r"^failed +(?P<task>[\w-]+): .*\n +(?P<message>\S.*) \[(?P<kind>[a-z]+); fault: (?P<fault>[a-z]+)\]$",
    re.MULTILINE,
)
_BY_MODULE: Mapping[str, str] = {
    "barrier": "rendezvous_timeout",
    "gpu_check": "gpu_not_available",
    "image_check": "image_missing",
    "mount_storage": "storage_io_error",
    "package": "build_failed",
    "port_check": "port_in_use",
    "ssh_barrier": "rendezvous_timeout",
    "volume_check": "storage_io_error",
}
"""The class of a module's failure whose message no rule matches."""

_RETRIES = {"transient": "retry", "timeout": "retry", "conflict": "retry_elsewhere"}
_WEIGHT = 0.9


class TaskFailure(NamedTuple):
    """A task of pairun that failed.

    Attributes:
        task: its name in the playbook, as messages show it.
        module: its module; may be empty.
        kind: of the failure: ``transient``, ``timeout``, ``conflict``, ``permanent``, ``internal``.
        fault: one of `FAULTS`.
        message: why.
        attempts: how many it had; 0 if unknown.
        because: what it last waited for; may be empty.
        hint: what to do, as the module said it; may be empty.
    """

    task: str
    module: str
    kind: str
    fault: str
    message: str
    attempts: int = 0
    because: str = ""
    hint: str = ""


def diagnosis_in(message: str, file: str, line: int) -> Diagnosis | None:
    """The diagnosis in a termination message; None if it has none that names a class.

    Args:
        message: of PID 1.
        file: where it is, for people.
        line: its line there.
    """
    if (match := _DOCUMENT.search(message)) is None:
        return None
    values: dict[str, Any] = {}
    for text in match["lines"].splitlines():
        name, _, value = text.strip().partition(": ")
        try:
            values[name] = parse_json(value)
        except ValueError:
            values[name] = ""
    shown = str(values.get("evidence") or values.get("headline") or "")
    return diagnosis_of(values, (Evidence(file, line, shown),))


def diagnosis_of(values: Mapping[str, Any], evidence: tuple[Evidence, ...]) -> Diagnosis | None:
    """The diagnosis that PID 1 recorded; None if it names no class and no command that failed.

    Args:
        values: the fields of the record ``diagnosis``.
        evidence: where it is.
    """
    klass, confidence = str(values.get("class")), values.get("confidence")
    if klass not in CLASSES or klass == NONE:
        return None
    if klass == UNKNOWN and values.get("headline") in (None, "", CLASSES[UNKNOWN].meaning):
        return None
    kind = CLASSES[klass]
    fault, retry = values.get("fault"), values.get("retry")
    sure = min(max(float(confidence), 0.0), 1.0) if isinstance(confidence, float | int) else 0.3
    return of_class(klass, sure, *evidence)._replace(
        fault=fault if fault in FAULTS else kind.fault,
        retry=retry if retry in RETRIES else None,
        headline=str(values.get("headline") or kind.meaning),
        advice=str(values.get("advice") or kind.advice),
        rule=str(values.get("rule") or ""),
        source="pairun",
    )


def failed_task_in(message: str) -> TaskFailure | None:
    """The task that failed, in the last lines of init; None if they show none."""
    match = None
    for match in _FAILED.finditer(message):  # noqa: B007 - the last one counts
        pass
    if match is None:
        return None
    return TaskFailure(
        match["task"], match["task"], match["kind"], match["fault"], match["message"]
    )


def last_phase(records: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The records of the last phase in a journal."""
    begins = [n for n, record in enumerate(records) if record.get("type") == "phase_begin"]
    return records[begins[-1] :] if begins else records


def ended_by_signal(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a signal stopped a phase: its task was cancelled, and did not fail by itself."""
    return any(r.get("type") == "phase_end" and r.get("outcome") == "signal" for r in records)


def failed_task_of(records: Sequence[Mapping[str, Any]]) -> TaskFailure | None:
    """The task that ended the last phase in a journal; None if the phase did not fail by a task."""
    last = last_phase(records)
    if ended_by_signal(last):
        return None
    failed = [r for r in last if r.get("type") == "task_end" and r.get("outcome") == "failed"]
    failed = [r for r in failed if not r.get("handler")]
    if not failed:
        return None
    task = str(failed[0].get("task"))
    mine = [r for r in last if r.get("task") == task]
    modules = [str(r.get("module") or "") for r in mine if r.get("type") == "attempt_begin"]
    waits = [str(r.get("because") or "") for r in mine if r.get("type") == "wait"]
    attempts = failed[0].get("attempts")
    return TaskFailure(
        task=task,
        module=modules[-1] if modules else "",
        kind=str(failed[0].get("kind") or ""),
        fault=str(failed[0].get("fault") or ""),
        message=str(failed[0].get("message") or ""),
        attempts=attempts if isinstance(attempts, int) else 0,
        because=waits[-1] if waits else "",
        hint=str(failed[0].get("hint") or ""),
    )


def diagnosis_of_task(
    failure: TaskFailure, table: Table, where: Evidence, deadline_s: float
) -> Diagnosis:
    """The diagnosis of a Pod that a task of pairun ended: its class by the message, else by the module.

    Args:
        failure: the task.
        table: the rules.
        where: the evidence.
        deadline_s: limit for the search, in seconds of CPU time.
    """
    log = Log(failure.message.encode())
    shown = diagnose([log], table, None, deadline_s, process_time)
    klass = shown.klass
    if klass in (NONE, UNKNOWN):
        klass = _BY_MODULE.get(failure.module, "container_setup_error")
    fault = failure.fault if failure.fault in FAULTS else CLASSES[klass].fault
    after = " after a wait that timed out" if failure.kind == "timeout" else ""
    tries = f" ({failure.attempts} attempts)" if failure.attempts > 1 else ""
    waited = [Evidence("", 0, f"it waited: {failure.because}")] if failure.because else []
    return of_class(klass, _WEIGHT, where, *waited)._replace(
        fault=fault,
        advice=failure.hint or CLASSES[klass].advice,
        retry=_RETRIES.get(failure.kind, "after_fix" if fault == "user" else None),
        headline=f"pairun's task {failure.task} failed{after}{tries}: {failure.message}",
        details={"task": failure.task, "kind": failure.kind},
        source="pairun",
    )
