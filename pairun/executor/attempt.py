"""One attempt: a forked child that does probe, plan, apply and a second probe.

Because it is a process of its own, with its own session, a timeout holds whatever the module does:
TERM, wait, KILL, to everything the attempt started.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from pairun.base.processes import processes
from pairun.base.signals import fork_program
from pairun.host.context import HostContext
from pairun.module import (
    CheckModule,
    Failure,
    FailureKind,
    Fault,
    Module,
    Result,
    Skip,
    StateModule,
    format_duration,
)

Report = dict[str, Any]
"""What an attempt says: ``outcome`` (ok, changed, skipped, failed) and what belongs to it."""

TERM_WAIT_S = 5.0
"""How long an attempt that is stopped has between TERM and KILL."""

Progress = dict[str, Any]
"""How far an attempt is: ``bytes``, ``total``, ``file``."""

KILL_WAIT_S = 5.0
"""How long we wait for what was killed; the kernel may hold it for ever (a dead file server)."""

GROUP_POLL_S = 0.05
"""How often we look for the end of processes that are not our children."""


class Attempt:
    """A running attempt, seen from the executor.

    Attributes:
        pid: the child, leader of its own session and process group.
        result_fd: the report comes here.
        output_fd: what it prints comes here.
        reporting: the report has not ended yet.
        deadline: monotonic time at which it is stopped, or None.
        stopping: why it is being stopped, or None.
        on_progress: told how far it is.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        module: Module,
        env: Mapping[str, str],
        pai_dir: str,
        deadline: float | None,
    ) -> None:
        _reap_leaving()
        self.started = time.monotonic()
        self.deadline = deadline
        self.stopping: str | None = None
        self.reporting = True
        self.on_progress: Callable[[Progress], None] = lambda _: None
        self._report = b""
        self._final: Report | None = None
        self._next_step: float | None = None
        self._killed = False
        with contextlib.ExitStack() as on_failure:
            self.result_fd, result_in = _pipe(on_failure)
            self.output_fd, output_in = _pipe(on_failure)
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = fork_program()
            if self.pid == 0:
                _child(module, env, pai_dir, deadline, result_in, output_in)
            on_failure.pop_all()
        os.close(result_in)
        os.close(output_in)
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.output_fd, False)

    def read_report(self) -> None:
        """Take what has arrived of the report."""
        while self.reporting:
            try:
                chunk = os.read(self.result_fd, 65536)
            except BlockingIOError:
                return
            # Lines tell how far it is; what has no end of line is the report.
            *lines, self._report = (self._report + chunk).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    self.on_progress(json.loads(line))
            self.reporting = bool(chunk)

    def stop(self, why: str, kill_after_s: float = TERM_WAIT_S) -> None:
        """Ask the whole group to end; `check_time` sees to it that it does."""
        if self.stopping is None:
            self.stopping = why
            self._next_step = time.monotonic() + kill_after_s
            self._signal(signal.SIGTERM)

    def wake_at(self) -> float | None:
        """The time at which `check_time` has something to do, or None."""
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
        """The report once the attempt has ended, None while it goes on.

        One that is stopped ends with the last process of its group: its child dies of TERM at
        once, but a program that it started may still be tidying up.
        """
        if self._final is None and self._has_done():
            os.close(self.result_fd)
            _LEAVING.append(self.pid)
        if self._final is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return self._unkillable()
            self.read_report()
            os.close(self.result_fd)
            self.reporting = False
            self._final = _parsed(self._report) or _no_report(status)
            if self.stopping is None and self._final["outcome"] == "failed":
                # Nothing of a failed attempt may go on while the next one runs.
                self._signal(signal.SIGKILL)
        if self.stopping is None:
            return self._final
        return None if not self._killed and self._group_lives() else self._stopped()

    def _has_done(self) -> bool:
        """Whether the child has closed a report of success; its exit need not be waited for.

        Taking a process apart costs about as much as all the rest of a task with nothing to do,
        and can go on beside the next one.
        """
        if self.reporting or self.stopping is not None:
            return False
        report = _parsed(self._report)
        if report is not None and report["outcome"] != "failed":
            self._final = report
        return self._final is not None

    def _unkillable(self) -> Report | None:
        if not self._killed or self._next_step is None or time.monotonic() < self._next_step:
            return None
        os.close(self.result_fd)
        self.reporting = False
        return self._stopped("; a process of it cannot be killed: the kernel holds it")

    def _stopped(self, more: str = "") -> Report:
        timeout = self.stopping == "timeout"
        seconds = format_duration(time.monotonic() - self.started)
        why = f"it was stopped after {seconds}" if timeout else self.stopping
        kind: FailureKind = "timeout" if timeout else "transient"
        return {"outcome": "failed", "kind": kind, "fault": "unknown", "message": f"{why}{more}"}

    def _signal(self, number: int) -> None:
        """Send a signal to the attempt's whole group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # Before its setsid; once it is waited for, its number may be somebody else's.
            if self._final is None:
                os.kill(self.pid, number)
        except PermissionError:
            pass  # what is left of it runs as somebody else

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        # One that nobody has waited for yet counts for kill(2), but does nothing any more.
        members = [p.dead for p in processes() if p.group == self.pid]
        return not members or not all(members)


_LEAVING: list[int] = []
"""Children that have said all they had to say, and are on their way out."""


def _reap_leaving() -> None:
    _LEAVING[:] = filter(_still_leaves, _LEAVING)


def _still_leaves(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        # Somebody else in this process has waited for it: it is gone all the same.
        return False


def _pipe(on_failure: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for fd in ends:
        on_failure.callback(os.close, fd)
    return ends


def _parsed(text: bytes) -> Report | None:
    try:
        report = json.loads(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "outcome" in report else None


def internal(message: str, fault: Fault = "unknown", **more: str | None) -> Report:
    """A failure that is the module's or ours, not the user's."""
    report = {"outcome": "failed", "kind": "internal", "fault": fault, "message": message}
    return {**report, **more}


def trace_of(error: BaseException) -> str:
    """The end of an error's trace, for the journal."""
    return "".join(traceback.format_exception(error, limit=-12))


