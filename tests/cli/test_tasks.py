"""``pairun tasks`` as PID 1 starts it: its state arrives whatever happens to it."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pairun.base.signals import STOP_SIGNALS
from pairun.contract.loading import ModuleFile
from pairun.module import Secret
from pairun.plan import EVENTS, Late, Plan, Step, Task
from pairun.volume.journal import read_journal
from pairun.volume.planfile import SecretStore, dump_plan

ROOT = pathlib.Path(__file__).parents[2]
WAIT_S = 30.0


def cmd(name: str, script: str, **more: Any) -> Task:
    """A task that runs a script."""
    return Task(id=name, name=f"Task {name}", module="cmd", args={"script": script}, **more)


def undo(name: str, script: str | None = None, **more: Any) -> Task:
    """An exit handler for every outcome that says its name."""
    return cmd(name, f"echo {name}" if script is None else script, events=EVENTS, **more)


QUESTION = {"event": "success", "exit_code": 0, "message": "", "deadline_s": None}
"""What PID 1 asks of the handlers, without the state."""


class Tasks:
    """One ``pairun tasks`` on a volume."""

    def __init__(self, volume: pathlib.Path) -> None:
        self.volume = volume
        (volume / "runtime.d").mkdir()
        (volume / "logs" / "local").mkdir(parents=True)
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._started: list[tuple[subprocess.Popen[str], threading.Thread]] = []
        self._state = -1

    def plan(self, *steps: Step, redact: tuple[str, ...] = ()) -> None:
        """Leave a plan and its secrets, as init does."""
        path = ROOT / "modules" / "cmd.py"
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        modules = {"cmd": ModuleFile(path=str(path), sha256=sha256, built_in=True)}
        command = Task(id="user_command", name="The command", module="user_command",
                       args={"script": "exit 1"}, on_exit=(undo("of_command"),))  # fmt: skip
        secrets = SecretStore(redact)
        plan = Plan(phase="runtime", steps=(*steps, command), modules=modules, grace_s=5.0)
        files = self.volume / "runtime.d"
        (files / "plan.json").write_text(json.dumps(dump_plan(plan, secrets)))
        (files / "secrets.json").write_text(json.dumps(secrets.dump()))

    def start(
        self, part: str = "tasks", question: Mapping[str, Any] | None = None, **env: str
    ) -> subprocess.Popen[str]:
        """Start a part with the stop signals held back, as PID 1 does."""
        self._state = os.memfd_create("state")
        asked = os.memfd_create("question")
        os.write(asked, json.dumps(question).encode())
        os.lseek(asked, 0, os.SEEK_SET)
        old = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        process = subprocess.Popen(
            [
                sys.executable, "-m", "pairun", "tasks", str(self.volume), "--part", part,
                "--state-out", str(self._state), "--state-in", str(asked),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
            pass_fds=[self._state, asked], env={**os.environ, **env},
        )  # fmt: skip
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        os.close(asked)
        self.lines = []
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        self._started.append((process, reader))
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def line(self, part: str) -> None:
        """Wait for a line that holds a text."""
        with self._news:
            assert self._news.wait_for(lambda: any(part in x for x in self.lines), WAIT_S), part

    def end(self) -> Any:
        """Wait for the end; returns the state, or None when there is none."""
        process, _ = self._started[-1]
        process.wait(WAIT_S)
        text = os.pread(self._state, 1 << 20, 0)
        os.close(self._state)
        return json.loads(text) if text else None

    def all_lines(self) -> list[str]:
        """Everything that was printed, when the last one who could print has ended."""
        self._started[-1][1].join(WAIT_S)
        return self.lines

    def handlers(
        self, state: Mapping[str, Any], event: str, deadline_s: float | None = None
    ) -> Any:
        """Run the exit handlers; returns their answer."""
        asked = {**QUESTION, "event": event, "deadline_s": deadline_s, "state": state}
        self.start("handlers", asked)
        return self.end()

    def close(self) -> None:
        """Leave nothing behind."""
        for process, reader in self._started:
            process.kill()
            process.wait()
            reader.join(WAIT_S)
            assert process.stdout is not None
            process.stdout.close()


@pytest.fixture
def tasks(tmp_path: pathlib.Path) -> Iterator[Tasks]:
    """Runs ``pairun tasks`` on a volume."""
    made = Tasks(tmp_path)
    yield made
    made.close()


def test_the_state_of_a_success(tasks: Tasks) -> None:
    """The state tells the outcome, what is registered, results and exports; the command is not run."""
    export = Task(id="a", name="A", module="cmd", args={"script": "export A=1", "export": True},
                  on_exit=(undo("h"),))  # fmt: skip
    tasks.plan(export, cmd("b", 'echo "A is $A"'))
    tasks.start()
    state = tasks.end()
    assert (state["outcome"], state["exit_code"], state["registered"]) == ("success", 0, ["h"])
    assert state["environment"] == {"A": "1"}
    assert state["results"]["b"]["outcome"] == "changed"
    assert any("A is 1" in line for line in tasks.all_lines())


def test_the_state_of_a_failure(tasks: Tasks) -> None:
    """A failure has its mapped exit code."""
    tasks.plan(cmd("a", "exit 3", exit_codes={"transient": 17}))
    tasks.start()
    state = tasks.end()
    assert (state["outcome"], state["exit_code"]) == ("failure", 17)


def test_late_values(tasks: Tasks) -> None:
    """What depends on a result, a name too, is resolved when the task begins; an unknown name stays."""
    first = Task(id="a", name="A", module="cmd", args={"script": "echo -n seen", "capture": True})
    late = Late(template="echo {{ results.a.values.stdout }} 7*7", because="a result")
    name = Late(template="After {{ results.a.values.stdout }}", because="a result")
    unknown = Late(template="After {{ results.x.message }}", because="a result")
    tasks.plan(
        first,
        Task(id="b", name=name, module="cmd", args={"script": late}),
        Task(id="c", name=unknown, module="cmd", args={"script": "true"}),
    )
    tasks.start()
    assert tasks.end()["outcome"] == "success"
    lines = tasks.all_lines()
    assert any(line.endswith("| seen 7*7") for line in lines)
    assert any(" b: After seen (" in line for line in lines)
    assert any(" c: After {{ results.x.message }} (" in line for line in lines)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_before_anything_else(tasks: Tasks, number: signal.Signals) -> None:
    """A signal sent before the process listens is taken: the state tells it, nothing begins."""
    tasks.plan(cmd("a", "echo begun; sleep 60", on_exit=(undo("h"),)))
    tasks.start().send_signal(number)
    state = tasks.end()
    assert (state["outcome"], state["exit_code"]) == ("signal", 128 + number)
    assert state["registered"] == []


@pytest.mark.parametrize("at", ["one", "two", "hang"])
def test_a_signal_at_any_time(tasks: Tasks, at: str) -> None:
    """Wherever the signal comes, the state has every handler of what was begun."""
    tasks.plan(
        cmd("a", "echo one", on_exit=(undo("ha"),)),
        cmd("b", "echo two", on_exit=(undo("hb"),)),
        cmd("c", "echo hang; sleep 60", on_exit=(undo("hc"),)),
    )
    process = tasks.start()
    tasks.line(f"| {at}")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    state = tasks.end()
    assert (state["outcome"], state["exit_code"]) == ("signal", 143)
    records = read_journal(str(tasks.volume / "logs/local/journal.jsonl"))
    begun = [r["task"] for r in records if r["type"] == "attempt_begin"]
    assert state["registered"] == [f"h{name}" for name in begun]


def test_a_signal_when_all_is_done(tasks: Tasks) -> None:
    """Between the last task and the end of the process, no signal costs the state."""
    for _ in range(10):
        tasks.plan(cmd("a", "", on_exit=(undo("h"),)))
        process = tasks.start()
        tasks.line("a: Task a")
        process.send_signal(signal.SIGTERM)
        state = tasks.end()
        assert process.returncode == 0
        assert state["outcome"] in ("success", "signal")
        assert state["registered"] == ["h"]


def test_killed(tasks: Tasks) -> None:
    """After KILL the state holds what must be undone."""
    tasks.plan(
        cmd("a", "echo one", on_exit=(undo("ha"),)),
        cmd("b", "echo two $$; exec sleep 60", on_exit=(undo("hb"),)),
    )
    process = tasks.start()
    tasks.line("| two")
    process.kill()
    os.kill(int(tasks.lines[-1].split()[-1]), signal.SIGKILL)
    state = tasks.end()
    assert (state["outcome"], state["exit_code"]) == ("failure", 255)
    assert state["registered"] == ["ha", "hb"]
    assert tasks.handlers(state, "failure") == {
        "failed": False,
        "script_code": None,
        "message": "",
        "secrets": [],
    }
    assert [x.split("| ")[1] for x in tasks.all_lines() if "|" in x] == ["hb", "ha"]


# --- handlers ---------------------------------------------------------------------------------------


def test_handlers(tasks: Tasks) -> None:
    """The handlers of another process's state run in reverse order, with its exports."""
    tasks.plan(cmd("a", "", on_exit=(undo("h1", 'echo "A is $A, B is $B"'), undo("h2"))))
    state = {
        "registered": ["h1", "h2", "of_command"],
        "results": {},
        "environment": {"A": "1", "B": None},
    }
    tasks.start("handlers", {**QUESTION, "state": state}, B="set")
    assert tasks.end() == {"failed": False, "script_code": None, "message": "", "secrets": []}
    said = [x.split("| ")[1] for x in tasks.all_lines() if "|" in x]
    assert said[:2] == ["of_command", "h2"]
    assert said[-1] in ("A is 1, B is ", "A is 1, B is")


