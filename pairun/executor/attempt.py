"""One attempt, as the executor sees it: a forked child that leads a new session.

So a timeout stops every module: TERM, wait, KILL, to all processes that the attempt started.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping

from pairun.base.processes import processes
from pairun.base.signals import fork_program
from pairun.contract.results import (
    MAX_RECORD_BYTES,
    BadResult,
    Hidden,
    ProgressRecord,
    Report,
    failure,
    read_line,
)
from pairun.executor.child import bad_result, run_child
from pairun.executor.limits import TERM_WAIT_S
from pairun.module import Module, format_duration

KILL_WAIT_S = 5.0
"""Seconds to wait for a killed process: a dead file server can block it forever."""

GROUP_POLL_S = 0.05
"""Seconds between two checks of processes that are not our children."""

READS = 32
"""How many pieces of a report one turn reads, so that an endless writer does not block us."""


class AttemptProcess:
    """A running attempt.

    Args:
        module: what it runs.
        env: its environment.
        pai_dir: the shared volume.
        deadline: monotonic time at which it is stopped, or None.
        on_progress: takes every progress report.
        on_hidden: takes the secrets that the module learns.

    Attributes:
        pid: the child; leads its session and its process group.
        result_fd: the pipe for progress, secrets and the report.
        output_fd: the pipe for its output.
        reporting: whether the child may still send something.
        stopping: why it is being stopped, or None.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(
        self,
        module: Module,
        env: Mapping[str, str],
        pai_dir: str,
        deadline: float | None,
        on_progress: Callable[[ProgressRecord], None],
        on_hidden: Callable[[tuple[str, ...]], None],
    ) -> None:
        _LEAVING[:] = filter(_is_leaving, _LEAVING)
        self.started = time.monotonic()
        self.deadline = deadline
        self.stopping: str | None = None
        self.reporting = True
        self._module = module
        self._on_progress = on_progress
        self._on_hidden = on_hidden
        self._line = bytearray()
        self._received: Report | None = None
        self._final: Report | None = None
        self._next_step: float | None = None
        self._killed = False
        pipes: list[int] = []
        try:
            pipes += os.pipe()
            pipes += os.pipe()
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = fork_program()
        except OSError:
            for fd in pipes:
                os.close(fd)
            raise
        self.result_fd, result_in, self.output_fd, output_in = pipes
        if self.pid == 0:
            run_child(module, env, pai_dir, deadline, result_in, output_in)
        os.close(result_in)
        os.close(output_in)
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.output_fd, False)

    def read_report(self) -> None:
        """Read progress and the report, as far as they have arrived."""
        for _ in range(READS):
            try:
                chunk = os.read(self.result_fd, 65536)
            except BlockingIOError:
                return
            if not chunk:
                self.reporting = False
                return
            first, *lines = chunk.split(b"\n")
            self._line += first
            for line in lines:
                self._take(bytes(self._line))
                self._line = bytearray(line)
            if len(self._line) > MAX_RECORD_BYTES:
                self._refuse(BadResult("a line is too long"))
                self._line.clear()

    def take_secrets(self) -> None:
        """Read the secrets that the module sent before its latest output, which needs masking."""
        if self.reporting:
            self.read_report()

    def _take(self, line: bytes) -> None:
        if self._received is not None:
            return  # ignore everything after the report
        try:
            record = read_line(line)
        except BadResult as e:
            self._refuse(e)
            return
        if isinstance(record, ProgressRecord):
            self._on_progress(record)
        elif isinstance(record, Hidden):
            self._on_hidden(record.texts)
        else:
            self._received = record

    def _refuse(self, error: BadResult) -> None:
        if self._received is None or not self._received.failed:
            self._received = bad_result(self._module, error)

    def stop(self, why: str, kill_after_s: float = TERM_WAIT_S) -> None:
        """Send TERM to the process group; `check_time` sends KILL after so many seconds."""
        if self.stopping is None:
            self.stopping = why
            self._next_step = time.monotonic() + kill_after_s
            self._signal(signal.SIGTERM)

    def wake_at(self) -> float | None:
        """The monotonic time at which `check_time` has work, or None."""
        if self.stopping is None:
            return self.deadline
        if self._final is not None:
            return time.monotonic() + GROUP_POLL_S
        return self._next_step

    def check_time(self, kill_after_s: float) -> None:
        """Send TERM at the deadline, and KILL if TERM was not enough."""
        now = time.monotonic()
        if self.stopping is None:
            if self.deadline is not None and now >= self.deadline:
                self.stop("timeout", kill_after_s)
        elif not self._killed and self._next_step is not None and now >= self._next_step:
            self._killed = True
            self._next_step = now + KILL_WAIT_S
            self._signal(signal.SIGKILL)

    def ended(self) -> Report | None:
        """The report after the attempt has ended; None while it runs.

        A stopped attempt ends with the last process of its group: the child dies of TERM at once,
        but a program that it started may still clean up.
        """
        if self._final is None and not (self._has_succeeded() or self._has_exited()):
            if not self._killed or self._next_step is None or time.monotonic() < self._next_step:
                return None
            self._close(None)
            return self._stopped("; a process of it cannot be killed: the kernel holds it")
        if self.stopping is None:
            return self._final
        return None if not self._killed and self._group_lives() else self._stopped()

    def _has_succeeded(self) -> bool:
        """Whether the child has sent a complete report of success.

        Does not wait for its exit: freeing a process costs about as much as a whole task without
        changes, and can happen in parallel to the next one.
        """
        received = self._received
        if self.stopping is not None or self.reporting or received is None or received.failed:
            return False
        self._close(received)
        _LEAVING.append(self.pid)
        return True

    def _has_exited(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        if self.reporting:
            self.read_report()
        final = self._received or _no_report(status)
        self._close(final)
        if self.stopping is None and final.failed:
            # No process of a failed attempt may run in parallel to the next attempt.
            self._signal(signal.SIGKILL)
        return True

    def _close(self, final: Report | None) -> None:
        os.close(self.result_fd)
        self.reporting = False
        self._final = final

    def _stopped(self, more: str = "") -> Report:
        if self.stopping != "timeout":
            return failure(f"{self.stopping}{more}", "transient")
        seconds = format_duration(time.monotonic() - self.started)
        hint = "raise 'timeout' of the task, or set 'retries'"
        return failure(f"it was stopped after {seconds}{more}", "timeout", hint=hint)

    def _signal(self, number: int) -> None:
        """Send a signal to the attempt's process group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # Before its setsid. After it is reaped, its number may belong to another process.
            if self._final is None:
                os.kill(self.pid, number)
        except PermissionError:
            pass  # the rest of the group runs as another user

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        # kill(2) also counts zombies.
        members = [p.dead for p in processes() if p.group == self.pid]
        return not members or not all(members)


_LEAVING: list[int] = []
"""Children that have reported success and are about to exit."""


def _is_leaving(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # other code in this process reaped it


def _no_report(status: int) -> Report:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    hint = "check the events of the Pod: the kernel may have killed it when memory ran out"
    return failure(
        f"the attempt {how} and left no result", hint=hint if code == -signal.SIGKILL else None
    )
