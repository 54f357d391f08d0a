"""What the journal beside a Pod's logs adds to them; what PID 1 says in the log itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairun.diagnose.gathering import answer
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.podjournal import journal_of
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

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
    journal = journal_of(str(folder / "worker-0/pai/logs/pod/user-all/current"), table, 5)
    assert journal is None or journal.circumstances.exit_code is None
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


def failed_init(**changes: object) -> list[dict[str, object]]:
    """The records of an init phase whose barrier waited and failed."""
    end = {"schema": 1, "type": "task_end", "task": "barrier", "outcome": "failed", "attempts": 2,
           "kind": "timeout", "fault": "platform", "message": "worker-3 has no address after 600 s"}  # fmt: skip
    return [
        {"schema": 1, "type": "phase_begin", "phase": "init"},
        {"schema": 1, "type": "attempt_begin", "task": "barrier", "module": "barrier", "attempt": 1},
        {"schema": 1, "type": "wait", "task": "barrier", "seconds": 5, "because": "7 of 8 instances have addresses"},
        {**end, **changes},
        {"schema": 1, "type": "phase_end", "phase": "init", "outcome": "failure", "exit_code": 250},
    ]  # fmt: skip


@pytest.mark.parametrize("log", [{}, {"uid/init.log": "init phase: failure, exit code 250\n"}])
def test_the_task_that_failed_is_the_cause(
    log: dict[str, str | bytes], tmp_path: Path, table: Table
) -> None:
    """The journal names the task, its attempts, and what it waited for; also without a log."""
    journal = "".join(json.dumps(record) + "\n" for record in failed_init())
    diagnosis = incident_of(write(tmp_path, {"uid/journal.jsonl": journal, **log}), table).diagnosis
    assert (diagnosis.klass, diagnosis.fault, diagnosis.retry) == (
        "rendezvous_timeout",
        "platform",
        "retry",
    )
    assert diagnosis.headline == (
        "pairun's task barrier failed after a wait that timed out (2 attempts): "
        "worker-3 has no address after 600 s"
    )
    assert diagnosis.evidence[1].text == "it waited: 7 of 8 instances have addresses"


@pytest.mark.parametrize(
    ("module", "message", "klass"),
    [
        ("image_check", "there is no image a/b:7", "image_missing"),
        ("port_check", "port 22 is taken", "port_in_use"),
        ("file", "[Errno 28] No space left on device", "disk_full"),
        ("my_plugin", "the reactor is off", "container_setup_error"),
    ],
)
def test_the_class_of_a_failed_task(
    module: str, message: str, klass: str, tmp_path: Path, table: Table
) -> None:
    """The rules know its message, else its module decides."""
    records = failed_init(message=message, kind="permanent", fault="user")
    records[1]["module"] = module
    journal = "".join(json.dumps(record) + "\n" for record in records)
    diagnosis = incident_of(write(tmp_path, {"uid/journal.jsonl": journal}), table).diagnosis
    assert (diagnosis.klass, diagnosis.fault, diagnosis.retry) == (klass, "user", "after_fix")


def instance(
    folder: Path, *records: dict[str, object], output: str = "", name: str = "worker-0"
) -> Path:
    """Write the folder of an instance of `pairun run`; without output its command did not start."""
    journal = "".join(json.dumps(record) + "\n" for record in records)
    pod = f"{name}/pai/logs/pod"
    logs: dict[str, str | bytes] = {
        f"{pod}/journal.jsonl": journal,
        f"{pod}/init.log": "init phase: success, exit code 0, 334 ms\n",
        f"{name}/output.log": f"init phase: success, exit code 0, 334 ms\n{output}",
    }
    if output:
        logs[f"{pod}/user-all/current"] = output
    return write(folder, logs)


@pytest.mark.parametrize("named", ["", "worker-0", "worker-0/output.log"])
def test_what_to_do_is_what_the_task_said(named: str, tmp_path: Path, table: Table) -> None:
    """The output of an instance is read with its journal, and is not a second rank."""
    instance(tmp_path, *failed_init(hint="check the address"))
    incident = incident_of(tmp_path / named, table)
    assert incident.diagnosis.advice == "check the address"
    assert len(incident.members) == 1


@pytest.mark.parametrize("named", ["worker-0", "worker-0/output.log"])
def test_the_command_that_failed_is_named(named: str, tmp_path: Path, table: Table) -> None:
    """PID 1 recorded it; the log shows no error."""
    headline = "`exit 3` failed with exit code 3"
    why = {
        "schema": 1,
        "type": "diagnosis",
        "class": "unknown",
        "confidence": 0.3,
        "headline": headline,
    }
    instance(tmp_path, _BEGIN, {**_END, "exit_code": 3}, why, output="hi\n")
    assert incident_of(tmp_path / named, table).diagnosis.headline == headline


def test_an_instance_that_was_stopped_or_succeeded_is_not_first(
    tmp_path: Path, table: Table
) -> None:
    """The task of a phase that a signal ended was cancelled; exit code 0 is a success without words."""
    failed = failed_init(message="node-7: no such host (Name or service not known)")
    instance(tmp_path, *failed, name="server-0")
    stopped = failed_init(message="stopped by SIGTERM, before a further attempt")
    stopped[-1] |= {"outcome": "signal", "exit_code": 143}
    instance(tmp_path, *stopped, name="worker-0")
    instance(tmp_path, _BEGIN, _END, output="hi\n", name="worker-1")
    incident = incident_of(tmp_path, table)
    assert incident.first is not None
    assert incident.first.label == "server-0"


def test_what_pid_1_knew_counts(tmp_path: Path, table: Table) -> None:
    """The kernel's kill is not in the log; PID 1 counted it. Earlier attempts are in the journal, too."""
    why = {"schema": 1, "type": "diagnosis", "class": "host_oom", "fault": "user", "retry": "after_fix",
           "confidence": 0.91, "headline": "memory ran out", "evidence": [], "details": {}, "rule": ""}  # fmt: skip
    end = {**_END, "exit_code": 137}
    folder = run_folder(tmp_path, _BEGIN, end, why, _BEGIN, end, why, output="step 3 loss 0.1\n")
    result = answer(files_in([str(folder)]), table, 60)
    assert result.incident is not None
    assert result.incident.diagnosis.klass == "host_oom"
    assert result.incident.diagnosis.source == "pairun"
    assert result.advice is not None
    assert (result.advice.attempts, result.advice.equal) == (2, 2)


def test_a_stopped_command_was_stopped(tmp_path: Path, table: Table) -> None:
    """PID 1 received a signal before the command ended."""
    stop: dict[str, object] = {"schema": 1, "type": "stop", "signal": "SIGTERM"}
    folder = run_folder(tmp_path, _BEGIN, stop, {**_END, "exit_code": 1}, output="step 3\n")
    assert incident_of(folder, table).diagnosis.klass == "terminated_sigterm"