def test_a_handler_that_fails(tasks: Tasks) -> None:
    """Only a success can be turned into a failure, by a handler that may."""
    tasks.plan(cmd("a", "", on_exit=(undo("h", "exit 1"),)))
    state = {"registered": ["h"], "results": {}, "environment": {}}
    assert tasks.handlers(state, "success")["failed"] is True
    assert tasks.handlers(state, "failure")["failed"] is False


def test_handlers_have_so_much_time(tasks: Tasks) -> None:
    """A handler that hangs is over in time, and the next one still runs."""
    hang = undo("h2", "trap '' TERM; sleep 60 & wait; wait", failure_policy="ignore")
    tasks.plan(cmd("a", "", on_exit=(undo("h1"), hang)))
    state = {"registered": ["h1", "h2"], "results": {}, "environment": {}}
    assert tasks.handlers(state, "signal", 1.0)["failed"] is False
    assert any("| h1" in line for line in tasks.all_lines())


def test_a_signal_during_handlers(tasks: Tasks) -> None:
    """A stop that comes now bounds them by the Pod's grace time, and costs none of them."""
    hang = undo("h2", "echo up; trap '' TERM; sleep 60 & wait; wait", failure_policy="ignore")
    tasks.plan(cmd("a", "", on_exit=(undo("h1"), hang)))
    state = {"registered": ["h1", "h2"], "results": {}, "environment": {}}
    question = {**QUESTION, "state": state}
    process = tasks.start("handlers", question, PAIRUN_GRACE="2s")
    tasks.line("| up")
    process.send_signal(signal.SIGTERM)
    process.wait(2.0)
    assert tasks.end()["failed"] is False
    assert any("| h1" in line for line in tasks.all_lines())


