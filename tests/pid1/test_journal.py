"""What PID 1 writes into the journal: the command, and the end of the phase, whatever happened."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Any

from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal, read_journal
from pairun.volume.logjournal import LOG_JOURNAL_VARIABLE, is_journal_line, read_log


def _state(**given: Any) -> dict[str, Any]:
    return {
        "outcome": "success", "exit_code": 0, "message": "", "registered": [], "results": {},
        "environment": {}, **given,
    }  # fmt: skip


def _journal(volume: Any) -> pathlib.Path:
    folder: pathlib.Path = volume.root / "logs" / "pod-1"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "journal.jsonl"


def _run(volume: Any, start: Any) -> tuple[int, list[dict[str, Any]]]:
    path = _journal(volume)
    code = start(FC_POD_UID="pod-1").end()
    return code, read_journal(str(path))


def test_a_command_alone(volume: Any, start: Any) -> None:
    """Where no task comes before the command, the journal is as complete."""
    volume.command("exit 7")
    code, records = _run(volume, start)
    assert code == 7
    assert [r["type"] for r in records] == [
        "phase_begin", "command_begin", "command_end", "phase_end",
    ]  # fmt: skip
    assert records[2]["exit_code"] == 7
    end = records[3]
    assert (end["phase"], end["outcome"], end["exit_code"]) == ("runtime", "failure", 7)
    assert end["message"] == "the command ended with 7"
    assert end["seconds"] >= records[2]["seconds"] > 0


def test_the_process_of_the_tasks_was_killed(volume: Any, start: Any) -> None:
    """The phase has its end in the journal also when who ran the tasks is no more."""
    volume.tasks(run={"tasks": "kill -9 $PPID"})
    volume.command("exit 0")
    code, records = _run(volume, start)
    assert code == 255
    assert [r["type"] for r in records] == ["phase_end"]
    assert (records[0]["outcome"], records[0]["exit_code"]) == ("failure", 255)
    assert records[0]["message"] == "the process of the tasks exited with 137 (SIGKILL)"


def test_it_was_killed_within_a_record(volume: Any, start: Any) -> None:
    """What the killed writer left of its last record does not spoil the end of the phase."""
    path = _journal(volume)
    half = '{"schema": 1, "type": "attempt_be'
    volume.tasks(run={"tasks": f"printf '%s' '{half}' >> {path}; kill -9 $PPID"})
    volume.command("exit 0")
    _, records = _run(volume, start)
    assert [r["type"] for r in records] == ["phase_end"]
    assert path.read_text().splitlines()[0] == half


def test_a_task_that_failed(volume: Any, start: Any) -> None:
    """The end has the outcome, code and message that the tasks left."""
    volume.tasks(tasks=_state(outcome="failure", exit_code=3, message="a: it did not work"))
    volume.command("exit 0")
    code, records = _run(volume, start)
    assert code == 3
    assert [(r["type"], r["exit_code"], r["message"]) for r in records] == [
        ("phase_end", 3, "a: it did not work")
    ]


def test_a_handler_that_failed(volume: Any, start: Any) -> None:
    """An exit handler that fails the phase is the reason that the journal gives."""
    volume.tasks(tasks=_state(registered=["undo"]), handlers={"failed": True})
    volume.command("exit 0")
    code, records = _run(volume, start)
    assert code == 255
    end = records[-1]
    assert (end["outcome"], end["exit_code"], end["message"]) == (
        "failure", 255, "an exit handler failed",
    )  # fmt: skip


def test_a_stop(volume: Any, start: Any) -> None:
    """A phase that was told to stop ends as signal, with the command's own code."""
    volume.command("trap 'exit 5' TERM; echo ready; sleep 60 & wait")
    path = _journal(volume)
    running = start(FC_POD_UID="pod-1")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 5
    end = read_journal(str(path))[-1]
    assert (end["type"], end["outcome"], end["exit_code"]) == ("phase_end", "signal", 5)


def test_secrets_are_masked(volume: Any, start: Any) -> None:
    """PID 1's records go through the same mask as everybody's."""
    secrets = {"schema": 2, "values": {}, "redact": ["not work"]}
    (volume.files / "secrets.json").write_text(json.dumps(secrets))
    volume.tasks(tasks=_state(outcome="failure", exit_code=3, message="a: it did not work"))
    volume.command("exit 0")
    _, records = _run(volume, start)
    assert records[-1]["message"] == "a: it did ******"


def test_without_a_journal(volume: Any, start: Any) -> None:
    """A journal that cannot be written is said once, and costs nothing."""
    volume.command("exit 4")
    running = start(FC_POD_UID="pod-1")
    assert running.end() == 4
    assert len(running.got("[pairun] cannot write the journal: ")) == 1


def test_one_class_writes_all_records(tmp_path: pathlib.Path) -> None:
    """The executor's journal and PID 1's are the same, so that their records stay alike."""
    assert Journal.__module__ == "pairun.volume.journal"
    Journal(Door(str(tmp_path)), str(tmp_path / "j"), Vault().record, print)({"type": "phase_end"})
    assert [r["type"] for r in read_journal(str(tmp_path / "j"))] == ["phase_end"]


def _shown(lines: list[str]) -> list[str]:
    """The types of the records that a log shows."""
    return [json.loads(line)["type"] for line in (read_log(lines) or b"").splitlines()]


def test_the_log_shows_the_journal(volume: Any, start: Any) -> None:
    """Where the cluster wants it, the log has the journal when the command begins, and at the end."""
    volume.command("echo hello; exit 7")
    _journal(volume)
    running = start(FC_POD_UID="pod-1", **{LOG_JOURNAL_VARIABLE: "true"})
    assert running.end() == 7
    shown = [n for n, line in enumerate(running.lines) if is_journal_line(line)]
    assert len(shown) == 2
    assert _shown(running.lines[: shown[0] + 1]) == ["phase_begin", "command_begin"]
    whole = ["phase_begin", "command_begin", "command_end", "phase_end"]
    assert _shown(running.lines) == whole
    assert _shown(running.lines[shown[1] :]) == whole
    logs = volume.root / "logs" / "pod-1"
    assert not any("journal/1" in path.read_text() for path in logs.rglob("*.log"))


def test_a_command_that_spoils_the_journal_costs_the_lines_alone(volume: Any, start: Any) -> None:
    """What a command writes into the file ends no phase."""
    path = _journal(volume)
    volume.command(f"printf '[%.0s' $(seq 5000) > {path}; echo >> {path}; exit 3")
    running = start(FC_POD_UID="pod-1", **{LOG_JOURNAL_VARIABLE: "true"})
    assert running.end() == 3
    assert "phase_end" in _shown(running.lines)