def _no_report(status: int) -> Report:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    hint = "memory that ran out ends processes so; see the events of the Pod"
    return internal(
        f"the attempt {how} and left no result", hint=hint if code == -signal.SIGKILL else None
    )


def _child(
    module: Module,
    env: Mapping[str, str],
    pai_dir: str,
    deadline: float | None,
    result_in: int,
    output_in: int,
) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_in, 1)
        os.dup2(output_in, 2)
        context = HostContext(
            env=env,
            pai_dir=pai_dir,
            deadline=deadline,
            emit_progress=lambda progress: _send(result_in, json.dumps(progress).encode() + b"\n"),
        )
        report = perform(module, context)
        try:
            data = json.dumps(report).encode()
        except (TypeError, ValueError) as e:
            data = json.dumps(_unforeseen(module, e)).encode()
        sys.stdout.flush()
        sys.stderr.flush()
        context.last_progress()
        _send(result_in, data)
        os.close(result_in)
        code = 0
    finally:
        os._exit(code)


def _send(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def perform(module: Module, context: HostContext) -> Report:
    """Probe, plan, apply and look again, or check; every end becomes a report."""
    try:
        if isinstance(module, CheckModule):
            return _report("ok", module.check(context))
        assert isinstance(module, StateModule)
        return _bring_about(module, context)
    except Skip as e:
        return {"outcome": "skipped", "message": e.because}
    except Failure as e:
        return {
            "outcome": "failed",
            "kind": e.kind,
            "fault": e.fault,
            "message": e.message,
            "hint": e.hint,
            "retry_after_s": e.retry_after_s,
        }
    except BaseException as e:  # noqa: BLE001 - an error that no one foresaw is ours
        return _unforeseen(module, e)


def _unforeseen(module: Module, error: BaseException) -> Report:
    return internal(
        f"{type(module).__name__} failed in a way it did not foresee: "
        f"{type(error).__name__}: {error}",
        hint="this is an error of the module; the journal has its trace",
        trace=trace_of(error),
    )


def _bring_about(module: StateModule, context: HostContext) -> Report:
    verdict = module.plan(module.probe(context))
    if verdict.kind == "no_change":
        return {"outcome": "ok", "message": verdict.because}
    result = module.apply(context)
    if module.verify:
        again = module.plan(module.probe(context))
        if again.kind != "no_change":
            return internal(
                f"it was done, but did not hold: {again.because}",
                "platform",
                hint="something else changes the same thing, or the module is wrong",
            )
    report = _report("changed", result)
    report["message"] = report["message"] or verdict.because
    return report


def _report(outcome: str, result: Result | None) -> Report:
    result = result or Result()
    return {
        "outcome": outcome,
        "message": result.message,
        "values": dict(result.values),
        "environment": dict(result.environment),
    }
