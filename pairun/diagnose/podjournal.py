"""Reads pairun's journal of a Pod, next to its logs: exit code, stop, failed task, earlier attempts."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pairun.base.paths import JOURNAL
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.diagnosis import Diagnosis, Evidence
from pairun.diagnose.history import Attempt
from pairun.diagnose.ownreports import (
    TaskFailure,
    diagnosis_of,
    ended_by_signal,
    failed_task_of,
    last_phase,
)
from pairun.diagnose.podhistory import recorded_attempt
from pairun.volume.journal import read_journal

OUTPUT = "user-all"
"""The folder in a Pod's log directory with the output of the user's command."""

PHASE_LOGS = ("init.log", "runtime.log")
"""The logs of the two phases in a Pod's log directory."""

RUN_OUTPUT = "output.log"
"""The file in an instance's folder of `pairun run` with all output of the instance."""

_OF_COMMANDS = ("command_begin", "command_end")


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


class PodJournal(NamedTuple):
    """What a Pod's journal records about its last attempt, and about those before.

    Attributes:
        path: the journal.
        circumstances: the command's exit code, and whether it was asked to stop.
        diagnosis: PID 1's; None without one, or if it names no class.
        failure: the task of pairun that ended the last phase; None if the command ran.
        earlier: the attempts before, earliest first.
    """

    path: str
    circumstances: Circumstances
    diagnosis: Diagnosis | None = None
    failure: TaskFailure | None = None
    earlier: tuple[Attempt, ...] = ()


def journal_of(path: str) -> PodJournal | None:
    """The journal of the Pod that wrote a file; None if the file is in no Pod's log directory.

    Args:
        path: the command's output, a phase's log, the output of an instance of `pairun run`, or the
            journal itself.
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
    return _journal(journal, records) if records else None


def _journal(path: str, records: Sequence[Mapping[str, Any]]) -> PodJournal:
    begins = [n for n, record in enumerate(records) if record.get("type") == "command_begin"]
    last = records[begins[-1] :] if begins else records
    diagnoses = [r for r in records if r.get("type") == "diagnosis"]
    own = [r for r in last if r.get("type") == "diagnosis"][-1:] if begins else []
    earlier = [r for r in diagnoses if not own or r is not own[0]]
    diagnosis = None
    if own:
        shown = own[0].get("evidence")
        text = (
            str(shown[0].get("text"))
            if isinstance(shown, list) and shown and isinstance(shown[0], dict)
            else ""
        )
        diagnosis = diagnosis_of(own[0], (Evidence(path, records.index(own[0]) + 1, text),))
    return PodJournal(
        path=path,
        circumstances=_circumstances(records, last),
        diagnosis=diagnosis,
        failure=None if begins and _ended(last) is not None else failed_task_of(records),
        earlier=tuple(recorded_attempt(record) for record in earlier),
    )


def _circumstances(
    records: Sequence[Mapping[str, Any]], last: Sequence[Mapping[str, Any]]
) -> Circumstances:
    code = _ended(records)
    # a signal after the command's end did not stop it
    running = [r for r in last if r.get("type") in ("stop", "command_end")]
    stop = running[0] if running and running[0].get("type") == "stop" else {}
    interrupted = stop.get("signal") in (signal.SIGINT, "SIGINT")
    stopped = bool(stop) or ended_by_signal(last_phase(records))
    return Circumstances(exit_code=code, stopped=stopped, interrupted=interrupted)


def _ended(records: Sequence[Mapping[str, Any]]) -> int | None:
    """The exit code of the last command; None while it runs."""
    codes = [r.get("exit_code") for r in records if r.get("type") in _OF_COMMANDS]
    code = codes[-1] if codes else None
    return code if isinstance(code, int) and 0 <= code <= 255 else None