# --- the rest ---------------------------------------------------------------------------------------


def test_what_runs_on_is_heard(tasks: Tasks) -> None:
    """A background process outlives this process, its output still appears, SIGPIPE comes not."""
    fifo = tasks.volume / "fifo"
    os.mkfifo(fifo)
    tasks.plan(cmd("a", f"(read line < {fifo}; echo got $line; echo and more) &"))
    tasks.start()
    assert tasks.end()["outcome"] == "success"
    fifo.write_text("it\n")
    assert [x for x in tasks.all_lines() if "|" in x] == ["  a | got it", "  a | and more"]


def test_secrets(tasks: Tasks) -> None:
    """A secret reaches the task's environment, and no log, journal or output."""
    tasks.plan(
        cmd("a", 'test "$TOKEN" = s3cr3t-s3cr3t; echo "it is $TOKEN"; env | base64 -w0; exit 1',
            environment={"TOKEN": Secret("s3cr3t-s3cr3t")}),
        redact=("s3cr3t-s3cr3t",),
    )  # fmt: skip
    tasks.start()
    assert tasks.end()["outcome"] == "failure"
    seen = "\n".join(tasks.all_lines()) + (tasks.volume / "logs/local/journal.jsonl").read_text()
    assert "it is ******" in seen
    assert "s3cr3t" not in seen


@pytest.mark.parametrize(
    ("file", "text", "id_"),
    [
        ("plan.json", None, "PR704"), ("plan.json", "{", "PR702"), ("secrets.json", None, "PR704"),
        ("secrets.json", "[]", "PR702"), ("secrets.json", "\x00", "PR702"),
    ],
)  # fmt: skip
def test_unusable_files(tasks: Tasks, file: str, text: str | None, id_: str) -> None:
    """What init did not leave well is an error with an id, and no trace of ours."""
    tasks.plan(cmd("a", ""))
    path = tasks.volume / "runtime.d" / file
    path.unlink()
    if text is not None:
        path.write_text(text)
    process = tasks.start()
    assert tasks.end() is None
    said = "\n".join(tasks.all_lines())
    assert process.returncode == 1
    assert f"error[{id_}]" in said
    assert "Traceback" not in said
