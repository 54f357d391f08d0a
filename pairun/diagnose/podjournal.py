"""What pairun recorded about a Pod: exit code, stop, PID 1's diagnosis, the task that failed, earlier attempts.

It is in the journal beside the Pod's logs (`pairun.volume.journal`), which a container that starts again
keeps, and in termination messages (`pairun.runtime.termination`). The job's command may write there, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Annotated, Any, NamedTuple

from pairun.base.fields import between, field_of
from pairun.base.foreignjson import parse_record
from pairun.base.paths import JOURNAL
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, FAULTS, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_class
from pairun.diagnose.history import Attempt, advised, recorded, retry_advice
from pairun.diagnose.lines import Log
from pairun.diagnose.progress import Progress, progress_in
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.volume.door import Door
from pairun.volume.journal import Record, read_journal
from pairun.volume.progressfile import read_progress

OUTPUT = "user-all"
"""The folder in a Pod's log directory with the output of the user's command."""

PHASE_LOGS = ("init.log", "runtime.log")
"""The logs of the two phases in a Pod's log directory."""

RUN_OUTPUT = "output.log"
"""The file in an instance's folder of `pairun run` with all output of the instance."""

_JOURNAL_BYTES, _MAX_ATTEMPTS = 1 << 20, 16
"""How many bytes at the end of the journal, and how many earlier attempts, PID 1 considers."""

_NODE = "this node"
"""The node of all attempts: a Pod stays on one node."""

_REASON = re.compile(r"(?P<message>.*) \[(?P<kind>[a-z]+); fault: (?P<fault>[a-z]+)\]")
_BY_MODULE = {
    "barrier": "rendezvous_timeout", "ssh_barrier": "rendezvous_timeout", "port_check": "port_in_use",
    "image_check": "image_missing", "gpu_check": "gpu_not_available", "package": "build_failed",
    "mount_storage": "storage_io_error", "volume_check": "storage_io_error",
}  # fmt: skip
"""The class of a module's failure whose message no rule matches."""

_RETRIES = {"transient": "retry", "timeout": "retry", "conflict": "retry_elsewhere"}


class PodJournal(NamedTuple):
    """What a Pod's journal records about its last attempt, and about those before.

    Attributes:
        circumstances: the command's exit code, and whether it was asked to stop.
        diagnosis: that of the task that ended the last phase, else PID 1's; None without both.
        earlier: the attempts before, earliest first.
    """

    circumstances: Circumstances
    diagnosis: Diagnosis | None
    earlier: tuple[Attempt, ...]


def journal_folders(instance: str) -> list[str]:
    """The log directories with a journal of one instance of `pairun run`, the newest first."""
    logs = os.path.join(instance, "pai", "logs")
    try:
        found = [os.path.join(logs, pod) for pod in os.listdir(logs)]
        journals = {
            f: os.stat(j).st_mtime for f in found if os.path.exists(j := os.path.join(f, JOURNAL))
        }
    except OSError:
        return []
    return sorted(journals, key=journals.__getitem__, reverse=True)


def journal_of(path: str, table: Table, deadline_s: float) -> PodJournal | None:
    """The journal of the Pod that wrote a file; None if the file is in no Pod's log directory.

    Args:
        path: the command's output, a phase's log, the output of an instance of `pairun run`, or the
            journal itself.
        table: the rules, for the message of a failed task.
        deadline_s: limit for that, in seconds of CPU time.
    """
    folder, name = os.path.split(os.path.abspath(path))
    if os.path.basename(folder) == OUTPUT:
        folder = os.path.dirname(folder)
    elif name == RUN_OUTPUT:
        folder = next(iter(journal_folders(folder)), "")
    elif name not in (*PHASE_LOGS, JOURNAL):
        return None
    journal = os.path.join(folder, JOURNAL)
    records = read_journal(journal)
    if not records:
        return None
    phase, last = _since_last("phase_begin", records), _since_last("command_begin", records)
    was_stopped = any(r.get("outcome") == "signal" for r in _of(phase, "phase_end"))
    commands = _of(records, "command_begin", "command_end")
    # a command that has begun again has no exit code yet
    code = (
        field_of(commands[-1], "exit_code", Annotated[int, between(0, 255)]) if commands else None
    )
    own = _of(last, "diagnosis")[-1:] if commands else []
    diagnosis = None
    if own:
        shown = own[0].get("evidence")
        first = shown[0] if isinstance(shown, list) and shown else {}
        text = str(first.get("text") or "") if isinstance(first, dict) else ""
        diagnosis = _cause(own[0], Evidence(journal, records.index(own[0]) + 1, text))
    ended = [r for r in _of(phase, "task_end") if not r.get("handler")]
    failed = next((r for r in ended if r.get("outcome") == "failed"), None)
    if failed and not was_stopped and code is None:
        mine = [r for r in phase if r.get("task") == failed.get("task")]
        facts = _of(mine, "attempt_begin")[-1:] + _of(mine, "wait")[-1:]
        more: Record = {k: r[k] for r in facts for k in ("module", "because") if k in r}
        where = Evidence(journal, 0, str(failed.get("message") or ""))
        diagnosis = _of_task({**failed, **more}, where, table, deadline_s)
    # a signal after the command's end did not stop it
    stop: Record = next(iter(_of(last, "stop", "command_end")), {})
    is_stop = stop.get("type") == "stop"
    return PodJournal(
        Circumstances(
            exit_code=code,
            stopped=is_stop or was_stopped,
            interrupted=is_stop and stop.get("signal") in (signal.SIGINT, "SIGINT"),
        ),
        diagnosis,
        tuple(_attempt(r) for r in _of(records, "diagnosis") if not own or r is not own[0]),
    )


