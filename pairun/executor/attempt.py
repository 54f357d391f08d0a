"""One attempt, as the executor sees it: a forked child in a session of its own.

So a timeout holds whatever the module does: TERM, wait, KILL, to everything the attempt started.
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
    MAX_LINE_BYTES,
    BadResult,
    Hidden,
    Progress,
    Report,
    failure,
    read_line,
)
from pairun.executor.child import run_child
from pairun.executor.limits import TERM_WAIT_S
from pairun.executor.moduleerrors import bad_result
from pairun.module import Module, format_duration

KILL_WAIT_S = 5.0
"""Seconds to wait for a killed process: the kernel may hold it forever (a dead file server)."""

GROUP_POLL_S = 0.05
"""Seconds between two looks at processes that are not our children."""

READS = 32
"""The pieces of a report that one turn reads: a child that writes without end must not block us."""


class Attempt:
    """A running attempt.

    Args:
        module: what it does.
        env: its environment.
        pai_dir: the shared volume.
        deadline: monotonic time at which it is stopped, or None.
        on_progress: takes every report of progress.
        on_hidden: takes the secrets that the module has learned.

    Attributes:
        pid: the child, leader of its own session and process group.
        result_fd: the pipe of progress, secrets and the report.
        output_fd: the pipe of its output.
        reporting: whether the child may still send something.
        stopping: why it is being stopped, or None.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        module: Module,
        env: Mapping[str, str],
        pai_dir: str,
        deadline: float | None,
        on_progress: Callable[[Progress], None],
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
            if len(self._line) > MAX_LINE_BYTES:
                self._refuse(BadResult("a line is too long"))
                self._line.clear()

    def take_secrets(self) -> None:
        """Read what the module sent before the output that was just read: it may hide some of it."""
        if self.reporting:
            self.read_report()

    def _take(self, line: bytes) -> None:
        if self._received is not None:
            return  # nothing counts after the report
        try:
            record = read_line(line)
        except BadResult as e:
            self._refuse(e)
            return
        if isinstance(record, Progress):
            self._on_progress(record)
        elif isinstance(record, Hidden):
            self._on_hidden(record.texts)
        else:
            self._received = record

    def _refuse(self, error: BadResult) -> None:
        if self._received is None or not self._received.failed:
            self._received = bad_result(self._module, error)

    def stop(self, why: str, kill_after_s: float = TERM_WAIT_S) -> None:
        """Send TERM to the whole group; `check_time` sends KILL after these seconds."""
        if self.stopping is None:
            self.stopping = why
            self._next_step = time.monotonic() + kill_after_s
            self._signal(signal.SIGTERM)

    def wake_at(self) -> float | None:
        """The monotonic time at which `check_time` has something to do, or None."""
        if self.stopping is None:
            return self.deadline
        if self._final is not None:
            return time.monotonic() + GROUP_POLL_S
        return self._next_step

    def check_time(self, kill_after_s: float) -> None:
        """Do what is due: TERM at the deadline, KILL when that was not enough."""
        now = time.monotonic()
        if self.stopping is None:
            if self.deadline is not None and now >= self.deadline:
                self.stop("timeout", kill_after_s)
        elif not self._killed and self._next_step is not None and now >= self._next_step:
            self._killed = True
            self._next_step = now + KILL_WAIT_S
            self._signal(signal.SIGKILL)

    def ended(self) -> Report | None:
        """The report once the attempt has ended, None while it runs.

        One that is stopped ends with the last process of its group: its child dies of TERM at
        once, but a program that it started may still be tidying up.
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
        """Whether the child has closed a whole report of success.

        We do not wait for its exit: to take a process apart costs about as much as all the rest
        of a task with nothing to do, and can go on beside the next one.
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
            # Nothing of a failed attempt may run beside the next one.
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
        return failure(f"it was stopped after {seconds}{more}", "timeout")

    def _signal(self, number: int) -> None:
        """Send a signal to the attempt's whole group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # Before its setsid. Once it is reaped, its number may be another process's.
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
        # kill(2) counts zombies too.
        members = [p.dead for p in processes() if p.group == self.pid]
        return not members or not all(members)


_LEAVING: list[int] = []
"""Children that have sent a report of success and are about to exit."""


def _is_leaving(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # other code in this process has reaped it


def _no_report(status: int) -> Report:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    hint = "memory that ran out ends processes so; see the events of the Pod"
    return failure(
        f"the attempt {how} and left no result", hint=hint if code == -signal.SIGKILL else None
    )
