"""The forked side of an attempt: probe, plan, apply and a second probe, or a check."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from pairun.contract.results import (
    BadResult,
    Hidden,
    Progress,
    Report,
    checked,
    dump_line,
)
from pairun.executor.moduleerrors import bad_result, unforeseen
from pairun.host.context import HostContext
from pairun.module import (
    CheckModule,
    Context,
    Failure,
    Module,
    Result,
    Skip,
    StateModule,
    Verdict,
)

_FAILURE = ("kind", "fault", "message", "hint", "retry_after_s", "retry_within_s", "exit_code")
"""The fields that a report copies from a failure."""


def run_child(
    module: Module,
    env: Mapping[str, str],
    pai_dir: str,
    deadline: float | None,
    result_fd: int,
    output_fd: int,
) -> NoReturn:
    """Run the attempt in the forked child; never returns.

    Args:
        module: what it runs.
        env: the environment of the task.
        pai_dir: the shared volume.
        deadline: monotonic time at which the attempt is stopped, or None.
        result_fd: the pipe for progress, secrets and the report.
        output_fd: the pipe for its output.
    """
    code = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)

        def send(data: bytes) -> None:
            while data:
                data = data[os.write(result_fd, data) :]

        context = HostContext(
            env=env,
            pai_dir=pai_dir,
            deadline=deadline,
            emit_progress=lambda progress: send(dump_line(checked(Progress, progress))),
            emit_hidden=lambda texts: send(dump_line(checked(Hidden, {"texts": texts}))),
        )
        report = perform(module, context)
        try:
            context.last_progress()
            line = dump_line(report)
        except BadResult as e:
            line = dump_line(bad_result(module, e))
        sys.stdout.flush()
        sys.stderr.flush()
        send(line)
        os.close(result_fd)
        code = 0
    finally:
        os._exit(code)


def perform(module: Module, context: Context) -> Report:
    """Probe, plan, apply and probe again, or check; every end becomes a report."""
    try:
        try:
            return _performed(module, context)
        except Skip as e:
            return checked(Report, {"outcome": "skipped", "message": e.because})
        except Failure as e:
            return checked(Report, {"outcome": "failed", **{n: getattr(e, n) for n in _FAILURE}})
    except BadResult as e:
        return bad_result(module, e)
    except BaseException as e:  # noqa: BLE001 - an unexpected error is not the user's fault
        return unforeseen(module, e)


def _performed(module: Module, context: Context) -> Report:
    if isinstance(module, CheckModule):
        return _report("ok", "check", module.check(context))
    assert isinstance(module, StateModule)
    verdict = _verdict(module, context)
    if verdict.kind == "no_change":
        return checked(Report, {"outcome": "ok", "message": verdict.because})
    report = _report("changed", "apply", module.apply(context), verdict.because)
    if module.verify and (again := _verdict(module, context)).kind != "no_change":
        return checked(
            Report,
            {
                "outcome": "failed",
                "kind": "internal",
                "fault": "platform",
                "message": f"the change did not hold: {again.because}",
                "hint": "check whether another process changes the same thing, or fix the module",
            },
        )
    return report


def _verdict(module: StateModule, context: Context) -> Verdict:
    verdict = module.plan(module.probe(context))
    if not isinstance(verdict, Verdict):
        raise BadResult(f"plan() must return a Verdict, it returned {_kind(verdict)}", "plan")
    if not isinstance(verdict.because, str):
        raise BadResult(
            f"the reason of a Verdict must be text, it is {_kind(verdict.because)}", "plan"
        )
    return verdict


def _report(outcome: str, method: str, result: object, because: str = "") -> Report:
    """The report of a module's result; uses ``because`` if the result has no message."""
    if result is None:
        result = Result()
    if not isinstance(result, Result):
        raise BadResult(f"{method}() must return a Result or None, it returned {_kind(result)}")
    fields: dict[str, Any] = {"values": result.values, "environment": result.environment}
    return checked(Report, {"outcome": outcome, "message": result.message or because, **fields})


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
