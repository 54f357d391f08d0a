"""The exit code of a command, by the journal beside its output or by what PID 1 says in its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from pairun.incident.commandcodes import exit_code_beside
from tests.incident.jobs import KEY_ERROR, incident_of, write

_BEGIN = {"schema": 1, "type": "command_begin"}
_END = {"schema": 1, "type": "command_end", "exit_code": 0}


def run_folder(folder: Path, *records: dict[str, object], output: str = KEY_ERROR) -> Path:
    """Write the log directory of a Pod."""
    journal = "".join(json.dumps(record) + "\n" for record in records)
    pod = "worker-0/pai/logs/pod"
    logs = {f"{pod}/journal.jsonl": journal, f"{pod}/user-all/current": output}
    return write(folder, {**logs, "worker-0/output.log": output})


def test_the_journal_says_that_the_job_succeeded(tmp_path: Path, table: Table) -> None:
    """An error in the output of a command that ended with 0 is no failure."""
    diagnosis = incident_of(run_folder(tmp_path, _BEGIN, _END), table).diagnosis
    assert diagnosis.klass == "none"
    assert diagnosis.headline.startswith("exit code 0, but the log shows an error: ")


def test_a_code_of_the_journal_explains_a_log_without_an_error(
    tmp_path: Path, table: Table
) -> None:
    """The job failed, for an unknown reason."""
    folder = run_folder(tmp_path, _BEGIN, {**_END, "exit_code": 3}, output="hello\n")
    diagnosis = incident_of(folder, table).diagnosis
    assert diagnosis.klass == "unknown"
    assert diagnosis.evidence[0].text == "hello"


@pytest.mark.parametrize("records", [(), (_BEGIN,), (_BEGIN, _END, _BEGIN)])
def test_a_command_that_runs_has_no_exit_code(
    tmp_path: Path, table: Table, records: tuple[dict[str, object], ...]
) -> None:
    """The code of an earlier command says nothing of one that was started after it."""
    folder = run_folder(tmp_path, *records)
    assert exit_code_beside(str(folder / "worker-0/pai/logs/pod/user-all/current")) is None
    assert incident_of(folder, table).diagnosis.klass == "user_code_error"


@pytest.mark.parametrize(("code", "klass"), [(0, "none"), (1, "user_code_error")])
def test_pid_1_says_in_the_log_how_the_command_ended(
    tmp_path: Path, table: Table, code: int, klass: str
) -> None:
    """The line that it writes counts as the exit code."""
    end = f"[pairun] the command ended with {code} after 0.3 s\n"
    log = "[pairun] starting the command: python3 train.py\n" + KEY_ERROR + end
    assert incident_of(write(tmp_path, {"output.log": log}), table).diagnosis.klass == klass


def test_a_command_started_again_has_no_end_yet(tmp_path: Path, table: Table) -> None:
    """Only the end of the last command counts."""
    start = "[pairun] starting the command: python3 train.py\n"
    log = start + "[pairun] the command ended with 0 after 0.3 s\n" + start + KEY_ERROR
    assert incident_of(write(tmp_path, {"a.log": log}), table).diagnosis.klass == "user_code_error"


def test_a_rank_that_was_killed_afterwards_is_no_cause(tmp_path: Path, table: Table) -> None:
    """The ranks that remain are killed: their exit code alone names no first failure."""
    log = "hello\n[pairun] the command ended with {} after 3 s\n"
    logs = {"rank0.log": log.format("137 (SIGKILL)"), "rank1.log": KEY_ERROR}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 1
