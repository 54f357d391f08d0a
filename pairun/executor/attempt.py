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
from collections.abc import Mapping
from typing import Any

from pairun.executor.context import HostContext
from pairun.module import (
    CheckModule,
    Failure,
    Module,
    Result,
    Skip,
    StateModule,
    UnknownUntilRun,
)

Report = dict[str, Any]
"""What an attempt says: ``outcome`` (ok, changed, skipped, failed) and what belongs to it."""

TERM_WAIT_S = 5.0
"""How long an attempt that is stopped has between TERM and KILL."""


class Attempt:
    """A running attempt, seen from the executor.

    Attributes:
        pid: the child, leader of its own session and process group.
        result_fd: the report comes here.
        output_fd: what it prints comes here.
        deadline: monotonic time at which it is stopped, or None.
    """

    def __init__(
        self,
        module: Module,
        env: Mapping[str, str],
        pai_dir: str,
        deadline: float | None,
    ) -> None:
        self.started = time.monotonic()
        self.deadline = deadline
        self.stopping: str | None = None
        self.kill_at: float | None = None
        self._report = b""
        self.result_fd, result_in = os.pipe()
        self.output_fd, output_in = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _child(module, env, pai_dir, deadline, result_in, output_in)
        os.close(result_in)
        os.close(output_in)
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.output_fd, False)

    def read_report(self) -> None:
        """Take what has arrived of the report."""
        while chunk := _read(self.result_fd):
            self._report += chunk

    def stop(self, why: str, kill_after_s: float = TERM_WAIT_S) -> None:
        """Ask the whole group to end, and see to it that it does."""
        if self.stopping is None:
            self.stopping = why
            self.kill_at = time.monotonic() + kill_after_s
            self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send a signal to the attempt's whole group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # before its setsid, or after its end
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def ended(self) -> Report | None:
        """The report when the child has ended, None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.read_report()
        os.close(self.result_fd)
        try:
            report: Report = json.loads(self._report)
        except ValueError:
            report = _no_report(status)
        if self.stopping is not None or report["outcome"] == "failed":
            # Nothing of a failed attempt may go on while the next one runs.
            self.signal(signal.SIGKILL)
        return report


def _no_report(status: int) -> Report:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return {
        "outcome": "failed",
        "kind": "internal",
        "fault": "unknown",
        "message": f"the attempt {how} and left no result",
        "hint": "memory that ran out ends processes so; see the events of the Pod"
        if code == -signal.SIGKILL
        else None,
    }


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


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
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_in, 1)
        os.dup2(output_in, 2)
        report = perform(module, HostContext(env=env, pai_dir=pai_dir, deadline=deadline))
        sys.stdout.flush()
        sys.stderr.flush()
        data = json.dumps(report).encode()
        while data:
            data = data[os.write(result_in, data) :]
        code = 0
    finally:
        os._exit(code)


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
    except (Exception, UnknownUntilRun) as e:  # noqa: BLE001 - an error that no one foresaw is ours
        return {
            "outcome": "failed",
            "kind": "internal",
            "fault": "unknown",
            "message": f"{type(module).__name__} failed in a way it did not foresee: "
            f"{type(e).__name__}: {e}",
            "hint": "this is an error of the module; the journal has its trace",
            "trace": traceback.format_exc(limit=-12),
        }


def _bring_about(module: StateModule, context: HostContext) -> Report:
    verdict = module.plan(module.probe(context))
    if verdict.kind == "no_change":
        return {"outcome": "ok", "message": verdict.because}
    result = module.apply(context)
    if module.verify:
        again = module.plan(module.probe(context))
        if again.kind != "no_change":
            return {
                "outcome": "failed",
                "kind": "internal",
                "fault": "platform",
                "message": f"it was done, but did not hold: {again.because}",
                "hint": "something else changes the same thing, or the module is wrong",
            }
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


