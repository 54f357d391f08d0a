"""The life of one task as one generator, to read from top to bottom."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Generator, Mapping
from typing import Any, Literal, TypeVar

import attrs

from pairun.contract.arguments import build
from pairun.contract.results import Report, failure, variable_text
from pairun.errors import PairunError
from pairun.executor.child import described, trace_of
from pairun.executor.limits import Limits
from pairun.executor.peers import GIVE_S, VERDICT_S, Exchange, report_of, take_verdict, verdict_of
from pairun.executor.retry import retry_or_report
from pairun.executor.shared import Shared
from pairun.module import FAILURE_KINDS, FailureKind, Module, format_duration
from pairun.plan import Late, Task
from pairun.volume.journal import CONDITION_IS_FALSE

TaskOutcome = Literal["ok", "changed", "skipped", "ignored", "failed"]

_NO_REPORT = Report(outcome="ok")

_MODULE_ERRORS = ("PR602", "PR603", "PR703")
"""Errors in a module's file: the platform's fault, not the user's."""


@attrs.frozen
class Wait:
    """A wait until a monotonic time; a cancellation ends it early."""

    until: float


@attrs.frozen(kw_only=True)
class Work:
    """A module that runs in a forked process.

    Attributes:
        module: what the process runs.
        env: its environment.
        attempt: the number of the task's attempt; 0 if it is none.
        limit_s: its limit in seconds, instead of the task's limits.
        to_the_end: whether only a stop signal cancels it.
    """

    module: Module
    env: Mapping[str, str]
    attempt: int = 0
    limit_s: float | None = None
    to_the_end: bool = False


@attrs.frozen(kw_only=True)
class LoopAnswer:
    """The loop's answer when a wait or work has ended and its process is gone.

    Attributes:
        cancelled: why it was cancelled, or None.
        report: of work: its report.
        seconds: of work: its duration.
        output: of work: its last lines of output.
    """

    cancelled: str | None = None
    report: Report = _NO_REPORT
    seconds: float = 0.0
    output: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class TaskEnd:
    """How a task ended, and when (monotonic time)."""

    task: Task
    outcome: TaskOutcome
    report: Report
    ended: float


@attrs.frozen
class _Done:
    """A task before its end: the last report, the number of attempts, whether it was cancelled."""

    report: Report
    attempts: int = 0
    cancelled: bool = False


_T = TypeVar("_T")
_Part = Generator[Wait | Work, LoopAnswer, _T]
"""A part of a life, and its return value."""
Life = _Part[TaskEnd]


def live(task: Task, shared: Shared, limits: Limits) -> Life:
    """Run one task: prepare, ask the others, register handlers, attempt, inform the others, end.

    Args:
        task: the task.
        shared: what the phase's tasks share; results, exports and handlers are added to it.
        limits: the task's time.

    Returns:
        How it ended; all its processes are gone.
    """
    prepared = prepare(task, shared)
    if isinstance(prepared, Report):
        done = _Done(prepared)
    elif adopted := (yield from _ask_others(task, prepared, shared, limits)):
        done = adopted
    else:
        # Handlers count from here: they also undo what a first attempt did half.
        shared.registered += task.on_exit
        done = yield from _attempt(task, prepared, shared, limits)
    yield from _inform_others(task, done, shared, limits)
    harmless = task.failure_policy == "ignore" or (
        isinstance(prepared, PreparedTask) and done.report.kind in prepared.harmless
    )
    outcome: TaskOutcome = done.report.outcome
    if outcome == "failed" and harmless and not done.cancelled:
        outcome = "ignored"
    return _end(task, outcome, done, shared, limits)


def _ask_others(
    task: Task, prepared: PreparedTask, shared: Shared, limits: Limits
) -> _Part[_Done | None]:
    """Take the verdict from the instance that runs the task; None if it runs here."""
    peers = shared.peers() if task.run_on != "all" else None
    runner = peers.first(task.run_on) if peers else None
    if peers is None or runner is None:
        return None
    limit_s = VERDICT_S if task.deadline_s is None else task.deadline_s
    wait = format_duration(limit_s)
    _log(task, shared, f"{runner} runs it for the others; waiting at most {wait}")
    topic = peers.topic(task.run_on, task.id)
    exchange = Exchange(lambda: take_verdict(peers, topic, limit_s))
    answer = yield Work(module=exchange, env=prepared.env, limit_s=limit_s + GIVE_S)
    if answer.cancelled is not None:
        return _Done(answer.report, cancelled=True)
    if not answer.report.failed:
        return _Done(report_of(answer.report.values))
    _log(task, shared, f"no verdict from {runner} ({answer.report.message}): running it here")
    limits.restart()
    return None


