"""Tasks before the command and exit handlers after it, with a stand-in for what runs them."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest


def _state(**given: Any) -> dict[str, Any]:
    return {
        "outcome": "success", "exit_code": 0, "registered": ["undo"], "results": {"a": 1},
        "environment": {}, **given,
    }  # fmt: skip


def _asked(running: Any) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(running.got("handlers asked")[0].split(" ", 2)[2])
    return asked


def test_no_tasks_no_child(volume: Any, start: Any) -> None:
    """A plan with nothing but the command starts nothing but the command."""
    volume.command("echo ran")
    running = start()
    assert running.end() == 0
    assert running.got("ran")
    assert not running.got("tasks ran")
    assert not running.got("handlers ran")


def test_exports_reach_the_command(volume: Any, start: Any) -> None:
    """Variables that tasks export are set for the command, null removes one."""
    volume.tasks(tasks=_state(environment={"ADDED": "new", "GONE": None}, registered=[]))
    volume.command('echo "vars ${ADDED:-} ${GONE:-absent}"')
    running = start(GONE="here")
    assert running.end() == 0
    assert running.got("vars") == ["vars new absent"]


@pytest.mark.parametrize(("code", "event"), [(0, "success"), (9, "failure")])
def test_handlers_by_outcome(volume: Any, start: Any, code: int, event: str) -> None:
    """Exit handlers run after the command, are told how it ended, and get the tasks' state."""
    volume.tasks(tasks=_state(), handlers={"failed": False})
    volume.command(f"echo command; exit {code}")
    running = start()
    assert running.end() == code
    asked = _asked(running)
    assert asked["event"] == event
    assert asked["deadline_s"] is None
    assert _state().items() <= asked["state"].items()
    assert running.lines.index("command") < running.lines.index("handlers ran")


def test_handlers_after_a_stop(volume: Any, start: Any, print_signals: str) -> None:
    """A command that ended because we were told to stop counts as signal, with time left."""
    volume.tasks(tasks=_state(), handlers={"failed": False})
    volume.command(f"exec {print_signals} SIGTERM 0")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 0
    assert _asked(running)["event"] == "signal"
    assert 1 < _asked(running)["deadline_s"] < 10


@pytest.mark.slow
def test_handlers_have_time_when_the_command_does_not_end(volume: Any, start: Any) -> None:
    """Of the grace time a part is kept for the exit handlers."""
    volume.tasks(tasks=_state(), handlers={"failed": False})
    volume.command("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    running = start(PAIRUN_GRACE="4s")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 137
    assert _asked(running)["deadline_s"] > 0.2


@pytest.mark.parametrize(("own", "result"), [(0, 255), (7, 7)])
@pytest.mark.parametrize("answer", [{"failed": True}, None])
def test_failed_handler(volume: Any, start: Any, own: int, result: int, answer: Any) -> None:
    """A failed handler turns a success into 255 and never changes a failure."""
    volume.tasks(tasks=_state(), handlers=answer)
    volume.command(f"exit {own}")
    assert start().end() == result


def test_failed_tasks(volume: Any, start: Any) -> None:
    """When tasks fail the command does not start, the handlers run, and the code is the task's."""
    volume.tasks(tasks=_state(outcome="failure", exit_code=249), handlers={"failed": False})
    volume.command("echo command")
    running = start()
    assert running.end() == 249
    assert not running.got("command")
    assert _asked(running)["event"] == "failure"


@pytest.mark.parametrize("how", ["kill -9 $PPID; sleep 5", "exit 1"])
def test_tasks_without_answer(volume: Any, start: Any, how: str) -> None:
    """When the process that runs the tasks dies, the phase fails with 255."""
    volume.tasks(tasks=_state(), run={"tasks": how})
    volume.command("echo command")
    running = start()
    assert running.end() == 255
    assert not running.got("command")


def test_stop_before_the_command(volume: Any, start: Any) -> None:
    """A stop while tasks run ends them, starts no command, runs handlers, and ends with 143."""
    volume.tasks(
        tasks=_state(outcome="signal", exit_code=143),
        run={"tasks": "trap 'kill $!; exit 0' TERM; echo working; sleep 30 & wait"},
        handlers={"failed": False},
    )
    volume.command("echo command")
    running = start()
    running.line("working")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert not running.got("command")
    assert _asked(running)["event"] == "signal"
    assert _asked(running)["deadline_s"] > 1


def test_interrupt_before_the_command(volume: Any, start: Any) -> None:
    """A stop that the tasks did not notice still keeps the command from starting."""
    volume.tasks(
        tasks=_state(),
        run={"tasks": "trap '' INT; echo working; sleep 0.5"},
        handlers={"failed": False},
    )
    volume.command("echo command")
    running = start()
    running.line("working")
    running.signal(signal.SIGINT)
    assert running.end() == 130
    assert not running.got("command")


def test_stop_during_handlers(volume: Any, start: Any) -> None:
    """A stop that comes while handlers run changes neither event nor exit code."""
    volume.tasks(
        tasks=_state(),
        handlers={"failed": False},
        run={"handlers": "trap '' TERM; echo cleaning; sleep 1; echo cleaned"},
    )
    volume.command("exit 0")
    running = start()
    running.line("cleaning")
    running.signal(signal.SIGTERM)
    running.end()
    assert running.got("cleaned")
    assert _asked(running)["event"] == "success"


def test_handler_of_the_command_itself(volume: Any, start: Any) -> None:
    """Exit handlers of the command's own task are registered when it starts."""
    volume.plan["command"]["handlers"] = ["after"]
    volume.save()
    (volume.root / "fake.json").write_text(json.dumps({"handlers": {"failed": False}}))
    volume.command("exit 0")
    running = start()
    assert running.end() == 0
    assert _asked(running)["state"]["registered"] == ["after"]
