"""The forked side of an attempt: probe, plan, apply and a second probe, or a check.

Errors of the module itself become reports with its file and line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from pairun.contract.results import (
    BadResult,
    Hidden,
    ProgressRecord,
    Report,
    checked,
    dump_line,
    failure,
)
from pairun.host.context import HostContext
from pairun.module import CheckModule, Context, Failure, Module, Result, Skip, StateModule, Verdict

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
            emit_progress=lambda progress: send(dump_line(checked(ProgressRecord, progress))),
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


def bad_result(module: Module, error: BadResult) -> Report:
    """The report of an attempt whose module returned an invalid result."""
    place = _raised_at(module, error) or _begin_of(module, error.method)
    message = f"{type(module).__name__} returned an invalid result: {error}{place}"
    return failure(message, hint="this is an error of the module")


def unforeseen(module: Module, error: BaseException) -> Report:
    """The report of an unexpected error in a module, with its traceback."""
    message = f"{type(module).__name__} raised {described(error)}{_raised_at(module, error)}"
    hint = "this is an error of the module; `pairun report` shows its trace"
    return failure(message, hint=hint, trace=trace_of(error))


def described(error: BaseException) -> str:
    """An exception's type and message; its type alone if it has no valid message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - __str__ of an unknown class
        return type(error).__name__


def trace_of(error: BaseException) -> str:
    """The end of an error's traceback, for the journal."""
    try:
        import traceback  # 2 ms of the start of every runtime phase

        return "".join(traceback.format_exception(error, limit=-12))
    except Exception:  # noqa: BLE001 - __str__ of an unknown class
        return ""


def _raised_at(module: Module, error: BaseException | None) -> str:
    """The module's file and line in an error's traceback, or in that of an error before it."""
    # A module in a folder has several files, all with the same prefix.
    root = ".".join(type(module).__module__.split(".")[:2])
    while error is not None:
        place, trace = "", error.__traceback__
        while trace is not None:
            name = str(trace.tb_frame.f_globals.get("__name__"))
            if name == root or name.startswith(root + "."):
                place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
            trace = trace.tb_next
        if place:
            return place
        error = error.__context__
    return ""


def _begin_of(module: Module, method: str) -> str:
    """File and line where a method begins; by default the method that returned the result."""
    method = method or ("check" if isinstance(module, CheckModule) else "apply")
    code = getattr(getattr(type(module), method, None), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
