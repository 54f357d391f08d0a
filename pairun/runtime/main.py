"""The runtime phase as PID 1: tasks, the user's command, exit handlers, exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence

import pairun
from pairun.base.durations import parse_seconds, shown_duration
from pairun.base.forwarding import TO_HANDLERS, TO_TASKS
from pairun.base.grace import GRACE_VARIABLE, Grace
from pairun.base.onstop import INTERRUPTED, INTERRUPTED_CODE, ON_STOP_VARIABLE, OnStop, read_on_stop
from pairun.base.paths import PROGRAMS, STARTS_FILE, journal_file, log_dir, runtime_file
from pairun.base.processes import adopt_orphans, limit_cores, sparing
from pairun.base.signals import STOP_SIGNALS
from pairun.errors import PairunError, render
from pairun.runtime.children import HandlersEnd, PhaseEnd, ask, serve_peers
from pairun.runtime.ending import Ending
from pairun.runtime.logs import LOG_PIPE, Logs
from pairun.runtime.programs import (
    Unstartable,
    find_program,
    find_shell,
    not_startable,
    too_low_limit,
    why_not_started,
)
from pairun.runtime.supervisor import Supervisor, block_signals
from pairun.runtime.workingdirectory import WorkingDirectory
from pairun.secrets.secret import reveal
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal
from pairun.volume.logfile import LOG_BYTES_VARIABLE
from pairun.volume.logjournal import LogJournal
from pairun.volume.reader import SCRIPT_FILE, Command, read_command, read_environment
from pairun.volume.stopnote import read_stop_note

UNUSABLE = 1
"""Exit code if the volume has no usable plan."""

RETRY_NOTE = "PAIRUN_RETRY_NOTE"
"""The variable with the path of a file that appears before the platform retries this instance."""

RETRY_COMING = "PAIRUN_RETRY_COMING"
"""The variable that is 1 for exit handlers after that file has appeared."""

_RETRY_POLL_S = 1.0

INTERNAL = 255
"""Exit code if pairun fails, or an exit handler fails after a successful command."""


_RESTARTS = "PAIRUN_RESTARTS"
"""The variable for tasks and the command; not set at the first start."""

_STARTS_BYTES = 64


def main(pai_dir: str, vault: Vault, command: Sequence[str] = ()) -> int:
    """Run the runtime phase.

    Args:
        vault: takes every secret that is read, and masks all output.
        command: the user's command as program and arguments if the container has them; default: the
            plan's.

    Returns:
        The container's exit code: that of the user's command if it ran.
    """
    block_signals()
    _open_streams()
    threading.stack_size(STACK_BYTES)
    try:
        # PID 1 leaves the working directory.
        pai_dir = os.path.abspath(pai_dir)
        with sparing():
            pass
        ready = read_command(Door(pai_dir), vault)
        if command:
            ready = ready._replace(argv=tuple(command))
        phase = RuntimePhase(pai_dir, ready, vault, os.environ)
    except (PairunError, OSError, MemoryError) as e:
        what = "the runtime phase cannot be started"
        problems = e.problems if isinstance(e, PairunError) else [too_low_limit(what, e)]
        for problem in problems:
            _write(vault.text(render(problem)) + "\n")
        return UNUSABLE
    try:
        return phase.run()
    except Exception as e:  # noqa: BLE001 - a failure of pairun must not end the user's command
        phase.say(f"an error of pairun's own: {type(e).__name__}: {e}")
        return phase.rescue()
    finally:
        phase.close_logs()


STACK_BYTES = 512 * 1024
"""The stack of a copying thread: the usual 8 MB count against a limit of address space."""


class RuntimePhase:
    """One run of the phase.

    Args:
        command: what init wrote for PID 1.
        environ: the container's environment.
    """

    def __init__(
        self, pai_dir: str, command: Command, vault: Vault, environ: os._Environ[str]
    ) -> None:
        self._pai_dir = pai_dir
        self._door = Door(pai_dir)
        self._command = command
        self._script = runtime_file(pai_dir, SCRIPT_FILE)
        self._vault = vault
        self._core_limit = limit_cores()
        self._directory = WorkingDirectory(self.say)
        variables = read_environment(self._door)
        self.env = {**environ, **variables, "PAI_WORK_DIR": self._directory.path}
        if path := self.env.get("PATH"):
            # Last, so that the image's programs win.
            self.env["PATH"] = f"{path}:{os.path.join(pai_dir, PROGRAMS)}"
        folder = log_dir(pai_dir, self.env)
        self._logs = Logs(self._door, folder, self._vault, self.env.get(LOG_BYTES_VARIABLE))
        self._grace = Grace(self._grace_s())
        self._supervisor = Supervisor(
            self._grace, self.say, self._record, self._directory, self._stopper
        )
        self._ending = Ending(
            self._door, self.env, self._vault, self._supervisor, self._grace, self.say
        )
        self._complained = False
        self._interrupted = False
        self._retry_comes = False
        self._began = time.monotonic()
        self._child: int | None = None
        self._code: int | None = None

    def run(self) -> int:
        """Run tasks, command and exit handlers; returns the exit code."""
        adopt_orphans()
        self.env[LOG_PIPE] = self._logs.open_pipe(os.path.join(self._pai_dir, "run", "runtime_log"))
        if restarts := count_restart(self._door):
            self.env[_RESTARTS] = str(restarts)
            self.say(f"restart {restarts} of this container in its Pod; init does not run again")
        serve_peers(self._door, self.env, self.say)
        state = self._run_tasks()
        if self._supervisor.pending_stop():
            event, code, message = "signal", *self._stopped()
        elif state.outcome != "success":
            event, code, message = state.outcome, state.exit_code, state.message
        else:
            handlers = dict.fromkeys((*state.registered, *self._command.handlers))
            state = state._replace(registered=tuple(handlers))
            event, code, message = self._run_command(state)
        self._code = code
        if code != 0:
            of_command = self._child is not None
            script_code = None if of_command or event == "signal" else state.script_code
            self._ending.begin(
                code, of_command=of_command, script_code=script_code, is_final=self._interrupted
            )
        if state.registered:
            after = self._run_handlers(state, event, code, message)
            if after.failed and code == 0:
                self.say(f"an exit handler failed: the exit code is {INTERNAL} instead of 0")
                event, code, message = "failure", INTERNAL, "an exit handler failed"
                self._ending.begin(code, of_command=False, script_code=after.script_code)
        if code != 0:
            self._code = code = self._summarised(code)
        self._record_end(event, code, message)
        self._supervisor.sweep()
        return code

    def rescue(self) -> int:
        """After a failure of pairun, wait for the user's command; returns its exit code."""
        code = INTERNAL if self._code is None else self._code
        if self._child is not None and self._code is None:
            with contextlib.suppress(Exception):
                code = self._supervisor.wait(
                    self._child, self._grace.for_command_s, forwarding=self._command.forwarding
                )
        with contextlib.suppress(Exception):
            self._record_end("failure", code, "an error of pairun's own")
        with contextlib.suppress(Exception):
            self._supervisor.sweep()
        return code

    def _summarised(self, code: int) -> int:
        """Write the termination message; returns the container's exit code."""
        self._logs.complete(self._left_for_logs)
        replaced = self._ending.finish("" if self._command.argv else self._script)
        if self._ending.diagnosis is not None:
            self._record("diagnosis", **self._ending.diagnosis)
        if replaced != code:
            file = self._ending.code_file
            who = f"exit_codes in {file}" if file else "the exit spec"
            self.say(f"{who} replaces exit code {self._ending.failed_code} by {replaced}")
        return replaced

    def say(self, line: str) -> None:
        """Write one line for people."""
        self._logs.say(line)

    def _stopper(self) -> str | None:
        """Who stops this container from outside, if its engine wrote a note."""
        return None if read_stop_note(self._door) is None else "`pairun run`"

    def close_logs(self) -> None:
        """Write the rest of the logs."""
        with contextlib.suppress(Exception):
            self._logs.close(self._left_for_logs)

    def _left_for_logs(self) -> float | None:
        # a stop signal that arrives while we wait for a slow reader starts the grace time, too
        self._supervisor.pending_stop()
        return self._grace.for_summary_s()

    # --- the journal ---

    def _record(self, type_: str, **fields: object) -> None:
        """Append a record; opens the file each time, because other processes append, too."""
        path = journal_file(self._pai_dir, self.env)
        journal = Journal(self._door, path, self._vault.record, self._complain_once)
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
        self._show_journal()

    def _show_journal(self) -> None:
        """Print the journal to the container's log, if the cluster asks for it."""
        path = journal_file(self._pai_dir, self.env)
        LogJournal(self.env, self._door, path, self._vault.record, self._logs.show).show(whole=True)

    # --- before the command ---

    def _run_tasks(self) -> PhaseEnd:
        self._logs.note("[INFO] Starting to exec precommands")
        if not self._command.has_tasks:
            self._record("phase_begin", phase="runtime", pairun=pairun.__version__, tasks=1)
            return PhaseEnd("success", 0)
        try:
            status, state = ask(
                self._supervisor, PhaseEnd, ("tasks", self._pai_dir, "--part", "tasks"), self.env, {},
                limit_s=self._grace.for_command_s, forwarding=TO_TASKS,
                held=STOP_SIGNALS, streams=self._logs.task_streams(),
            )  # fmt: skip
        except OSError as e:
            problem = too_low_limit("the process of the tasks cannot be started", e)
            self._logs.say(problem.message, render(problem) + "\n")
            return PhaseEnd("failure", INTERNAL, problem.message)
        self._logs.settle()
        if status != 0:
            result = "" if state is not None else " without a result"
            self.say(f"the process of the tasks exited with {status}{result}")
        if state is None:
            message = f"the process of the tasks exited with {_status(status)}"
            return PhaseEnd("failure", INTERNAL, message)
        self._vault.add(state.secrets)
        if state.outcome == "failure" and self._logs.discards_tasks:
            self.say(state.message)
        return state

    def _stopped(self) -> tuple[int, str]:
        number = self._grace.signal or signal.SIGTERM
        self.say("the command was not started")
        name = signal.Signals(number).name
        return 128 + number, f"stopped by {name}: the command was not started"

    # --- the command ---

    def _run_command(self, state: PhaseEnd) -> tuple[str, int, str]:
        """Run the command; returns the event for exit handlers, the exit code, and a message."""
        for name, value in state.environment.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        env = {**self.env, **{n: reveal(v) for n, v in self._command.environment.items()}}
        try:
            with self._directory.entered():
                argv = self._argv(env)
        except Unstartable as e:
            return self._not_started(e)
        began = time.monotonic()
        self._logs.note("[INFO] Precommands finished")
        self._logs.note("[INFO] USER COMMAND START")
        # the program's arguments may contain the user's secrets
        shown = self._command.argv[:1] or (os.path.basename(argv[0]), argv[1])
        self.say(f"starting the command: {' '.join(shown)}")
        limit_cores(self._core_limit)
        try:
            self._child = self._supervisor.start(argv, env, streams=self._logs.user_streams())
        except OSError as e:
            return self._not_started(not_startable(argv[0], why_not_started(e)))
        finally:
            limit_cores()
            self._logs.command_started()
        self._record("command_begin")
        self._show_journal()
        forwarding = self._command.forwarding
        code = self._supervisor.wait(self._child, self._limit_s, forwarding=forwarding)
        self._interrupted = code == 0 and self._is_interrupted()
        self._code = INTERRUPTED_CODE if self._interrupted else code
        event = "success" if code == 0 else "failure"
        if self._grace.signal is not None:
            event = "signal"
        seconds = time.monotonic() - began
        message = f"the command ended with {_status(code)}"
        self._logs.settle()
        self.say(f"{message} after {shown_duration(seconds)}")
        self._record("command_end", exit_code=code, seconds=round(seconds, 4))
        self._supervisor.settle(self._child, forwarding=forwarding)
        self._logs.complete(self._left_for_logs)
        self._logs.note("[INFO] USER COMMAND END")
        if self._interrupted:
            code = INTERRUPTED_CODE
            stopped = self._supervisor.terminated_from_outside
            cause = (
                "after a stop signal" if stopped else "and the platform will retry this instance"
            )
            message = f"{message} {cause}: the exit code is {code}"
            self.say(message)
        return event, code, "" if event == "success" else message

    def _not_started(self, why: Unstartable) -> tuple[str, int, str]:
        self._logs.say(why.problem.message, render(why.problem) + "\n")
        return "failure", why.code, why.problem.message

    def _is_interrupted(self) -> bool:
        """Whether a success counts as interrupted: the platform stopped the command.

        A controller that sees only exit codes would count an eviction as a success.
        """
        if not (self._supervisor.terminated_from_outside or self._retry_comes):
            return False
        return (self._command.on_stop or self._on_stop_of_container()) == INTERRUPTED

    def _limit_s(self) -> float | None:
        """The command's time; looks for the platform's note of a retry, if it may appear."""
        left, note = self._grace.for_command_s(), self.env.get(RETRY_NOTE)
        if not note or self._retry_comes:
            return left
        if os.path.lexists(note):
            self._retry_comes, self.env[RETRY_COMING] = True, "1"
            self.say(f"the platform will retry this instance: {note} has appeared")
            self._record("retry_coming", file=note)
            return left
        return _RETRY_POLL_S if left is None else min(left, _RETRY_POLL_S)

    def _on_stop_of_container(self) -> OnStop | None:
        try:
            return read_on_stop(self.env.get(ON_STOP_VARIABLE))
        except ValueError as e:
            self.say(f"{ON_STOP_VARIABLE}={e}; the command's own exit code counts")
            return None

    def _argv(self, env: dict[str, str]) -> list[str]:
        if self._command.argv:
            program, *rest = self._command.argv
            return [find_program(env, program), *rest]
        return [find_shell(env, self._command.shells), self._script]

    # --- after the command ---

    def _run_handlers(self, state: PhaseEnd, event: str, code: int, message: str) -> HandlersEnd:
        """Run the exit handlers."""
        asked = {
            "event": event, "exit_code": code, "message": message,
            "deadline_s": self._grace.for_handlers_s(),
            "asked_at": time.monotonic(), "state": state._asdict(),
        }  # fmt: skip
        try:
            status, after = ask(
                self._supervisor, HandlersEnd, ("tasks", self._pai_dir, "--part", "handlers"),
                self.env, asked, limit_s=self._grace.for_handlers_s, forwarding=TO_HANDLERS,
                held=STOP_SIGNALS, streams=self._logs.task_streams(),
            )  # fmt: skip
        except OSError as e:
            self.say(f"the exit handlers could not be started: {e.strerror}")
            return HandlersEnd(failed=True)
        if after is None:
            self.say(f"the process of the exit handlers exited with {status} without a result")
            return HandlersEnd(failed=True)
        self._vault.add(after.secrets)
        return after

    # --- the rest ---

    def _grace_s(self) -> float:
        text = self.env.get(GRACE_VARIABLE)
        if not text:
            return self._command.grace_s
        seconds = parse_seconds(text)
        if seconds is None:
            self.say(
                f"{GRACE_VARIABLE}={text!r} is not a duration like 30s; "
                f"using the plan's {self._command.grace_s:g} s"
            )
            return self._command.grace_s
        return seconds


def count_restart(door: Door) -> int:
    """Count this start of PID 1; returns the number of restarts since init ran, 0 at the first start.

    Init empties the volume, so the count starts at 0 if a Pod's init containers run again.
    """
    path = os.path.join(door.root, STARTS_FILE)
    try:
        text = door.read(path, _STARTS_BYTES)
        before = int(text) if text.isdigit() and len(text) < 10 else 1
    except FileNotFoundError:
        before = 0
    except OSError:
        # The entry exists, so an earlier start made it.
        before = 1
    # If the file cannot be written, each start counts as the first one.
    with contextlib.suppress(OSError):
        door.write(path, b"%d" % (before + 1))
    return before


def _open_streams() -> None:
    """Open /dev/null for each closed standard stream, so that no other file gets its number."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # open(2) takes the lowest free number, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _status(code: int) -> str:
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)


def _write(text: str) -> None:
    """Write to standard error; ignores a missing reader."""
    with contextlib.suppress(OSError):
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(2, data) :]
