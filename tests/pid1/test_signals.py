"""Signals: what reaches the command, and what happens when it does not end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import pytest

from tests.stopwatch import Stopwatch

FORWARDED = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGWINCH, signal.SIGCONT, signal.SIGIO, signal.SIGRTMIN,
)  # fmt: skip


def test_forwarded(volume: Any, start: Any, print_signals: str) -> None:
    """Every signal that can be passed on reaches the command."""
    volume.command(f"exec {print_signals} SIGTERM 7")
    running = start()
    running.line("ready")
    for number in FORWARDED:
        running.signal(number)
        running.line(f"got {number.name}")
    running.signal(signal.SIGTERM)
    assert running.end() == 7


def test_term_reaches_the_whole_group(volume: Any, start: Any, print_signals: str) -> None:
    """A program below a shell hears the stop signal too, and may use the grace time for it."""
    # The shell dies of TERM at once; what saves a checkpoint then is what it had started.
    volume.command(f"{print_signals} SIGTERM & wait $(jobs -p) ; echo the shell lived on")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert running.got("got SIGTERM")
    assert not running.got("the shell")


@pytest.mark.slow
def test_survivors_of_the_shell_keep_the_time(volume: Any, start: Any) -> None:
    """After a stop, what the dead shell had started has the command's whole time to end."""
    volume.plan["command"]["grace_s"] = 20.0
    volume.save()
    volume.command(
        "(trap 'sleep 2; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done) &\nwait"
    )
    running = start(TEST_PATCH="import pairun.runtime.supervisor as s; s._DRAIN_S = 0.2")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    # longer than an ordinary drain
    assert running.got("saved")


def test_kill_after_the_grace_time(volume: Any, start: Any) -> None:
    """A command that ignores TERM is killed before the platform would kill everything."""
    volume.command("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    running = start(PAIRUN_GRACE="3s")
    running.line("ready")
    with Stopwatch() as watch:
        running.signal(signal.SIGTERM)
        assert running.end() == 137
    assert watch.took_s > 1.5
    assert watch.within(3.0), watch


def test_second_term_changes_no_deadline(volume: Any, start: Any, print_signals: str) -> None:
    """A second TERM is passed on, and the grace time still counts from the first."""
    volume.command(f"exec {print_signals} SIGUSR1")
    running = start(PAIRUN_GRACE="3")
    running.line("ready")
    with Stopwatch() as watch:
        running.signal(signal.SIGTERM)
        running.line("got SIGTERM")
        running.signal(signal.SIGTERM)
        running.line("got SIGTERM")
        assert running.end() == 137
    assert watch.within(3.0), watch


def test_command_may_end_well_on_term(volume: Any, start: Any, print_signals: str) -> None:
    """A command that answers TERM with status 0 ends the container with 0."""
    volume.command(f"exec {print_signals} SIGTERM")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 0


def test_stopped_is_not_ended(volume: Any, start: Any, print_signals: str, eventually: Any) -> None:
    """A command that is stopped and continued goes on."""
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    pid = int(running.line("ready").split()[1])
    if running.namespace:
        children = f"/proc/{running.pid}/task/{running.pid}/children"
        with open(children, encoding="ascii") as f:
            pid = int(f.read().split()[0])

    def state() -> str:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(") ", 1)[1][0]

    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: state() == "T")
    running.signal(signal.SIGUSR2)
    assert running.process.poll() is None
    os.kill(pid, signal.SIGCONT)
    running.line("got SIGUSR2")
    running.signal(signal.SIGTERM)
    assert running.end() == 5


def test_unusable_grace_is_said_and_survived(volume: Any, start: Any) -> None:
    """A grace time that is no duration is reported, and the plan's holds."""
    volume.command("exit 4")
    running = start(PAIRUN_GRACE="soon")
    assert running.end() == 4
    assert running.got("[pairun] PAIRUN_GRACE='soon'")


# --- forwarding ---


