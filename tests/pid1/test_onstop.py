"""A command that ends with 0 because it was told to stop: what the container's exit code is."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

SAVES = "trap 'echo saved; exit 0' TERM INT; echo ready; while :; do sleep 0.1; done"
INTERRUPTED = {"PAIRUN_ON_STOP": "interrupted"}


@pytest.mark.parametrize(
    ("arg", "env", "code"),
    [
        (None, {}, 0),
        (None, INTERRUPTED, 143),
        (None, {"PAIRUN_ON_STOP": "own"}, 0),
        (None, {"PAIRUN_ON_STOP": "yes"}, 0),
        ("own", INTERRUPTED, 0),
        ("interrupted", {}, 143),
    ],
)
def test_a_stop_from_outside(
    volume: Any, in_namespace: Any, arg: str | None, env: dict[str, str], code: int
) -> None:
    """The argument decides, else the variable; without either the command's own code counts."""
    volume.args(on_stop=arg)
    volume.command(SAVES)
    running = in_namespace(**env)
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == code
    assert running.got("saved")
    told = "the command ended with 0 after a stop signal: the exit code is 143"
    assert any(told in line for line in running.lines) == (code == 143)
    if env == {"PAIRUN_ON_STOP": "yes"}:
        assert any("PAIRUN_ON_STOP='yes' is neither" in line for line in running.lines)


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        (SAVES, signal.SIGINT, 0),
        ("trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done", signal.SIGTERM, 7),
        ("trap 'exit 0' HUP; echo ready; while :; do sleep 0.1; done", signal.SIGHUP, 0),
    ],
)
def test_what_is_no_interrupted_success(
    volume: Any, in_namespace: Any, command: str, number: signal.Signals, code: int
) -> None:
    """Another signal, or another code of the command, changes nothing."""
    volume.command(command)
    running = in_namespace(**INTERRUPTED)
    running.line("ready")
    running.signal(number)
    assert running.end() == code


def test_a_stop_from_inside(volume: Any, in_namespace: Any) -> None:
    """A process of the container that stops PID 1 ends the job as the command says."""
    volume.command(f"{SAVES[: SAVES.index('while')]} kill -TERM 1; while :; do sleep 0.1; done")
    running = in_namespace(**INTERRUPTED)
    assert running.end() == 0
    assert running.got("saved")


def test_the_handlers_hear_of_a_signal(
    volume: Any, in_namespace: Any, succeeded: dict[str, Any]
) -> None:
    """Their event is still `signal`; the journal has the command's own code and the container's."""
    (volume.root / "logs" / "local").mkdir(parents=True)
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.command(SAVES)
    running = in_namespace(**INTERRUPTED)
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    journal = next(volume.root.rglob("journal.jsonl")).read_text()
    records = [json.loads(line) for line in journal.splitlines()]
    ends = {r["type"]: r for r in records}
    assert ends["command_end"]["exit_code"] == 0
    assert (ends["phase_end"]["outcome"], ends["phase_end"]["exit_code"]) == ("signal", 143)


def test_an_exit_spec_does_not_hide_the_interruption(volume: Any, in_namespace: Any) -> None:
    """A specification that does not know 143 leaves it: the platform counts by that code."""
    spec = volume.root / "runtime.d" / "exit-spec.json"
    spec.write_text("[]\n")
    volume.command(SAVES)
    running = in_namespace(**INTERRUPTED)
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143


@pytest.mark.parametrize(
    ("env", "code", "seen"), [(INTERRUPTED, 143, "1"), ({}, 0, "1"), (None, 0, "")]
)
def test_a_note_of_a_coming_retry(
    volume: Any, in_namespace: Any, succeeded: dict[str, Any],
    env: dict[str, str] | None, code: int, seen: str,
) -> None:  # fmt: skip
    """The journal, `on_stop` and the exit handlers hear of it, where the cluster asks for it."""
    (volume.root / "logs" / "local").mkdir(parents=True)
    note = volume.root / "run" / "note"
    shown = 'echo "handlers see [${PAIRUN_RETRY_COMING-}]"'
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={"handlers": shown})
    # The command sees when PID 1 has seen it; without the setting it goes on at once.
    journal = volume.root / "logs" / "local" / "journal.jsonl"
    wait = f"until grep -q retry_coming {journal}; do sleep 0.1; done"
    volume.command(f"touch {note}\n{wait if env is not None else ''}\n")
    running = in_namespace(**({"PAIRUN_RETRY_NOTE": str(note)} | env if env is not None else {}))
    assert running.end() == code
    assert running.got(f"handlers see [{seen}]")
    said = "ended with 0 and the platform will retry this instance: the exit code is 143"
    assert (said in "\n".join(running.lines)) == (code == 143)
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [r["file"] for r in records if r["type"] == "retry_coming"] == [str(note)] * bool(seen)