def _attempt(task: Task, prepared: PreparedTask, shared: Shared, limits: Limits) -> _Part[_Done]:
    """Attempt the task until one succeeds, or no further attempt is allowed."""
    number = 0
    while True:
        number += 1
        count = {"task": task.id, "attempt": number, "of": task.retries + 1}
        names = {"name": _name(task, shared), "module": task.module}
        shared.emit({"type": "attempt_begin", **count, **names, "handler": limits.handler})
        answer = yield Work(module=prepared.module, env=prepared.env, attempt=number)
        report = answer.report
        record = {"seconds": round(answer.seconds, 4), "outcome": report.outcome}
        if report.failed:
            details = {"message": report.message, "trace": report.trace}
            record |= _failure_of(report) | details | {"output": list(answer.output)}
        shared.emit({"type": "attempt_end", **count, **record})
        if not report.failed or answer.cancelled is not None:
            return _Done(report, number, answer.cancelled is not None)
        retry = retry_or_report(task, number, report, limits)
        if isinstance(retry, Report):
            return _Done(retry, number)
        seconds = round(retry.delay_s, 3)
        shared.emit({"type": "wait", "task": task.id, "seconds": seconds, "because": retry.because})
        waited = yield Wait(time.monotonic() + retry.delay_s)
        if waited.cancelled is not None:
            attempt = f"attempt {number} of {task.retries + 1}: {report.message}"
            why = f"{waited.cancelled}, before a further attempt; {attempt}"
            return _Done(failure(why, "transient"), number, cancelled=True)


def _inform_others(task: Task, done: _Done, shared: Shared, limits: Limits) -> _Part[None]:
    """Send the verdict to the waiting instances, if this one ran the task for them."""
    if task.run_on == "all" or limits.handler or shared.stop_signal is not None:
        return
    peers = shared.peers()
    if peers is None or peers.first(task.run_on) is not None:
        return
    # If another task cancelled this one here, the others run it themselves.
    outcome = "none" if done.cancelled else done.report.outcome
    verdict = verdict_of(outcome, done.report, peers.name, shared.vault)
    topic = peers.topic(task.run_on, task.id)
    exchange = Exchange(lambda: peers.give(topic, verdict, GIVE_S))
    yield Work(module=exchange, env=shared.env, limit_s=GIVE_S, to_the_end=True)


def _end(task: Task, outcome: TaskOutcome, done: _Done, shared: Shared, limits: Limits) -> TaskEnd:
    """Store the task's results and exports, and record its end."""
    report, ended = done.report, time.monotonic()
    shared.results[task.id] = {
        "outcome": outcome,
        "changed": outcome == "changed",
        "message": report.message,
        "values": dict(report.values),
    }
    shared.export(report.environment)
    record: dict[str, Any] = {
        "type": "task_end", "task": task.id, "name": _name(task, shared), "outcome": outcome,
        "attempts": done.attempts, "of": task.retries + 1,
        "seconds": round(ended - limits.started, 4),
        "message": report.message, "handler": limits.handler,
    }  # fmt: skip
    if report.failed:
        record |= _failure_of(report)
        if done.attempts == 0 and report.trace is not None:
            record["trace"] = report.trace
    shared.emit(record)
    return TaskEnd(task=task, outcome=outcome, report=report, ended=ended)


def _name(task: Task, shared: Shared) -> str:
    """The task's name as it runs; its expressions stay while one of them is unknown."""
    if isinstance(task.name, Late):
        with contextlib.suppress(PairunError):
            return str(shared.resolve(task.name, shared.results, shared.env))
    return task.title


def _failure_of(report: Report) -> dict[str, Any]:
    failed = {"kind": report.kind, "fault": report.fault, "hint": report.hint}
    return failed if report.exit_code is None else {**failed, "exit_code": report.exit_code}


def _log(task: Task, shared: Shared, line: str) -> None:
    shared.emit({"type": "output", "task": task.id, "line": shared.vault.text(line)})


@attrs.frozen
class PreparedTask:
    """A task ready for attempts: its module, its environment, its harmless kinds of failure."""

    module: Module
    env: Mapping[str, str]
    harmless: frozenset[FailureKind]


def prepare(task: Task, shared: Shared) -> PreparedTask | Report:
    """Prepare a task for its attempts; returns a report if there is nothing to attempt."""

    def resolved(value: Any) -> Any:
        if isinstance(value, Late):
            return shared.resolve(value, shared.results, shared.env)
        if isinstance(value, Mapping):
            return {k: resolved(v) for k, v in value.items()}
        return [resolved(v) for v in value] if isinstance(value, list | tuple) else value

    try:
        if not resolved(task.when):
            return Report(outcome="skipped", message=CONDITION_IS_FALSE)
        variables = {k: v for k, v in resolved(task.environment).items() if v is not None}
        module, problems = build(shared.load(task.module), resolved(task.args))
        if module is None:
            return failure("; ".join(p.message for p in problems), "permanent", "user")
        if module.asks_servers:
            # Expensive: import once, before the first attempt is forked.
            importlib.import_module("pairun.net.session")
        env = {**shared.env, **{k: variable_text(k, v) for k, v in variables.items()}}
        return PreparedTask(module, env, _harmless(module))
    except PairunError as e:
        problem = e.problems[0]
        message = f"[{problem.id}] {problem.message}"
        if problem.id in _MODULE_ERRORS:
            return failure(message, "internal", "platform", hint=problem.hint)
        return failure(message, "permanent", "user", hint=problem.hint)
    except Exception as e:  # noqa: BLE001 - the exit handlers must run after any error
        return failure(described(e), trace=trace_of(e))


def _harmless(module: Module) -> frozenset[FailureKind]:
    kinds = frozenset(module.harmless)
    if not kinds <= frozenset(FAILURE_KINDS):
        named = sorted(map(str, kinds))
        raise TypeError(f"{type(module).__name__}.harmless must hold kinds of failure, not {named}")
    return kinds