def test_rewritten(volume: Any, start: Any, print_signals: str) -> None:
    """A signal may reach the command as another one; a stop it is all the same."""
    volume.args(signals={"SIGTERM": "SIGUSR1", "SIGHUP": ["SIGINT", "SIGUSR2"]})
    volume.command(f"exec {print_signals} SIGUSR1 9")
    running = start()
    running.line("ready")
    running.signal(signal.SIGHUP)
    running.line("got SIGINT")
    running.line("got SIGUSR2")
    running.signal(signal.SIGTERM)
    assert running.end() == 9
    assert not running.got("got SIGTERM")
    assert running.got("[pairun] received SIGTERM")


def test_not_forwarded(volume: Any, start: Any, print_signals: str) -> None:
    """A signal that is rewritten to nothing does not reach the command."""
    volume.args(signals={"SIGHUP": []})
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    running.line("ready")
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGTERM)
    assert running.end() == 5
    assert not running.got("got SIGHUP")


def test_in_steps(volume: Any, start: Any, print_signals: str) -> None:
    """A stop in steps: the first signal at once, the next after its wait, each once."""
    volume.plan["command"]["grace_s"] = 20.0
    volume.args(signals={"SIGTERM": ["SIGUSR1", "300ms", "SIGUSR2", "300ms", "SIGTERM"]})
    volume.command(f"exec {print_signals} SIGTERM 4")
    running = start()
    running.line("ready")
    began = time.monotonic()
    running.signal(signal.SIGTERM)
    running.line("got SIGUSR1")
    # A second one is passed on and starts no further steps.
    running.signal(signal.SIGTERM)
    running.line("got SIGUSR1")
    running.line("got SIGUSR2")
    assert running.end() == 4
    assert time.monotonic() - began >= 0.6
    assert len(running.got("got SIGUSR2")) == 1


def test_a_step_comes_before_the_end(volume: Any, start: Any, print_signals: str) -> None:
    """A step that would come after the command's time comes while it can still act on it."""
    volume.args(signals={"SIGTERM": ["SIGUSR1", "60s", "SIGTERM"]})
    volume.command(f"exec {print_signals} SIGTERM 4")
    running = start(PAIRUN_GRACE="3s")
    running.line("ready")
    running.signal(signal.SIGTERM)
    # a command that was killed would have ended with 137
    assert running.end() == 4


def test_steps_reach_what_outlives_the_shell(volume: Any, start: Any, print_signals: str) -> None:
    """A shell dies of the first step; what it had started still hears the next."""
    volume.plan["command"]["grace_s"] = 20.0
    volume.args(signals={"SIGTERM": ["SIGUSR1", "200ms", "SIGUSR2"]})
    volume.command(f"{print_signals} SIGUSR2 & wait $(jobs -p) ; echo lived on")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 128 + signal.SIGUSR1
    assert running.got("got SIGUSR2")


def test_to_the_process_alone(volume: Any, start: Any, print_signals: str) -> None:
    """With signals_to: process, what the command has started hears nothing from us."""
    volume.args(signals_to="process")
    volume.command(
        f"{print_signals} SIGTERM & trap 'echo told; kill $!; exit 6' TERM\n"
        "while :; do wait || true; done"
    )
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    running.line("told")
    assert running.end() == 6
    assert running.lines.index("told") < running.lines.index("got SIGTERM")
    assert len(running.got("got SIGTERM")) == 1


def test_to_the_process_then_to_the_rest(volume: Any, start: Any, print_signals: str) -> None:
    """When the one process that was told is gone, the rest is told, and has the time that is left."""
    volume.args(signals_to="process")
    volume.command(f"{print_signals} SIGTERM & wait")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert running.got("got SIGTERM")


@pytest.mark.parametrize(
    "fields",
    [
        {"forwarding": {"rewrite": {"SIGTERM": []}}}, {"forwarding": {"to_group": "all"}},
        {"argv": "ls"}, {"argv": [{"$late": {"template": "x", "because": "y"}}]}, {"shells": "sh"},
        {"on_stop": "perhaps"}, {"environment": {"A": 3}},
    ],
)  # fmt: skip
def test_an_unusable_command(volume: Any, in_namespace: Any, fields: Any) -> None:
    """A plan whose command has a field of a wrong type is not begun."""
    volume.plan["command"].update(fields)
    volume.save()
    volume.command("echo ran")
    running = in_namespace()
    assert running.end() == 1
    assert (
        f"plan.json cannot be used: command.{next(iter(fields))}" in running.got("error[PR702]")[0]
    )
    assert not running.got("ran")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGSEGV])
