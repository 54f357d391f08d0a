"""The runtime phase as PID 1: tasks, the user's command, exit handlers, exit code."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time

import pairun
from pairun.errors import PairunError, Problem, render
from pairun.redaction import Redactor
from pairun.runtime.grace import VARIABLE, Grace, parse_grace
from pairun.runtime.inputs import Inputs, read_inputs
from pairun.runtime.journal import Journal
from pairun.runtime.own import Letter, State, own_command
from pairun.runtime.paths import journal_file
from pairun.runtime.processes import adopt_orphans
from pairun.runtime.supervisor import Supervisor, block_signals

UNUSABLE = 1
NOT_EXECUTABLE = 126
NO_SHELL = 127
HELD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What our own children are started with: a stop must not end them before they listen."""

OURS = 255
"""Exit code when what failed is neither the command nor a task that has a code of its own."""


def main(pai_dir: str) -> int:
    """Run the runtime phase.

    Args:
        pai_dir: the shared volume.

    Returns:
        The container's exit code: the user's command's own where it ran.
    """
    block_signals()
    _open_streams()
    try:
        phase = RuntimePhase(pai_dir, read_inputs(pai_dir), os.environ)
    except PairunError as e:
        for problem in e.problems:
            _write(render(problem) + "\n")
        return UNUSABLE
    try:
        return phase.run()
    except Exception as e:  # noqa: BLE001 - nothing of ours may cost the user's command
        phase.say(f"an error of pairun's own: {type(e).__name__}: {e}")
        return phase.rescue()


