"""The forked side of an attempt: probe, plan, apply and a second probe, or a check."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from pairun.contract.results import (
    BadResult,
    Report,
    checked_progress,
    checked_report,
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


def run_child(
    module: Module,
    env: Mapping[str, str],
    pai_dir: str,
    deadline: float | None,
    result_fd: int,
    output_fd: int,
) -> NoReturn:
    """The forked child's whole life.

    Args:
        module: what it does.
        env: the environment of the task.
        pai_dir: the shared volume.
        deadline: monotonic time at which the attempt is stopped, or None.
        result_fd: where progress and the report go.
        output_fd: where its output goes.
    """
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)

        def send_progress(progress: dict[str, Any]) -> None:
            _send(result_fd, dump_line(checked_progress(progress)))

        context = HostContext(
            env=env, pai_dir=pai_dir, deadline=deadline, emit_progress=send_progress
        )
        line = _report_line(module, context)
        sys.stdout.flush()
        sys.stderr.flush()
        _send(result_fd, line)
        os.close(result_fd)
        code = 0
    finally:
        os._exit(code)


def _report_line(module: Module, context: HostContext) -> bytes:
    report = perform(module, context)
    try:
        context.last_progress()
        return dump_line(report)
    except BadResult as e:
        return dump_line(bad_result(module, e))


def _send(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def perform(module: Module, context: Context) -> Report:
    """Probe, plan, apply and probe again, or check; every end becomes a report."""
    try:
        return checked_report(_outcome(module, context))
    except BadResult as e:
        return bad_result(module, e)
    except BaseException as e:  # noqa: BLE001 - an error that no one foresaw is not the user's
        return unforeseen(module, e)


def _outcome(module: Module, context: Context) -> dict[str, Any]:
    """The fields of a report, as the module gives them."""
    try:
        if isinstance(module, CheckModule):
            return _result_fields("ok", "check", module.check(context))
        assert isinstance(module, StateModule)
        return _bring_about(module, context)
    except Skip as e:
        return {"outcome": "skipped", "message": e.because}
    except Failure as e:
        fields = {
            name: getattr(e, name)
            for name in ("kind", "fault", "message", "hint", "retry_after_s", "exit_code")
        }
        # Checked here, where the place of the error is known.
        checked_report({"outcome": "failed", **fields})
        return {"outcome": "failed", **fields}


def _bring_about(module: StateModule, context: Context) -> dict[str, Any]:
    verdict = _verdict(module, context)
    if verdict.kind == "no_change":
        return {"outcome": "ok", "message": verdict.because}
    fields = _result_fields("changed", "apply", module.apply(context))
    if module.verify and (again := _verdict(module, context)).kind != "no_change":
        return {
            "outcome": "failed",
            "kind": "internal",
            "fault": "platform",
            "message": f"the change did not hold: {again.because}",
            "hint": "something else changes the same thing, or the module is wrong",
        }
    fields["message"] = fields["message"] or verdict.because
    return fields


def _verdict(module: StateModule, context: Context) -> Verdict:
    verdict = module.plan(module.probe(context))
    if not isinstance(verdict, Verdict):
        raise BadResult(f"plan() must return a Verdict, it returned {_kind(verdict)}", "plan")
    if not isinstance(verdict.because, str):
        raise BadResult(
            f"the reason of a Verdict must be text, it is {_kind(verdict.because)}", "plan"
        )
    return verdict


def _result_fields(outcome: str, method: str, result: object) -> dict[str, Any]:
    if result is None:
        result = Result()
    if not isinstance(result, Result):
        raise BadResult(f"{method}() must return a Result or None, it returned {_kind(result)}")
    return {
        "outcome": outcome,
        "message": result.message,
        "values": result.values,
        "environment": result.environment,
    }


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