def _of(records: Sequence[Record], *types: str) -> list[Record]:
    return [record for record in records if record.get("type") in types]


def _since_last(kind: str, records: Sequence[Record]) -> Sequence[Record]:
    """The records from the last one of a type on; all if there is none."""
    begins = [n for n, record in enumerate(records) if record.get("type") == kind]
    return records[begins[-1] :] if begins else records


def in_message(
    message: str,
    why: Mapping[str, Any],
    failed: tuple[str, str] | None,
    where: Evidence,
    table: Table,
    deadline_s: float,
) -> Diagnosis:
    """The diagnosis from a termination message: PID 1's own, of init's failed task, or of the log's end.

    Args:
        message: of a container.
        why: PID 1's diagnosis in it (`pairun.kube.endwords.diagnosis`).
        failed: the name of init's failed task in it, and the reason (`pairun.kube.endwords.failed_task`).
        where: its place, and the container's name.
        table: the rules.
        deadline_s: limit for the search, in seconds of CPU time.
    """
    shown = str(why.get("evidence") or why.get("headline") or "")
    if (own := _cause(why, where._replace(text=shown))) is not None:
        return own
    if failed and (reason := _REASON.fullmatch(failed[1])):
        # the task often has the name of its module
        task = {"task": failed[0], "module": failed[0], **reason.groupdict()}
        where = where._replace(text=f"{where.text}: {task['message']}")
        return _of_task(task, where, table, deadline_s)
    found = diagnose([Log(message.encode(), where.file)], table, None, deadline_s, process_time)
    return found._replace(evidence=tuple(e._replace(line=where.line) for e in found.evidence))


def _cause(values: Mapping[str, Any], where: Evidence) -> Diagnosis | None:
    """The diagnosis that PID 1 recorded; None if it names no class and no command that failed."""
    found = recorded(values, where)
    if found.klass == NONE or found.klass != values.get("class"):
        return None
    is_empty = found.klass == UNKNOWN and found.headline == CLASSES[UNKNOWN].meaning
    return None if is_empty else found


def _of_task(failed: Record, where: Evidence, table: Table, deadline_s: float) -> Diagnosis:
    """The diagnosis of a Pod that a task of pairun ended: its class by the message, else by the module.

    Args:
        failed: its end in the journal, with ``module``, and ``because`` if it waited.
        where: the evidence.
        table: the rules.
        deadline_s: limit for the search, in seconds of CPU time.
    """
    task, kind, message = (str(failed.get(key) or "") for key in ("task", "kind", "message"))
    klass = diagnose([Log(message.encode())], table, None, deadline_s, process_time).klass
    if klass in (NONE, UNKNOWN):
        klass = _BY_MODULE.get(str(failed.get("module")), "container_setup_error")
    fault, attempts = failed.get("fault"), failed.get("attempts")
    fault = fault if fault in FAULTS else CLASSES[klass].fault
    after = " after a wait that timed out" if kind == "timeout" else ""
    tries = f" ({attempts} attempts)" if isinstance(attempts, int) and attempts > 1 else ""
    because = failed.get("because")
    waited = [Evidence("", 0, f"it waited: {because}")] if because else []
    return of_class(klass, 0.9, where, *waited)._replace(
        fault=fault,
        advice=str(failed.get("hint") or CLASSES[klass].advice),
        retry=_RETRIES.get(kind, "after_fix" if fault == "user" else None),
        headline=f"pairun's task {task} failed{after}{tries}: {message}",
        details={"task": task, "kind": kind},
        source="pairun",
    )


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
    noted = read_progress(door, folder)
    source = "log" if noted is None else "pairun progress"
    progress = progress_in(log) if noted is None else Progress(*noted[:3])
    journal = b""
    with contextlib.suppress(OSError):
        journal = door.read_end(os.path.join(folder, JOURNAL), _JOURNAL_BYTES)
    lines = (line for line in journal.splitlines() if b'"diagnosis"' in line)
    records = [record for line in lines if (record := parse_record(line)) is not None]
    earlier = [_attempt(record, source) for record in _of(records, "diagnosis")[-_MAX_ATTEMPTS:]]
    advice = retry_advice([*earlier, Attempt(diagnosis, progress, _NODE)])
    details = {k: str(v) for k, v in progress._asdict().items() if v not in (None, "")}
    details |= {"progress_from": source} if details else {}
    return advised(diagnosis._replace(details={**diagnosis.details, **details}), advice)


def _attempt(record: Record, source: str = "") -> Attempt:
    """The attempt that a journal's record of a diagnosis describes.

    Args:
        record: of type ``diagnosis``.
        source: of the progress with which its own is compared; empty for that which the record names.
    """
    diagnosis = recorded(record)
    progress, details = Progress(), diagnosis.details
    if not source or details.get("progress_from") == source:
        texts = (str(details.get(key)) for key in ("step", "epoch"))
        step, epoch = (int(text) if re.fullmatch("[0-9]{1,15}", text) else None for text in texts)
        progress = Progress(step, epoch, str(details.get("checkpoint") or ""))
    return Attempt(diagnosis, progress, _NODE)