class RuntimePhase:
    """One run of the phase.

    Args:
        pai_dir: the shared volume.
        inputs: what init left.
        environ: the container's environment.
    """

    def __init__(self, pai_dir: str, inputs: Inputs, environ: os._Environ[str]) -> None:
        self._pai_dir = pai_dir
        self._inputs = inputs
        self._redactor: Redactor = inputs.redactor
        self.env = {**environ, **inputs.environment, "PAI_WORK_DIR": _working_directory()}
        self._grace = Grace(self._grace_s())
        self._supervisor = Supervisor(self._grace, self.say)
        self._complained = False
        self._began = time.monotonic()
        self._child: int | None = None
        self._code: int | None = None

    def run(self) -> int:
        """Tasks, command, handlers; returns the exit code."""
        adopt_orphans()
        state = self._run_tasks()
        if self._supervisor.pending_stop():
            event, code, message = "signal", *self._stopped()
        elif state.outcome != "success":
            event, code, message = state.outcome, state.exit_code, state.message
        else:
            state = self._with_handlers_of_command(state)
            event, code, message = self._run_command(state)
        self._code = code
        if state.registered and self._handlers_failed(state, event) and code == 0:
            self.say(f"an exit handler failed: the exit code is {OURS} instead of 0")
            event, code, message = "failure", OURS, "an exit handler failed"
        self._record_end(event, code, message)
        self._supervisor.sweep()
        return code

    def rescue(self) -> int:
        """What is left to do after an error of our own: the user's processes, and their code."""
        code = OURS if self._code is None else self._code
        if self._child is not None and self._code is None:
            with contextlib.suppress(Exception):
                code = self._supervisor.wait(self._child, self._grace.for_command_s)
        with contextlib.suppress(Exception):
            self._record_end("failure", code, "an error of pairun's own")
        with contextlib.suppress(Exception):
            self._supervisor.sweep()
        return code

    def say(self, line: str) -> None:
        """Write one line for people."""
        _write(self._redactor.text(f"[pairun] {line}\n"))

    # --- the journal ---

    def _record(self, type_: str, **fields: object) -> None:
        """Append a record. The file is opened anew: others append to it, and may be killed."""
        path = journal_file(self._pai_dir, self.env)
        journal = Journal(path, self._redactor, self._complain_once)
        journal({"type": type_, **fields})
        journal.close()

    def _complain_once(self, line: str) -> None:
        if not self._complained:
            self.say(line)
        self._complained = True

    def _record_end(self, event: str, code: int, message: str) -> None:
        self._record(
            "phase_end", phase="runtime", outcome=event, exit_code=code, message=message,
            seconds=round(time.monotonic() - self._began, 4),
        )  # fmt: skip

    # --- before the command ---

    def _run_tasks(self) -> State:
        if not self._inputs.steps_before:
            self._record("phase_begin", phase="runtime", pairun=pairun.__version__, tasks=1)
            return State.nothing_ran()
        answer = Letter()
        argv = own_command("tasks", self._pai_dir, "--part", "tasks", "--state-out", str(answer.fd))
        child = self._supervisor.start(argv, self.env, held=HELD)
        status = self._supervisor.wait(child, self._grace.for_command_s)
        content = answer.read()
        if status != 0:
            result = "" if content is not None else " and left no result"
            self.say(f"the process of the tasks ended with {status}{result}")
        if content is None:
            return State.of(None, f"the process of the tasks ended with {_status(status)}")
        return State.of(content)

    def _stopped(self) -> tuple[int, str]:
        number = self._grace.signal or signal.SIGTERM
        self.say("the command was not started")
        name = signal.Signals(number).name
        return 128 + number, f"stopped by {name}: the command was not started"

    # --- the command ---

    def _with_handlers_of_command(self, state: State) -> State:
        """The state after the command has registered its own exit handlers."""
        added = [h for h in self._inputs.handlers if h not in state.registered]
        registered = (*state.registered, *added)
        return state._replace(
            registered=registered, raw={**state.raw, "registered": list(registered)}
        )

    def _run_command(self, state: State) -> tuple[str, int, str]:
        """Run the command; returns the event for exit handlers, the exit code, and a message."""
        for name, value in state.environment.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        env = {**self.env, **self._inputs.command_environment}
        shell = _find_shell(env, self._inputs.shells)
        if shell is None:
            problem = _no_shell(env, self._inputs.shells)
            _write(render(problem) + "\n")
            return "failure", NO_SHELL, problem.message
        began = time.monotonic()
        self.say(f"starting the command: {os.path.basename(shell)} {self._inputs.script}")
        try:
            self._child = self._supervisor.start([shell, self._inputs.script], env)
        except OSError as e:
            message = f"the command cannot be started: {shell}: {e.strerror}"
            self.say(message)
            return "failure", NOT_EXECUTABLE, message
        self._record("command_begin")
        code = self._supervisor.wait(self._child, self._grace.for_command_s)
        self._code = code
        event = "success" if code == 0 else "failure"
        if self._grace.signal is not None:
            event = "signal"
        seconds = time.monotonic() - began
        message = f"the command ended with {_status(code)}"
        self.say(f"{message} after {seconds:.1f} s")
        self._record("command_end", exit_code=code, seconds=round(seconds, 4))
        self._supervisor.settle(self._child)
        return event, code, "" if event == "success" else message

    # --- after the command ---

    def _handlers_failed(self, state: State, event: str) -> bool:
        """Run the exit handlers; whether one failed that may fail the phase."""
        question = Letter(
            {"event": event, "deadline_s": self._grace.for_handlers_s(), "state": state.raw}
        )
        answer = Letter()
        argv = own_command(
            "tasks", self._pai_dir, "--part", "handlers",
            "--state-in", str(question.fd), "--state-out", str(answer.fd),
        )  # fmt: skip
        child = self._supervisor.start(argv, self.env, held=HELD)
        question.close()
        # A stop that comes now is news for the one who shares the time out, not for a handler.
        status = self._supervisor.wait(child, self._grace.for_handlers_s, group=False)
        content = answer.read()
        if content is None:
            self.say(f"the exit handlers ended with {status} and left no result")
            return True
        return bool(content.get("failed", True))

    # --- the rest ---

    def _grace_s(self) -> float:
        text = self.env.get(VARIABLE)
        if not text:
            return self._inputs.grace_s
        seconds = parse_grace(text)
        if seconds is None:
            self.say(
                f"{VARIABLE}={text!r} is not a duration like 30s; "
                f"the plan's {self._inputs.grace_s:g} s hold"
            )
            return self._inputs.grace_s
        return seconds


def _open_streams() -> None:
    """Keep 0, 1 and 2 from becoming the number of some other file."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # the lowest free number, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _find_shell(env: dict[str, str], shells: tuple[str, ...]) -> str | None:
    path = env.get("PATH", os.defpath)
    found = (shutil.which(shell, path=path) for shell in shells)
    return next((shell for shell in found if shell), None)


def _no_shell(env: dict[str, str], shells: tuple[str, ...]) -> Problem:
    missing = " and no ".join(shells)
    return Problem(
        "PR704",
        f"there is no {missing} in PATH ({env.get('PATH', os.defpath)}), "
        f"and the user's command is a shell script",
        hint="use an image that has one, or set PATH to where it is",
    )


def _status(code: int) -> str:
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)


def _write(text: str) -> None:
    """Write to standard error; that nobody listens is no reason to fail."""
    with contextlib.suppress(OSError):
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(2, data) :]