@pytest.mark.parametrize("part", ["tasks", "handlers"])
def test_signals_of_the_command_spare_our_own(
    volume: Any, start: Any, succeeded: Any, number: signal.Signals, part: str
) -> None:
    """A signal that is for the command harms neither tasks before it nor handlers after it."""
    volume.tasks(
        tasks=succeeded,
        handlers={"failed": False},
        run={part: "echo working; read -t 1 -r line <> <(:) || true"},
    )
    volume.command("exit 0")
    running = start()
    running.line("working")
    running.signal(number)
    assert running.end() == 0
    assert running.got("handlers ran")


# --- stopped and continued ---


def _state_of(running: Any) -> str:
    path = f"/proc/{running.pid}/task/{running.pid}/children"
    with open(path, encoding="ascii") as f:
        child = f.read().split()[0]
    with open(f"/proc/{child}/stat", encoding="ascii") as f:
        return f.read().rsplit(") ", 1)[1][0]


def test_terminal_stop(volume: Any, start: Any, print_signals: str, eventually: Any) -> None:
    """SIGTSTP stops the command for good, although the kernel would not; SIGCONT continues it."""
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTSTP)
    eventually(lambda: _state_of(running) == "T")
    running.signal(signal.SIGCONT)
    running.line("got SIGCONT")
    running.signal(signal.SIGTERM)
    assert running.end() == 5


def test_a_stopped_command_hears_the_stop(
    volume: Any, start: Any, print_signals: str, eventually: Any
) -> None:
    """A command that is stopped is continued, so that it can act on the signal that ends it."""
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTSTP)
    eventually(lambda: _state_of(running) == "T")
    running.signal(signal.SIGTERM)
    # a command that was killed would have ended with 137
    assert running.end() == 5


# --- who sent it ---


def _stops(volume: Any) -> list[dict[str, Any]]:
    path = volume.root / "logs" / "local" / "journal.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [r for r in records if r["type"] == "stop"]


def test_sender_outside(volume: Any, start: Any, print_signals: str) -> None:
    """A stop from another PID namespace is known as one from outside; any other has a sender."""
    (volume.root / "logs" / "local").mkdir(parents=True)
    volume.command(f"exec {print_signals} SIGTERM 5")
    running = start()
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 5
    (stop,) = _stops(volume)
    assert stop["signal"] == "SIGTERM"
    (line,) = running.got("[pairun] received")
    if running.namespace:
        assert stop["sender"] == "outside"
        assert "received SIGTERM from outside this container" in line
    else:
        assert (stop["sender"], stop["pid"]) == ("process", os.getpid())
        assert f"from process {os.getpid()} (" in line


def test_sender_inside(volume: Any, start: Any) -> None:
    """A program of the container that tells us to stop is named, with its command line."""
    (volume.root / "logs" / "local").mkdir(parents=True)
    volume.command("trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.1; done")
    running = start()
    assert running.end() == 9
    (stop,) = _stops(volume)
    assert stop["sender"] == "process"
    assert stop["uid"] == (0 if running.namespace else os.getuid())
    assert "user.sh" in stop["command"]
    assert "user.sh)" in running.got("[pairun] received")[0]


# --- how fast ---


def test_latency(volume: Any, start: Any) -> None:
    """What we are told reaches the command within 10 ms."""
    program = (
        "import signal, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {15, 10})\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    number = signal.sigwait({15, 10})\n"
        "    print('at', time.monotonic(), flush=True)\n"
        "    if number == 15: break\n"
    )
    (volume.root / "wait.py").write_text(program)
    volume.command(f"exec {sys.executable} {volume.root}/wait.py")
    running = start()
    running.line("ready")

    def latency_s(number: signal.Signals) -> float:
        sent = time.monotonic()
        running.signal(number)
        return float(running.line("at").split()[1]) - sent

    # Others work on this machine, too: what counts is what it takes when nothing is in the way.
    took = next((s for _ in range(200) if (s := latency_s(signal.SIGUSR1)) < 0.010), None)
    with Stopwatch() as watch:
        stop_s = latency_s(signal.SIGTERM)
    assert running.end() == 0
    assert took is not None
    assert stop_s < 0.100 * watch.slowness
